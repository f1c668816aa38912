"""Devices and configuration of the fake engine's gateway. Runs in a container; standard library only.

As real gateways do, it tells who comes straight from the loopback from who was forwarded: a device of the first kind
is paired unasked, and only they may approve others or write the configuration.
"""

import json
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

Answer = tuple[int, dict[str, Any]]

PLACEHOLDER = "__FAKE_REDACTED__"
_SECRET = ("token", "secret", "_key")
_AT_START = "workers"  # all else is taken while it runs
_TYPES = {"port": int, "greeting": str, _AT_START: int}


class FakeAdminApi:
    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._devices_file = folder / "devices.json"
        self._settings_file = folder / "settings.json"
        self._settings = settings
        self._lock = threading.Lock()
        self._devices: dict[str, Any] = {"pending": [], "paired": []}
        if self._devices_file.exists():
            self._devices = json.loads(self._devices_file.read_text())

    def handle(self, method: str, path: str, body: bytes, forwarded_for: str | None) -> Answer:
        """`forwarded_for` is None for who comes straight from the loopback."""
        asked = _object(body)
        routes: dict[str, Callable[[], Answer]] = {
            "POST /devices/connect": lambda: self._connect(asked, forwarded_for),
            "GET /devices": lambda: (200, self._devices),
            "POST /devices/approve": lambda: self._approve(asked.get("requestId")),
            "GET /config": lambda: (200, {"text": json.dumps(_redacted(self._file()), indent=2)}),
            "POST /config/check": lambda: self._check(asked.get("text")),
            "PUT /config": lambda: self._write(asked),
        }
        if forwarded_for is not None and path != "/devices/connect":
            return 403, {"error": "From the loopback only"}
        with self._lock:
            return routes.get(f"{method} {path}", lambda: (404, {"error": "Not found"}))()

    def _connect(self, device: dict[str, Any], address: str | None) -> Answer:
        name = device.get("deviceId")
        if not isinstance(name, str):
            return 400, {"error": "deviceId"}
        seen = {**device, "remoteIp": address or "127.0.0.1"}
        for row in self._devices["paired"]:
            if row["deviceId"] == name:
                row |= {**seen, "lastSeenAtMs": _now()}
                return self._kept(200, {"paired": True})
        waiting = [row for row in self._devices["pending"] if row["deviceId"] == name]
        if not waiting:
            waiting = [{**seen, "requestId": str(uuid.uuid4()), "ts": _now()}]
            self._devices["pending"] += waiting
        if address is None:
            return self._approve(waiting[0]["requestId"])
        return self._kept(403, {"error": "Pairing required", "requestId": waiting[0]["requestId"]})

    def _approve(self, request_id: object) -> Answer:
        for row in self._devices["pending"]:
            if row["requestId"] == request_id:
                self._devices["pending"].remove(row)
                self._devices["paired"].append({**row, "requestId": None, "approvedAtMs": _now()})
                return self._kept(200, {"paired": True})
        return 404, {"error": "Unknown requestId"}

    def _kept(self, status: int, answer: dict[str, Any]) -> Answer:
        _put(self._devices_file, self._devices)
        return status, answer

    def _file(self) -> dict[str, Any]:
        return _object(self._raw())

    def _raw(self) -> bytes:
        """What is no file (an agent may have put a pipe there) is as good as empty."""
        return self._settings_file.read_bytes() if self._settings_file.is_file() else b""

    def _check(self, text: object) -> Answer:
        try:
            asked = json.loads(text if isinstance(text, str) else self._raw())
        except (ValueError, RecursionError) as error:
            return 200, {"valid": False, "readable": False, "output": f"No JSON: {error}"}
        wrong = _wrong(asked)
        return 200, {"valid": not wrong, "readable": True, "output": wrong or "Valid"}

    def _write(self, asked: dict[str, Any]) -> Answer:
        before = self._file()
        if lost := [key for key, value in asked.items() if value == PLACEHOLDER and key not in before]:
            return 400, {"output": f"{lost[0]}: there is nothing to keep"}
        made = {key: before[key] if value == PLACEHOLDER else value for key, value in asked.items()}
        if wrong := _wrong(made):
            return 400, {"output": wrong}
        _put(self._settings_file, made)
        live = made.get(_AT_START) == self._settings.get(_AT_START)
        started = {key: value for key, value in self._settings.items() if key == _AT_START}
        self._settings.clear()
        self._settings.update({**made, **started})
        return 200, {"live": live}


def _wrong(asked: Any) -> str:
    """What is not as it has to be, in words."""
    if not isinstance(asked, dict):
        return f"<root>: an object is expected, this is {type(asked).__name__}"
    wrong = [
        f"{key}: expected {wanted.__name__}"
        for key, wanted in _TYPES.items()
        if key in asked and not isinstance(asked[key], wanted)
    ]
    return "\n".join(wrong)


def _redacted(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: PLACEHOLDER if key.endswith(_SECRET) else value for key, value in settings.items()}


def _object(body: bytes) -> dict[str, Any]:
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _put(path: Path, value: object) -> None:
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value))
    new.replace(path)


def _now() -> int:
    return int(time.time() * 1000)
