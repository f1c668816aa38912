"""The fake engine's channels: it connects to nobody, and tells what it has been given.

A bot token with `refused` in it is not taken, neither by a running gateway nor at a start; one with `unwell` is
complained about, token and all.
"""

from collections.abc import Mapping
from typing import Any

from roost.drivers.engine import http
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.channels import (
    CHANNELS,
    ERROR_LIMIT,
    WHATSAPP,
    ChannelAbility,
    ChannelSetup,
    ChannelState,
    HotChannelAbility,
)
from roost.drivers.engine.contract import EngineFailed

Json = Mapping[str, Any]


class FakeChannels(ChannelAbility):
    """A gateway that is given its channels at a start."""

    def __init__(self, port: int) -> None:
        self._port = port

    def supported(self, version: str) -> frozenset[str]:  # noqa: ARG002 - the same for all versions
        return frozenset(CHANNELS) - {WHATSAPP}

    async def status(self, inside: AgentContext) -> Mapping[str, ChannelState]:
        found = (await self._ask(inside, "GET /channels")).get("channels", {})
        return {name: _state(found[name]) for name in CHANNELS if name in found}

    async def _ask(self, inside: AgentContext, order: str, body: Json | None = None) -> Json:
        headers = {"Authorization": f"Bearer {inside.token.reveal()}"}
        status, answer = await http.send_json(inside.warden.dial, self._port, order, headers, body)
        if status != 200:
            raise EngineFailed(f"The gateway answered {status}")
        return answer


class HotFakeChannels(FakeChannels, HotChannelAbility):
    """One that takes them while it runs as well."""

    async def apply(self, inside: AgentContext, channels: Mapping[str, ChannelSetup]) -> None:
        await self._ask(inside, "PUT /channels", written(channels))


def written(channels: Mapping[str, ChannelSetup]) -> dict[str, Any]:
    """The channels as the gateway's settings have them."""
    return {name: _written(setup) for name, setup in channels.items()}


def _written(setup: ChannelSetup) -> Json:
    return {
        "token": setup.bot_token.reveal() if setup.bot_token else None,
        "app_token": setup.app_token.reveal() if setup.app_token else None,
        "dm_policy": setup.dm_policy,
        "allow_from": list(setup.allow_from),
    }


def _state(told: Json) -> ChannelState:
    error = told.get("error")
    return ChannelState(running=True, connected=error is None, last_error=str(error)[:ERROR_LIMIT] if error else None)
