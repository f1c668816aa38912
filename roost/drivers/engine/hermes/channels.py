"""Hermes's chat channels: their settings in the managed scope, and their states in a running gateway.

Hermes reads channels from variables, and checks a sender twice: the platform's adapter ignores unknown senders, and the
gateway can offer them a pairing code. Both use the user's own files if the list of allowed users is empty, so it never
is. WhatsApp is not supported: it needs Node and a login by QR code, or a public webhook.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from roost.core.sanitize import sanitize_line
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.channels import (
    DISCORD,
    ERROR_LIMIT,
    MAX_PAIRING_REQUESTS,
    NAME_LIMIT,
    SLACK,
    TELEGRAM,
    ChannelAbility,
    ChannelSetup,
    ChannelState,
    PairingCodeAbility,
    PairingRequest,
)
from roost.drivers.engine.gateway_http import GatewayHttpAbility
from roost.drivers.engine.gateway_json import parse_seconds
from roost.drivers.engine.hermes.virtual_environment import PYTHON
from roost.drivers.engine.version_folder import VersionFolder
from roost.drivers.model.json_access import as_object, as_string, parse_json
from roost.warden_client.errors import PathRefused, WardenFileNotFound, WardenFileTooLarge, WardenNotAFile

_LIBRARIES: Mapping[str, str] = {TELEGRAM: "telegram", SLACK: "slack_bolt", DISCORD: "discord"}
_PAIRING_FOLDERS, _FILE_LIMIT = (".hermes/platforms/pairing", ".hermes/pairing"), 64 * 1024
_ANYONE, _NO_ONE = "*", "0"  # digits, because Discord's adapter fetches the list of members to resolve a name
_RUNNING_STATES = ("connected", "connecting", "retrying")
# Without them Hermes resolves these over HTTPS at each start, although the proxy resolves names.
_TELEGRAM_ADDRESSES = "149.154.166.110,149.154.167.220"
_DISABLED_PLUGINS = re.compile(rb"disabled[\"']?\s*:")


class HermesChannels(GatewayHttpAbility, ChannelAbility, PairingCodeAbility):
    reports_messages = False
    code_channels = frozenset({TELEGRAM, SLACK})  # it drops a stranger's message on Discord before it would make one
    approve_command = (PYTHON, "-m", "hermes_cli.main", "pairing", "approve")

    def __init__(self, folder: VersionFolder, port: int, images: Sequence[str] = ()) -> None:
        """`images` are complete versions."""
        super().__init__(port)
        self._folder, self._images = folder, images

    def supported(self, version: str) -> frozenset[str]:
        if self._images:
            return frozenset(_LIBRARIES)
        path = self._folder.get(version)
        return frozenset(name for name, library in _LIBRARIES.items() if any(path.glob(f"lib/*/*/{library}")))

    async def status(self, agent: AgentContext) -> Mapping[str, ChannelState]:
        _, detail = await self._send(agent, "GET /health/detailed")
        platforms = as_object(detail.get("platforms"))
        states = {name: _state(as_object(platforms[name])) for name in _LIBRARIES if name in platforms}
        return {name: replace(state, requests=await _read_requests(agent, name)) for name, state in states.items()}


def channel_variables(channels: Mapping[str, ChannelSetup]) -> dict[str, str]:
    """Return the environment variables of the enabled channels."""
    variables = {"TELEGRAM_FALLBACK_IPS": _TELEGRAM_ADDRESSES} if TELEGRAM in channels else {}
    for name in _LIBRARIES.keys() & channels.keys():
        setup, prefix = channels[name], name.upper()
        open_to_all = setup.dm_policy == "open" and not setup.allow_from
        variables[f"{prefix}_ALLOWED_USERS"] = ",".join(setup.allow_from) or (_ANYONE if open_to_all else _NO_ONE)
        variables[f"{prefix}_ALLOW_ALL_USERS"] = str(open_to_all).lower()
        for kind, token in (("BOT", setup.bot_token), ("APP", setup.app_token)):
            if token is not None:
                variables[f"{prefix}_{kind}_TOKEN"] = token.reveal()
    return variables


def channel_config(channels: Mapping[str, ChannelSetup]) -> dict[str, object]:
    """Return the settings without a variable: disabled channels, and the answer to unknown senders."""
    return {name: _section(name, channels[name]) if name in channels else {"enabled": False} for name in _LIBRARIES}


def plugin_config(channels: Mapping[str, ChannelSetup], users_config: bytes) -> dict[str, object]:
    """Return the setting that spares a start the libraries of disabled channels, more than half of its modules.

    It would replace a list in the user's configuration, which therefore comes first.
    """
    if _DISABLED_PLUGINS.search(users_config):
        return {}
    return {"plugins": {"disabled": [f"{name}-platform" for name in _LIBRARIES if name not in channels]}}


def parse_requests(content: bytes) -> tuple[PairingRequest, ...]:
    """Parse the file of a platform's pending requests; it has only hashes of their codes."""
    rows = [as_object(row) for row in as_object(parse_json(content)).values()]
    found = [(as_string(row.get("user_id")), as_string(row.get("user_name")), row.get("created_at")) for row in rows]
    return tuple(
        PairingRequest(_short(user), _short(name) or None, parse_seconds(created))
        for user, name, created in found[:MAX_PAIRING_REQUESTS]
        if user
    )


async def _read_requests(agent: AgentContext, name: str) -> tuple[PairingRequest, ...]:
    for folder in _PAIRING_FOLDERS:
        with suppress(WardenFileNotFound, WardenFileTooLarge, WardenNotAFile, PathRefused):
            return parse_requests(
                await agent.warden.read(f"{folder}/{name}-pending.json", root="home", limit=_FILE_LIMIT)
            )
    return ()


def _short(text: str) -> str:
    return sanitize_line(text)[:NAME_LIMIT]


def _section(name: str, setup: ChannelSetup) -> dict[str, object]:
    pairing = setup.dm_policy == "pairing"
    section: dict[str, object] = {"enabled": True, "unauthorized_dm_behavior": "pair" if pairing else "ignore"}
    if name == TELEGRAM:  # its adapter has its own list, which must not drop senders before they get a pairing code
        section["allow_from"] = [_ANYONE] if pairing else list(setup.allow_from) or [_ANYONE]
    return section


def _state(platform: Mapping[str, Any]) -> ChannelState:
    state, error = str(platform.get("state", "")), platform.get("error_message")
    last_error = str(error)[:ERROR_LIMIT] if error else None
    return ChannelState(running=state in _RUNNING_STATES, connected=state == "connected", last_error=last_error)
