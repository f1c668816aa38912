"""The fake engine's configuration: one JSON object, read, judged and written by its gateway (`fake_admin_api.py`)."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from roost.drivers.engine import http
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.configuration import (
    ConfigurationAbility,
    ConfigurationRejected,
    ConfigurationVerdict,
    ConfigurationWritten,
)
from roost.drivers.engine.contract import EngineFailed, GatewaySetup
from roost.drivers.model.json_access import as_object, as_string, parse_json

Json = dict[str, Any]

_LIMIT = 1 << 20


Render = Callable[[Mapping[str, Any], str, GatewaySetup], Json]
"""The user's settings and a version to the whole file."""


class FakeConfiguration(ConfigurationAbility):
    def __init__(self, port: int, path: str, render: Render) -> None:
        self._port = port
        self._path = path
        self._render = render

    async def read(self, inside: AgentContext) -> str:
        return as_string((await self._asked(inside, "GET /config"))[1].get("text"))

    async def check(self, inside: AgentContext, text: str | None = None) -> ConfigurationVerdict:
        _, found = await self._asked(inside, "POST /config/check", {} if text is None else {"text": text})
        return ConfigurationVerdict(
            found.get("valid") is True, as_string(found.get("output")), found.get("readable") is True
        )

    async def write(self, inside: AgentContext, setup: GatewaySetup, text: str) -> ConfigurationWritten:
        before = await inside.warden.read(self._path, root="home", limit=_LIMIT)
        whole = self._render(as_object(parse_json(text)), inside.version, setup)
        status, found = await self._asked(inside, "PUT /config", whole)
        if status == 400:
            raise ConfigurationRejected(as_string(found.get("output")))
        undo = partial(inside.warden.write, self._path, before, root="home", mode=0o600)
        return ConfigurationWritten(found.get("live") is True, undo)

    async def _asked(self, inside: AgentContext, order: str, body: Json | None = None) -> tuple[int, Mapping[str, Any]]:
        headers = {"Authorization": f"Bearer {inside.token.reveal()}"}
        status, found = await http.send_json(inside.warden.dial, self._port, order, headers, body)
        if status not in (200, 400):
            raise EngineFailed(f"The gateway answered {status}")
        return status, found
