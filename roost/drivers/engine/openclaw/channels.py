"""OpenClaw's chat channels: their configuration, changes in a running gateway, and their states.

The platform sets all keys for tokens and allowed users of each channel; other keys of a channel's section belong to
the user and are preserved. WhatsApp has no token: a user links a phone with a QR code.
"""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from roost.core import clock
from roost.core.sanitize import sanitize_line
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.channels import (
    CHANNELS,
    DISCORD,
    ERROR_LIMIT,
    MAX_PAIRING_REQUESTS,
    NAME_LIMIT,
    SLACK,
    TELEGRAM,
    WHATSAPP,
    ChannelSetup,
    ChannelState,
    HotChannelAbility,
    PairingAbility,
    PairingCodeAbility,
    PairingRequest,
    PairingRequestNotFound,
)
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.gateway_json import parse_milliseconds
from roost.drivers.engine.openclaw.install import PLUGINS, installed_plugins
from roost.drivers.engine.openclaw.rpc import OpenClawRpc, RpcRefused
from roost.drivers.engine.version_folder import VersionFolder
from roost.drivers.model.json_access import Json, as_list, as_object, as_string

_PLATFORM_KEYS = ("enabled", "botToken", "tokenFile", "token", "appToken", "dmPolicy", "allowFrom")
_APPLY_SECONDS, _PATCH_SECONDS = 90.0, 60.0
_ATTEMPTS = 3
_POLL_SECONDS = 0.2
_TOKEN_KEY: Mapping[str, str] = {TELEGRAM: "botToken", SLACK: "botToken", DISCORD: "token"}
_WHATSAPP = (
    "OpenClaw does not use a token for WhatsApp: link a phone with the QR code that the agent's own page shows under "
    "Channels, or `openclaw channels login --channel whatsapp` in its console"
)


class OpenClawChannels(HotChannelAbility, PairingAbility, PairingCodeAbility):
    code_channels = frozenset(CHANNELS)

    def __init__(self, folder: VersionFolder, program: Sequence[str], images: Sequence[str]) -> None:
        """`program` is the command line of OpenClaw in the container; `images` are complete versions."""
        self._folder, self._images = folder, images
        self.approve_command = (*program, "pairing", "approve")

    def supported(self, version: str) -> frozenset[str]:
        return frozenset({TELEGRAM, *(PLUGINS if self._images else installed_plugins(self._folder.get(version)))})

    def advice(self, channel: str) -> str | None:
        return _WHATSAPP if channel == WHATSAPP else None

    async def status(self, agent: AgentContext) -> Mapping[str, ChannelState]:
        async with OpenClawRpc.open(agent.warden.dial, agent.token) as rpc:
            states = parse_states(await rpc.call("channels.status"))
            if not states:
                return states
            requests = parse_requests(await rpc.call("channels.pairing.list"))
        return {name: replace(state, requests=requests.get(name, ())) for name, state in states.items()}

    async def approve_request(self, agent: AgentContext, channel: str, request_id: str) -> None:
        async with OpenClawRpc.open(agent.warden.dial, agent.token) as rpc:
            rows = _pairing_rows(await rpc.call("channels.pairing.list"))
            wanted = (channel, request_id)
            request = next((row for row in rows if (row.get("channel"), row.get("requestId")) == wanted), None)
            if request is None:
                raise PairingRequestNotFound
            params = {key: request.get(key) for key in ("channel", "accountId", "requestId")}
            await rpc.call("channels.pairing.approve", {**params, "notify": True})  # the bot tells the sender

    async def apply(self, agent: AgentContext, channels: Mapping[str, ChannelSetup]) -> None:
        try:
            async with asyncio.timeout(_APPLY_SECONDS), OpenClawRpc.open(agent.warden.dial, agent.token) as rpc:
                await _patch(rpc, channels)
                await _wait_until_applied(rpc, channels)
        except TimeoutError:
            raise EngineFailed("The gateway did not accept its channels in time") from None


def merge_channels(channels: Mapping[str, ChannelSetup], users: Mapping[str, Any]) -> Json:
    """Return the section `channels` of the configuration: the user's, with the platform's keys replaced."""
    merged = dict(users)
    for name in CHANNELS:
        rest = {key: value for key, value in as_object(users.get(name)).items() if key not in _PLATFORM_KEYS}
        if name in channels:
            merged[name] = rest | _platform_section(name, channels[name])
        elif name in users:
            merged[name] = rest | {"enabled": False}
    return merged


def parse_states(found: object) -> Mapping[str, ChannelState]:
    """Parse the result of `channels.status`; the platform configures the first account of each channel."""
    channels, accounts = as_object(as_object(found).get("channels")), as_object(as_object(found).get("channelAccounts"))
    states: dict[str, ChannelState] = {}
    for name in CHANNELS:
        channel, listed = as_object(channels.get(name)), as_list(accounts.get(name))
        account = as_object(listed[0]) if listed else {}
        if channel.get("configured") is True and account.get("enabled") is not False:
            states[name] = _state(channel | account)
    return states


