"""Hermes's chat channels: how they are written into the managed scope, and what a running gateway says of them.

Hermes reads channels from variables and asks them at two doors: the adapter's, which drops strangers without a word,
and the gateway's, which may offer them a code. A list that is never empty keeps both from falling back to what the
user's own files say. WhatsApp is refused: Hermes wants Node and a login by QR code for it, or a public webhook.
"""

from collections.abc import Mapping
from typing import Any, cast

from roost.drivers.engine import http
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.channels import (
    DISCORD,
    ERROR_LIMIT,
    SLACK,
    TELEGRAM,
    ChannelAbility,
    ChannelSetup,
    ChannelState,
)
from roost.drivers.engine.version_folder import VersionFolder

_LIBRARIES: Mapping[str, str] = {TELEGRAM: "telegram", SLACK: "slack_bolt", DISCORD: "discord"}
_ANYBODY, _NOBODY = "*", "0"  # digits: a name would have Discord's adapter ask for the list of members
_AT_WORK = ("connected", "connecting", "retrying")
# Hermes asks two name servers over HTTPS for these at each start, and then leaves names to the proxy after all.
_TELEGRAM_ADDRESSES = "149.154.166.110,149.154.167.220"


class HermesChannels(ChannelAbility):
    """`folder` holds the versions, `port` is the gateway's."""

    def __init__(self, folder: VersionFolder, port: int) -> None:
        self._folder = folder
        self._port = port

    def supported(self, version: str) -> frozenset[str]:
        path = self._folder.get(version)
        return frozenset(name for name, library in _LIBRARIES.items() if any(path.glob(f"lib/*/*/{library}")))

    async def status(self, inside: AgentContext) -> Mapping[str, ChannelState]:
        bearer = {"Authorization": f"Bearer {inside.token.reveal()}"}
        detail = await http.get_json(inside.warden.dial, self._port, "/health/detailed", bearer)
        told = _object(detail.get("platforms"))
        return {name: _state(_object(told[name])) for name in _LIBRARIES if name in told}


def environment(channels: Mapping[str, ChannelSetup]) -> dict[str, str]:
    """The variables of the channels that are on."""
    made = {"TELEGRAM_FALLBACK_IPS": _TELEGRAM_ADDRESSES} if TELEGRAM in channels else {}
    for name in _LIBRARIES.keys() & channels.keys():
        setup, prefix = channels[name], name.upper()
        anybody = setup.dm_policy == "open" and not setup.allow_from
        made[f"{prefix}_ALLOWED_USERS"] = ",".join(setup.allow_from) or (_ANYBODY if anybody else _NOBODY)
        made[f"{prefix}_ALLOW_ALL_USERS"] = str(anybody).lower()
        for kind, token in (("BOT", setup.bot_token), ("APP", setup.app_token)):
            if token is not None:
                made[f"{prefix}_{kind}_TOKEN"] = token.reveal()
    return made


def config(channels: Mapping[str, ChannelSetup]) -> dict[str, object]:
    """What the variables cannot say: that the others are off, and what a stranger is told."""
    return {name: _section(name, channels[name]) if name in channels else {"enabled": False} for name in _LIBRARIES}


def _section(name: str, setup: ChannelSetup) -> dict[str, object]:
    pairing = setup.dm_policy == "pairing"
    section: dict[str, object] = {"enabled": True, "unauthorized_dm_behavior": "pair" if pairing else "ignore"}
    if name == TELEGRAM:  # its door has a list of its own, and for a code a stranger has to come through
        section["allow_from"] = [_ANYBODY] if pairing else list(setup.allow_from) or [_ANYBODY]
    return section


def _state(told: Mapping[str, Any]) -> ChannelState:
    state, error = str(told.get("state", "")), told.get("error_message")
    shown = str(error)[:ERROR_LIMIT] if error else None
    return ChannelState(running=state in _AT_WORK, connected=state == "connected", last_error=shown)


def _object(value: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
