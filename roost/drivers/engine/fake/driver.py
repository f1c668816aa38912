"""The fake engine for tests and development: it installs nothing, and its gateway needs only Python in the container.

An agent's name can make its gateway fail (`gateway.py`). In a runtime without isolation all gateways share the
loopback of this machine, so each needs its own port.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.saved_state import SavedState, without_secrets
from roost.drivers.engine.contract import (
    Dial,
    Engine,
    EngineNotInstalled,
    GatewayPlan,
    GatewaySetup,
    InvalidVersionName,
    Progress,
)
from roost.drivers.engine.fake import abilities
from roost.drivers.engine.gateway_http import is_answering, send_json
from roost.drivers.engine.version_folder import newest_first
from roost.drivers.model.json_access import as_object, parse_json

_FOLDER = ".roost/fake"
_SETTINGS = f"{_FOLDER}/settings.json"
_PROGRAMS = {
    f"{_FOLDER}/{name}.py": Path(__file__).with_name(f"{name}.py").read_bytes()
    for name in ("gateway", "scheduler", "admin_api", "conversations")
}
_START = f'exec python3 -I "$HOME/{_FOLDER}/gateway.py" "$HOME/{_SETTINGS}"'
BROKEN = "1.0.5"
"""A version that damages its state and does not start."""
_AVAILABLE = ("1.1.0", BROKEN, "1.0.0")


class FakeEngine(Engine):
    id = "fake"
    label = "Fake"
    default_version = "1.0.0"
    start_deadline = 10.0
    state: ClassVar[Sequence[str]] = (_FOLDER,)
    reads: ClassVar[Sequence[str]] = (_SETTINGS,)
    saved_state: ClassVar[SavedState] = SavedState(
        folders=(_FOLDER,),
        excluded=("*.py", "devices.json"),
        databases=("*.db",),
        cleared_tables=("*_keys",),
        configuration=_SETTINGS,
    )

    def __init__(self, port: int = 18700, *, hot_channels: bool = True) -> None:
        self.port = port
        self.channels = abilities.HotFakeChannels(port) if hot_channels else abilities.FakeChannels(port)
        self.chat = abilities.FakeChat(port)
        self.tasks = abilities.FakeTasks(port)
        self.skills = abilities.FakeSkills(port)
        self.devices = abilities.FakeDevices(port)
        self.configuration = abilities.FakeConfiguration(port, _SETTINGS, self._merge_settings)
        self._installed = {self.default_version}

    def installed(self) -> Sequence[str]:
        return newest_first(list(self._installed))

    def available(self) -> Sequence[str]:
        return _AVAILABLE

    def install(self, version: str, progress: Progress) -> None:
        if version not in _AVAILABLE:
            raise InvalidVersionName
        if version not in self._installed:
            progress(f"Installing the fake engine {version}", 1.0)
            self._installed.add(version)

    def remove(self, version: str) -> None:
        self._installed.discard(version)

    def folders(self, version: str) -> Mapping[str, Path]:
        if version not in self._installed:
            raise EngineNotInstalled(f"fake {version} is not installed")
        return {}

    def _merge_settings(self, users: Mapping[str, Any], version: str, setup: GatewaySetup) -> dict[str, Any]:
        """Override the user's settings with the platform's."""
        return {
            **users,
            "version": version,
            "broken": version == BROKEN,
            "name": setup.name,
            "port": self.port,
            "token": setup.token.reveal(),
            "model_url": setup.model_url,
            "model": setup.models[0],
            "channels": abilities.serialize_channels(setup.channels),
        }

    def plan(self, version: str, setup: GatewaySetup) -> GatewayPlan:
        users = as_object(parse_json(setup.existing.get(_SETTINGS, b"{}")))
        settings = json.dumps(self._merge_settings(users, version, setup)).encode()
        return GatewayPlan(files={**_PROGRAMS, _SETTINGS: settings}, argv=["/bin/sh", "-c", _START], env={})

    def redact_configuration(self, content: bytes) -> bytes | None:
        users: dict[str, Any] = {**as_object(parse_json(content)), "channels": {}}
        return json.dumps(without_secrets(users)).encode()

    async def ready(self, dial: Dial) -> bool:
        return await is_answering(dial, self.port, "/health")

    async def health(self, dial: Dial, token: Sensitive[str]) -> str:
        _, detail = await send_json(dial, self.port, "GET /health/detailed", token)
        return str(detail.get("version", ""))
