"""Devices and configuration of the fake engine's gateway. Runs in a container; standard library only.

Like real gateways, it distinguishes requests directly from the loopback from forwarded ones: only the former can use
the configuration and approve devices, and their own devices are paired without approval.
"""

import json
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

Response = tuple[int, dict[str, Any]]

PLACEHOLDER = "__FAKE_REDACTED__"
_SECRET = ("token", "secret", "_key")
_START_KEY = "workers"  # a change needs a restart; changes of other keys apply at once
_TYPES = {"port": int, "greeting": str, _START_KEY: int}


class FakeAdminApi:
    def __init__(self, folder: Path, settings: dict[str, Any]) -> None:
        self._devices_file = folder / "devices.json"
        self._settings_file = folder / "settings.json"
        self._settings = settings
        self._lock = threading.Lock()
        self._devices: dict[str, Any] = {"pending": [], "paired": []}
        if self._devices_file.exists():
            self._devices = json.loads(self._devices_file.read_text())

    def handle(self, method: str, path: str, body: bytes, forwarded_for: str | None) -> Response:
        """Return status and body of a response; `forwarded_for` is None for a direct request from the loopback."""
        request = _parse_object(body)
        routes: dict[str, Callable[[], Response]] = {
            "POST /devices/connect": lambda: self._connect(request, forwarded_for),
            "GET /devices": lambda: (200, self._devices),
            "POST /devices/approve": lambda: self._approve(request.get("requestId")),
            "GET /config": lambda: (200, {"text": json.dumps(_redact(self._read_settings()), indent=2)}),
            "POST /config/check": lambda: self._check(request.get("text")),
            "PUT /config": lambda: self._write(request),
        }
        if forwarded_for is not None and path != "/devices/connect":
            return 403, {"error": "Only allowed from the loopback"}
        with self._lock:
            return routes.get(f"{method} {path}", lambda: (404, {"error": "Not found"}))()

    def _connect(self, device: dict[str, Any], address: str | None) -> Response:
        name = device.get("deviceId")
        if not isinstance(name, str):
            return 400, {"error": "deviceId"}
        seen = {**device, "remoteIp": address or "127.0.0.1"}
        for row in self._devices["paired"]:
            if row["deviceId"] == name:
                row |= {**seen, "lastSeenAtMs": _now()}
                return self._save_devices(200, {"paired": True})
        waiting = [row for row in self._devices["pending"] if row["deviceId"] == name]
        if not waiting:
            waiting = [{**seen, "requestId": str(uuid.uuid4()), "ts": _now()}]
            self._devices["pending"] += waiting
        if address is None:
            return self._approve(waiting[0]["requestId"])
        return self._save_devices(403, {"error": "Pairing required", "requestId": waiting[0]["requestId"]})

    def _approve(self, request_id: object) -> Response:
        for row in self._devices["pending"]:
            if row["requestId"] == request_id:
                self._devices["pending"].remove(row)
                self._devices["paired"].append({**row, "requestId": None, "approvedAtMs": _now()})
                return self._save_devices(200, {"paired": True})
        return 404, {"error": "Unknown requestId"}

    def _save_devices(self, status: int, body: dict[str, Any]) -> Response:
        _write_json(self._devices_file, self._devices)
        return status, body

    def _read_settings(self) -> dict[str, Any]:
        return _parse_object(self._read_file())

    def _read_file(self) -> bytes:
        """Return the content of the settings file; nothing if the agent put something else there, such as a pipe."""
        return self._settings_file.read_bytes() if self._settings_file.is_file() else b""

    def _check(self, text: object) -> Response:
        try:
            settings = json.loads(text if isinstance(text, str) else self._read_file())
        except (ValueError, RecursionError) as error:
            return 200, {"valid": False, "output": f"Not JSON: {error}"}
        errors = _find_errors(settings)
        return 200, {"valid": not errors, "output": errors or "Valid"}

    def _write(self, settings: dict[str, Any]) -> Response:
        before = self._read_settings()
        if lost := [key for key, value in settings.items() if value == PLACEHOLDER and key not in before]:
            return 400, {"output": f"{lost[0]}: the placeholder has no present value"}
        restored = {key: before[key] if value == PLACEHOLDER else value for key, value in settings.items()}
        if errors := _find_errors(restored):
            return 400, {"output": errors}
        _write_json(self._settings_file, restored)
        live = restored.get(_START_KEY) == self._settings.get(_START_KEY)
        started = {key: value for key, value in self._settings.items() if key == _START_KEY}
        self._settings.clear()
        self._settings.update({**restored, **started})
        return 200, {"live": live}


def _find_errors(settings: Any) -> str:
    """Return the validation errors of the settings, one a line."""
    if not isinstance(settings, dict):
        return f"<root>: expected an object, got {type(settings).__name__}"
    return "\n".join(
        f"{key}: expected {expected.__name__}"
        for key, expected in _TYPES.items()
        if key in settings and not isinstance(settings[key], expected)
    )


def _redact(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: PLACEHOLDER if key.endswith(_SECRET) else value for key, value in settings.items()}


def _parse_object(body: bytes) -> dict[str, Any]:
    try:
        found: Any = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _write_json(path: Path, value: object) -> None:
    new = path.with_suffix(".new")
    new.write_text(json.dumps(value))
    new.replace(path)


def _now() -> int:
    return int(time.time() * 1000)
