"""The fake engine: nothing to install, and a small gateway that runs in any container that has Python.

For tests and development of everything around an engine. An agent's name can make it fail: see `fake_gateway.py`.
Without isolation all gateways share the loopback of this machine; a port of its own keeps each apart.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, cast

from roost.core.sensitive import Sensitive
from roost.drivers.engine import http
from roost.drivers.engine.contract import (
    Dial,
    Engine,
    EngineNotInstalled,
    GatewayHealth,
    GatewayPlan,
    GatewaySetup,
    InvalidVersionName,
    Progress,
)
from roost.drivers.engine.fake_channels import FakeChannels, HotFakeChannels, written
from roost.drivers.engine.fake_configuration import FakeConfiguration
from roost.drivers.engine.fake_devices import FakeDevices
from roost.drivers.engine.fake_tasks import FakeTasks
from roost.drivers.engine.version_folder import newest_first

_FOLDER = ".roost/fake"
_SETTINGS = f"{_FOLDER}/settings.json"
_PROGRAM = Path(__file__).with_name("fake_gateway.py").read_bytes()
_ADMIN_API = Path(__file__).with_name("fake_admin_api.py").read_bytes()
_SCHEDULER = Path(__file__).with_name("fake_scheduler.py").read_bytes()
_START = f'exec python3 -I "$HOME/{_FOLDER}/gateway.py" "$HOME/{_SETTINGS}"'
BROKEN = "1.0.5"
"""A version that spoils its state and does not start."""
_AVAILABLE = ("1.1.0", BROKEN, "1.0.0")


class FakeEngine(Engine):
    id = "fake"
    label = "Fake"
    default_version = "1.0.0"
    start_deadline = 10.0
    state: ClassVar[Sequence[str]] = (_FOLDER,)
    reads: ClassVar[Sequence[str]] = (_SETTINGS,)

    def __init__(self, port: int = 18700, *, hot_channels: bool = True) -> None:
        self.port = port
        self.channels = HotFakeChannels(port) if hot_channels else FakeChannels(port)
        self.tasks = FakeTasks(port)
        self.devices = FakeDevices(port)
        self.configuration = FakeConfiguration(port, _SETTINGS, self._settings)
        self._installed = {self.default_version}

    def installed(self) -> Sequence[str]:
        return newest_first(list(self._installed))

    def available(self) -> Sequence[str]:
        return _AVAILABLE

    def install(self, version: str, progress: Progress) -> None:
        if version not in _AVAILABLE:
            raise InvalidVersionName
        progress(f"Installing the fake engine {version}", 1.0)
        self._installed.add(version)

    def remove(self, version: str) -> None:
        self._installed.discard(version)

    def folders(self, version: str) -> Mapping[str, Path]:
        if version not in self._installed:
            raise EngineNotInstalled(f"fake {version} is not installed")
        return {}

    def _settings(self, users: Mapping[str, Any], version: str, setup: GatewaySetup) -> dict[str, Any]:
        """The user's file with the platform's keys laid over it."""
        imposed = {
            "version": version,
            "broken": version == BROKEN,
            "name": setup.name,
            "port": self.port,
            "token": setup.token.reveal(),
            "model_url": setup.model_url,
            "model": setup.models[0],
            "channels": written(setup.channels),
        }
        return {**users, **imposed}

    def plan(self, version: str, setup: GatewaySetup) -> GatewayPlan:
        settings = self._settings(_read(setup.existing.get(_SETTINGS, b"{}")), version, setup)
        programs = {"gateway.py": _PROGRAM, "scheduler.py": _SCHEDULER, "admin_api.py": _ADMIN_API}
        files = {f"{_FOLDER}/{name}": program for name, program in programs.items()}
        files[_SETTINGS] = json.dumps(settings).encode()
        return GatewayPlan(files=files, argv=["/bin/sh", "-c", _START], env={})

    async def ready(self, dial: Dial) -> bool:
        return await http.answers(dial, self.port, "/health")

    async def health(self, dial: Dial, token: Sensitive[str]) -> GatewayHealth:
        name, value = self.credential(token)
        detail = await http.get_json(dial, self.port, "/health/detailed", {name: value.reveal()})
        return GatewayHealth(str(detail.get("version", "")), detail)


def _read(settings: bytes) -> dict[str, Any]:
    try:
        found = json.loads(settings)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
