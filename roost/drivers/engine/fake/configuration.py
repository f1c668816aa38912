"""The fake engine's configuration: a JSON object that its gateway reads, validates and writes (`admin_api.py`)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.configuration import (
    ConfigurationAbility,
    ConfigurationChanged,
    ConfigurationRejected,
    ConfigurationVerdict,
    ConfigurationWritten,
    Expectation,
)
from roost.drivers.engine.contract import GatewaySetup
from roost.drivers.engine.gateway_http import send_json
from roost.drivers.model.json_access import as_object, as_string, parse_json

Json = dict[str, Any]

_LIMIT = 1 << 20


Render = Callable[[Mapping[str, Any], str, GatewaySetup], Json]
"""Merges the user's settings with the platform's for a version; returns the content of the file."""


class FakeConfiguration(ConfigurationAbility):
    def __init__(self, port: int, path: str, render: Render) -> None:
        self._port = port
        self._path = path
        self._render = render

    async def read(self, agent: AgentContext) -> str:
        return as_string((await self._call(agent, "GET /config"))[1].get("text"))

    async def check(self, agent: AgentContext, text: str | None = None) -> ConfigurationVerdict:
        _, found = await self._call(agent, "POST /config/check", {} if text is None else {"text": text})
        return ConfigurationVerdict(found.get("valid") is True, as_string(found.get("output")))

    async def write(
        self, agent: AgentContext, setup: GatewaySetup, text: str, is_expected: Expectation | None = None
    ) -> ConfigurationWritten:
        if is_expected is not None and not is_expected(await self.read(agent)):
            raise ConfigurationChanged
        before = await agent.warden.read(self._path, root="home", limit=_LIMIT)
        whole = self._render(as_object(parse_json(text)), agent.version, setup)
        status, found = await self._call(agent, "PUT /config", whole)
        if status == 400:
            raise ConfigurationRejected(as_string(found.get("output")))
        undo = partial(agent.warden.write, self._path, before, root="home", mode=0o600)
        return ConfigurationWritten(found.get("live") is True, undo)

    async def _call(self, agent: AgentContext, request: str, body: Json | None = None) -> tuple[int, Mapping[str, Any]]:
        return await send_json(agent.warden.dial, self._port, request, agent.token, body, expected=(200, 400))