def build_patch(channels: Mapping[str, ChannelSetup], present: Mapping[str, Any]) -> tuple[Json, list[str]]:
    """Return the merge patch (RFC 7396) from `present` to these channels, and the lists that it may shorten."""
    change: Json = {}
    for name in CHANNELS:
        section = as_object(present.get(name))
        wanted = _platform_section(name, channels[name]) if name in channels else {"enabled": False}
        if name in channels or section:
            change[name] = {key: None for key in _PLATFORM_KEYS if key in section} | wanted
    lists = [f"channels.{name}.allowFrom" for name in change if "allowFrom" in as_object(present.get(name))]
    return {"channels": change}, lists


async def _patch(rpc: OpenClawRpc, channels: Mapping[str, ChannelSetup]) -> None:
    """Patch the present file, and start again if it changes meanwhile, to preserve concurrent changes."""
    for left in reversed(range(_ATTEMPTS)):
        found = as_object(await rpc.call("config.get", timeout=_PATCH_SECONDS))
        change, lists = build_patch(channels, as_object(as_object(found.get("parsed")).get("channels")))
        if not change["channels"]:
            return
        params = {"raw": json.dumps(change), "baseHash": found.get("hash"), "replacePaths": lists}
        try:
            await rpc.call("config.patch", params, timeout=_PATCH_SECONDS)
        except RpcRefused as refused:
            if not left or "config changed since" not in refused.message:
                raise
        else:
            return


async def _wait_until_applied(rpc: OpenClawRpc, channels: Mapping[str, ChannelSetup]) -> None:
    """Wait until the gateway has exactly these channels, whether or not their platforms answer."""
    deadline = clock.monotonic_seconds() + _PATCH_SECONDS
    while True:
        states = parse_states(await rpc.call("channels.status"))
        if states.keys() == channels.keys():
            return
        if clock.monotonic_seconds() > deadline:
            expected, found = (", ".join(sorted(names)) or "none" for names in (channels, states))
            raise EngineFailed(f"The gateway has the channels {found}, expected {expected}")
        await asyncio.sleep(_POLL_SECONDS)


def _platform_section(name: str, setup: ChannelSetup) -> Json:
    section: Json = {"enabled": True, **_policy(name, setup)}
    if name in _TOKEN_KEY and setup.bot_token is not None:
        section[_TOKEN_KEY[name]] = setup.bot_token.reveal()
    if name == SLACK and setup.app_token is not None:
        section |= {"appToken": setup.app_token.reveal(), "mode": "socket"}
    return section


def _policy(name: str, setup: ChannelSetup) -> Json:
    """Return the policy in OpenClaw's terms: `open` requires `*`, and `open` with a list is `allowlist`."""
    listed = [f"+{user.removeprefix('+')}" if name == WHATSAPP else user for user in setup.allow_from]
    if setup.dm_policy == "pairing":
        return {"dmPolicy": "pairing", "allowFrom": listed}
    return {"dmPolicy": "allowlist", "allowFrom": listed} if listed else {"dmPolicy": "open", "allowFrom": ["*"]}


def _state(account: Json) -> ChannelState:
    error, connected, linked = account.get("lastError"), account.get("connected"), account.get("linked")
    return ChannelState(
        running=account.get("running") is True,
        connected=connected if isinstance(connected, bool) else None,
        linked=linked if isinstance(linked, bool) else None,
        last_error=str(error)[:ERROR_LIMIT] if error else None,
        last_message_at=parse_milliseconds(account.get("lastInboundAt")),
    )


def parse_requests(found: object) -> Mapping[str, tuple[PairingRequest, ...]]:
    """Parse the result of `channels.pairing.list`."""
    requests: dict[str, tuple[PairingRequest, ...]] = {}
    for row in _pairing_rows(found):
        name, request_id, sender = (as_string(row.get(key)) for key in ("channel", "requestId", "senderId"))
        others = requests.get(name, ())
        if name and request_id and sender and len(others) < MAX_PAIRING_REQUESTS:
            request = PairingRequest(_short(sender), _sender_name(row), _parse_time(row.get("createdAt")), request_id)
            requests[name] = (*others, request)
    return requests


def _pairing_rows(found: object) -> list[Json]:
    return [as_object(row) for row in as_list(as_object(found).get("requests"))]


def _sender_name(request: Json) -> str | None:
    """Return first and last name, and the user name after an @."""
    about = as_object(request.get("metadata"))
    first, last, user, name = (as_string(about.get(key)) for key in ("firstName", "lastName", "username", "name"))
    handle = f"@{user.removeprefix('@')}" if user else ""
    return _short(" ".join(filter(None, [first or name, last, handle]))) or None


def _short(text: str) -> str:
    return sanitize_line(text)[:NAME_LIMIT]


def _parse_time(value: object) -> datetime | None:
    """Return the time of an ISO 8601 text with an offset, None for anything else."""
    try:
        found = datetime.fromisoformat(as_string(value))
    except ValueError:
        return None
    return found if found.tzinfo else None
