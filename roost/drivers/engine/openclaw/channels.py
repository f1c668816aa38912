"""OpenClaw's chat channels: how they stand in its configuration, how a running gateway takes others, how it fares.

What is the platform's is said in full for each channel, tokens and who may write; all else in a channel's section is
the user's and stays. WhatsApp has no token here: a person links it with a QR code.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any, cast

from roost.core import clock
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.channels import (
    CHANNELS,
    DISCORD,
    ERROR_LIMIT,
    SLACK,
    TELEGRAM,
    WHATSAPP,
    ChannelSetup,
    ChannelState,
    HotChannelAbility,
)
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.openclaw import plugins
from roost.drivers.engine.openclaw.rpc import OpenClawRpc, RpcRefused
from roost.drivers.engine.version_folder import VersionFolder

Json = dict[str, Any]

_OURS = ("enabled", "botToken", "tokenFile", "token", "appToken", "dmPolicy", "allowFrom")
_LISTS = ("allowFrom",)
_APPLY_SECONDS, _PATCH_SECONDS = 90.0, 60.0
_TRIES = 3
_LOOK_AGAIN = 0.2
_TOKEN_KEY: Mapping[str, str] = {TELEGRAM: "botToken", SLACK: "botToken", DISCORD: "token"}
_WHATSAPP = (
    "OpenClaw has no use for WhatsApp's token: link a phone with the QR code that the agent's own page shows under "
    "Channels, or `openclaw channels login --channel whatsapp` in its console"
)


class OpenClawChannels(HotChannelAbility):
    """`folder` holds the versions, `port` is the gateway's."""

    def __init__(self, folder: VersionFolder, port: int) -> None:
        self._folder = folder
        self._port = port

    def supported(self, version: str) -> frozenset[str]:
        return frozenset({TELEGRAM, *plugins.installed(self._folder.get(version))})

    def advice(self, channel: str) -> str | None:
        return _WHATSAPP if channel == WHATSAPP else None

    async def status(self, inside: AgentContext) -> Mapping[str, ChannelState]:
        async with OpenClawRpc.open(inside.warden.dial, self._port, inside.token) as rpc:
            return states(await rpc.call("channels.status"))

    async def apply(self, inside: AgentContext, channels: Mapping[str, ChannelSetup]) -> None:
        try:
            async with (
                asyncio.timeout(_APPLY_SECONDS),
                OpenClawRpc.open(inside.warden.dial, self._port, inside.token) as rpc,
            ):
                await _patch(rpc, channels)
                await _taken(rpc, channels)
        except TimeoutError:
            raise EngineFailed("The gateway did not take its channels in time") from None


def section(channels: Mapping[str, ChannelSetup], users: Mapping[str, Any]) -> Json:
    """`channels` of the configuration: `users`, with ours in place of what is the platform's to say."""
    merged = dict(users)
    for name in CHANNELS:
        rest = {key: value for key, value in _object(users.get(name)).items() if key not in _OURS}
        if name in channels:
            merged[name] = rest | _ours(name, channels[name])
        elif name in users:
            merged[name] = rest | {"enabled": False}
    return merged


def states(told: object) -> Mapping[str, ChannelState]:
    """What `channels.status` tells; each channel's first account is the one that is configured here."""
    channels, accounts = _object(_object(told).get("channels")), _object(_object(told).get("channelAccounts"))
    found: dict[str, ChannelState] = {}
    for name in CHANNELS:
        channel, listed = _object(channels.get(name)), accounts.get(name)
        account = _object(cast("list[object]", listed)[0]) if isinstance(listed, list) and listed else {}
        if channel.get("configured") is True and account.get("enabled") is not False:
            found[name] = _state(channel | account)
    return found


def patch(channels: Mapping[str, ChannelSetup], present: Mapping[str, Any]) -> tuple[Json, list[str]]:
    """The merge patch (RFC 7396) from `present` to these channels, and the lists that it may shorten."""
    change: Json = {}
    for name in CHANNELS:
        there = _object(present.get(name))
        wanted = _ours(name, channels[name]) if name in channels else {"enabled": False}
        if name in channels or there:
            change[name] = {key: None for key in _OURS if key in there} | wanted
    lists = [f"channels.{name}.{key}" for name in change for key in _LISTS if key in _object(present.get(name))]
    return {"channels": change}, lists


async def _patch(rpc: OpenClawRpc, channels: Mapping[str, ChannelSetup]) -> None:
    """Against the file as it is: whoever else writes to it meanwhile is not undone."""
    for left in reversed(range(_TRIES)):
        found = _object(await rpc.call("config.get", timeout=_PATCH_SECONDS))
        change, lists = patch(channels, _object(_object(found.get("parsed")).get("channels")))
        if not change["channels"]:
            return
        order = {"raw": json.dumps(change), "baseHash": found.get("hash"), "replacePaths": lists}
        try:
            await rpc.call("config.patch", order, timeout=_PATCH_SECONDS)
        except RpcRefused as refused:
            if not left or "config changed since" not in refused.message:
                raise
        else:
            return


async def _taken(rpc: OpenClawRpc, channels: Mapping[str, ChannelSetup]) -> None:
    """Returns when the gateway has the channels that it should have, whether or not their platforms answer."""
    deadline = clock.monotonic_seconds() + _PATCH_SECONDS
    while True:
        told = states(await rpc.call("channels.status"))
        if told.keys() == channels.keys():
            return
        if clock.monotonic_seconds() > deadline:
            raise EngineFailed(f"The gateway has {', '.join(told) or 'no channels'} in place of what was asked")
        await asyncio.sleep(_LOOK_AGAIN)


def _ours(name: str, setup: ChannelSetup) -> Json:
    made: Json = {"enabled": True, **_policy(name, setup)}
    if name in _TOKEN_KEY and setup.bot_token is not None:
        made[_TOKEN_KEY[name]] = setup.bot_token.reveal()
    if name == SLACK and setup.app_token is not None:
        made |= {"appToken": setup.app_token.reveal(), "mode": "socket"}
    return made


def _policy(name: str, setup: ChannelSetup) -> Json:
    """`open` here asks for the star; with names in the list it is called `allowlist`."""
    listed = [f"+{user.removeprefix('+')}" if name == WHATSAPP else user for user in setup.allow_from]
    if setup.dm_policy == "pairing":
        return {"dmPolicy": "pairing", "allowFrom": listed}
    return {"dmPolicy": "allowlist", "allowFrom": listed} if listed else {"dmPolicy": "open", "allowFrom": ["*"]}


def _state(told: Json) -> ChannelState:
    error, connected, linked = told.get("lastError"), told.get("connected"), told.get("linked")
    return ChannelState(
        running=told.get("running") is True,
        connected=connected if isinstance(connected, bool) else None,
        linked=linked if isinstance(linked, bool) else None,
        last_error=str(error)[:ERROR_LIMIT] if error else None,
    )


def _object(value: object) -> Json:
    return cast("Json", value) if isinstance(value, dict) else {}
