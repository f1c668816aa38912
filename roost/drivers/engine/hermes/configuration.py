"""Hermes's configuration: the user's own `config.yaml`, which the platform never writes by itself.

What the platform decides stands in Hermes's managed scope and wins whatever is written here. Hermes reads the file at
its start, so a write takes a restart (1 s). It has no schema: valid is a mapping in YAML that it can read.
"""

import json
from functools import partial
from pathlib import Path
from typing import Any

from roost.core.sanitize import sanitize_lines
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.configuration import (
    OUTPUT_LIMIT,
    TEXT_LIMIT,
    ConfigurationAbility,
    ConfigurationRejected,
    ConfigurationVerdict,
    ConfigurationWritten,
)
from roost.drivers.engine.contract import EngineFailed, GatewaySetup
from roost.drivers.model.json_access import as_object, as_string, parse_json
from roost.drivers.runtime.warden_client import WardenFileNotFound

_SCRIPT = Path(__file__).with_name("container_yaml.py").read_text()
_SECONDS = 15.0
_ANSWER = 4 << 20


class HermesConfiguration(ConfigurationAbility):
    """path: the file, in the home. python: the engine's own, in the container."""

    def __init__(self, path: str, python: str) -> None:
        self._path = path
        self._argv = [python, "-I", "-c", _SCRIPT]

    async def read(self, inside: AgentContext) -> str:
        shown = (await self._asked(inside, "show", await self._file(inside))).get("text")
        if not isinstance(shown, str):
            raise EngineFailed("The file is no YAML")
        return shown

    async def check(self, inside: AgentContext, text: str | None = None) -> ConfigurationVerdict:
        found = await self._asked(inside, "check", await self._file(inside) if text is None else text)
        return ConfigurationVerdict(found.get("valid") is True, _words(found), readable=found.get("readable") is True)

    async def write(self, inside: AgentContext, setup: GatewaySetup, text: str) -> ConfigurationWritten:  # noqa: ARG002 - the managed scope has it
        before = await self._file(inside)
        found = await self._asked(inside, "restore", text, before)
        whole = found.get("text")
        if found.get("valid") is not True or not isinstance(whole, str) or len(whole.encode()) > TEXT_LIMIT:
            raise ConfigurationRejected(_words(found))
        put = partial(inside.warden.write, self._path, root="home", mode=0o600)
        await put(whole.encode())
        return ConfigurationWritten(live=False, undo=partial(put, before.encode()))

    async def _file(self, inside: AgentContext) -> str:
        """An agent that has none has an empty one."""
        try:
            return (await inside.warden.read(self._path, root="home", limit=TEXT_LIMIT)).decode("utf-8", "replace")
        except WardenFileNotFound:
            return ""

    async def _asked(self, inside: AgentContext, order: str, text: str, before: str = "") -> dict[str, Any]:
        asked = json.dumps({"text": text, "before": before}).encode()
        ran = await inside.warden.exec([*self._argv, order], timeout=_SECONDS, output_limit=_ANSWER, stdin=asked)
        found = as_object(parse_json(ran.stdout))
        if ran.exit_code or not found:
            raise EngineFailed("Hermes's Python could not read the configuration")
        return found


def _words(found: dict[str, Any]) -> str:
    return sanitize_lines(as_string(found.get("output")))[:OUTPUT_LIMIT]
