"""The fake engine's channels, which connect to no platform: messages arrive by `POST /channels/message` of the gateway.

A bot token that contains `refused` is rejected by a running gateway and at a start; for one that contains `unwell` the
gateway reports an error that quotes the token.
"""

from collections.abc import Mapping
from typing import Any

from roost.core.sanitize import sanitize_line
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.channels import (
    CHANNELS,
    ERROR_LIMIT,
    MAX_PAIRING_REQUESTS,
    NAME_LIMIT,
    WHATSAPP,
    ChannelAbility,
    ChannelSetup,
    ChannelState,
    HotChannelAbility,
    PairingAbility,
    PairingRequest,
    PairingRequestNotFound,
)
from roost.drivers.engine.gateway_http import send_json
from roost.drivers.engine.task_json import parse_milliseconds

Json = Mapping[str, Any]


class FakeChannels(ChannelAbility, PairingAbility):
    """Channels of a gateway that receives them only at its start."""

    def __init__(self, port: int) -> None:
        self._port = port

    def supported(self, version: str) -> frozenset[str]:  # noqa: ARG002 - the same for all versions
        return frozenset(CHANNELS) - {WHATSAPP}

    async def status(self, agent: AgentContext) -> Mapping[str, ChannelState]:
        _, answer = await send_json(agent.warden.dial, self._port, "GET /channels", agent.token)
        found = answer.get("channels", {})
        return {name: _state(found[name]) for name in CHANNELS if name in found}

    async def approve_request(self, agent: AgentContext, channel: str, request_id: str) -> None:
        body = {"channel": channel, "requestId": request_id}
        request = "POST /channels/approve"
        status, _ = await send_json(agent.warden.dial, self._port, request, agent.token, body, expected=(200, 404))
        if status == 404:
            raise PairingRequestNotFound


class HotFakeChannels(FakeChannels, HotChannelAbility):
    """Channels of a gateway that also accepts changes while it runs."""

    async def apply(self, agent: AgentContext, channels: Mapping[str, ChannelSetup]) -> None:
        await send_json(agent.warden.dial, self._port, "PUT /channels", agent.token, serialize_channels(channels))


def serialize_channels(channels: Mapping[str, ChannelSetup]) -> dict[str, Any]:
    """Return the channels as they appear in the gateway's settings."""
    return {
        name: {
            "token": setup.bot_token.reveal() if setup.bot_token else None,
            "app_token": setup.app_token.reveal() if setup.app_token else None,
            "dm_policy": setup.dm_policy,
            "allow_from": list(setup.allow_from),
        }
        for name, setup in channels.items()
    }


def _state(channel: Json) -> ChannelState:
    error = channel.get("error")
    return ChannelState(
        running=True,
        connected=error is None,
        last_error=str(error)[:ERROR_LIMIT] if error else None,
        last_message_at=parse_milliseconds(channel.get("lastMessageAtMs")),
        requests=tuple(_request(one) for one in channel.get("requests", [])[:MAX_PAIRING_REQUESTS]),
    )


def _request(one: Json) -> PairingRequest:
    name = sanitize_line(str(one["name"]))[:NAME_LIMIT]
    return PairingRequest(str(one["sender"])[:NAME_LIMIT], name, parse_milliseconds(one["ts"]), str(one["id"]))
