"""Hermes's configuration: the user's own `config.yaml`, which the platform itself never changes.

The platform's keys are in Hermes's managed scope, which overrides this file. Hermes reads the file at its start, so a
write needs a restart (1 s). There is no schema: any YAML mapping that Hermes can read is valid.
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
    ConfigurationChanged,
    ConfigurationRejected,
    ConfigurationVerdict,
    ConfigurationWritten,
    Expectation,
)
from roost.drivers.engine.contract import EngineFailed, GatewaySetup
from roost.drivers.model.json_access import as_object, as_string, parse_json
from roost.warden_client.errors import WardenFileNotFound

_SCRIPT = Path(__file__).with_name("container_yaml.py").read_text()
_TIMEOUT_SECONDS = 15.0
_OUTPUT_BYTES = 4 << 20


class HermesConfiguration(ConfigurationAbility):
    """The file at `path` in the home, processed by the engine's own `python` in the container."""

    def __init__(self, path: str, python: str) -> None:
        self._path = path
        self._argv = [python, "-I", "-c", _SCRIPT]

    async def read(self, agent: AgentContext) -> str:
        return await self._show(agent, await self._read_file(agent))

    async def _show(self, agent: AgentContext, text: str) -> str:
        shown = (await self._run_script(agent, "show", text)).get("text")
        if not isinstance(shown, str):
            raise EngineFailed("The file is not valid YAML")
        return shown

    async def check(self, agent: AgentContext, text: str | None = None) -> ConfigurationVerdict:
        found = await self._run_script(agent, "check", await self._read_file(agent) if text is None else text)
        return ConfigurationVerdict(found.get("valid") is True, _output(found))

    async def write(
        self,
        agent: AgentContext,
        setup: GatewaySetup,  # noqa: ARG002 - the managed scope has the platform's keys
        text: str,
        is_expected: Expectation | None = None,
    ) -> ConfigurationWritten:
        before = await self._read_file(agent)
        if is_expected is not None and not is_expected(await self._show(agent, before)):
            raise ConfigurationChanged
        found = await self._run_script(agent, "restore", text, before)
        whole = found.get("text")
        if found.get("valid") is not True or not isinstance(whole, str) or len(whole.encode()) > TEXT_LIMIT:
            raise ConfigurationRejected(_output(found))
        put = partial(agent.warden.write, self._path, root="home", mode=0o600)
        await put(whole.encode())
        return ConfigurationWritten(live=False, undo=partial(put, before.encode()))

    async def _read_file(self, agent: AgentContext) -> str:
        """Return the content of the file, empty if it is missing."""
        try:
            return (await agent.warden.read(self._path, root="home", limit=TEXT_LIMIT)).decode("utf-8", "replace")
        except WardenFileNotFound:
            return ""

    async def _run_script(self, agent: AgentContext, command: str, text: str, before: str = "") -> dict[str, Any]:
        stdin = json.dumps({"text": text, "before": before}).encode()
        result = await agent.warden.exec(
            [*self._argv, command], timeout=_TIMEOUT_SECONDS, output_limit=_OUTPUT_BYTES, stdin=stdin
        )
        found = as_object(parse_json(result.stdout))
        if result.exit_code or not found:
            raise EngineFailed("Hermes's Python could not read the configuration")
        return found


def _output(found: dict[str, Any]) -> str:
    return sanitize_lines(as_string(found.get("output")))[:OUTPUT_LIMIT]
