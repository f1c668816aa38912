"""Channels of an agent and their validation: pure rules, without platform and engine (decision 0043)."""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from roost.core.log import redact_credentials
from roost.core.problem import (
    AccessDenied,
    InvalidInput,
    Problem,
    ResourceConflict,
    ServiceUnavailable,
    TooManyRequests,
)
from roost.core.sanitize import sanitize_line
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import (
    DISCORD,
    ERROR_LIMIT,
    SLACK,
    TELEGRAM,
    WHATSAPP,
    ChannelSetup,
    ChannelState,
    DmPolicy,
)


class UnsupportedChannel(InvalidInput):
    """The name is unknown, or the agent's engine cannot connect this channel."""

    message = "Unsupported channel"


class MissingBotToken(InvalidInput):
    message = "botToken is required (string)"
    field = "botToken"


class MissingAppToken(InvalidInput):
    message = "appToken is required (string)"
    field = "appToken"


class InvalidChannelToken(InvalidInput):
    """The token does not have the platform's format, which the message describes."""

    message = "The token is not valid"


class InvalidAllowFrom(InvalidInput):
    """An id is malformed for the platform, or there are too many ids."""

    message = "allowFrom is not valid"
    field = "allowFrom"


class PairingUnsupported(InvalidInput):
    """The agent's engine needs the code for every approval."""

    message = "This agent's engine approves people by their code only"


class ChannelApprovalFailed(Problem):
    message = "Approval failed"


class TooManyChannelWatches(TooManyRequests):
    message = "Too many watches of the agent's channels"


class ChannelPlanTooSmall(AccessDenied):
    message = "Channels need a paid plan"


class BotTokenInUse(ResourceConflict):
    """Another agent uses the token: two clients with one token would receive each other's messages."""

    message = "This token is used by another agent"


class ChannelTokenUntried(ServiceUnavailable):
    """The platform was not reached, and the present token, which it once accepted, stays."""

    message = "The token was not checked"


class ChannelConfigurationFailed(Problem):
    """The change was rolled back: the previous configuration stays."""

    message = "Configuration failed"


class ChannelRemovalFailed(Problem):
    """The removal was rolled back: the channel stays configured."""

    message = "Removal failed"


LABELS: Mapping[str, str] = {TELEGRAM: "Telegram", SLACK: "Slack", DISCORD: "Discord", WHATSAPP: "WhatsApp"}
ALLOW_FROM_LIMIT = 500
ID_LIMIT = 64
TOKEN_LIMIT = 1024
ANYONE = "*"

_BOT_TOKENS: Mapping[str, tuple[re.Pattern[str], str]] = {
    TELEGRAM: (re.compile(r"[0-9]{6,12}:[A-Za-z0-9_-]{30,50}"), "digits, a colon and 30 to 50 characters"),
    SLACK: (re.compile(r"xoxb-[A-Za-z0-9-]{3,}"), "it starts with xoxb-"),
    DISCORD: (
        re.compile(r"[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{3,}\.[A-Za-z0-9_-]{10,}"),
        "three parts separated by dots",
    ),
    WHATSAPP: (re.compile(r"[!-~]+"), "printable characters without spaces"),
}
_APP_TOKEN = re.compile(r"xapp-[A-Za-z0-9-]{3,}")
_USER_IDS: Mapping[str, tuple[re.Pattern[str], str]] = {
    TELEGRAM: (re.compile(r"[0-9]{1,20}"), "digits"),
    SLACK: (re.compile(r"[UW][A-Z0-9]{1,20}"), "U or W followed by capital letters and digits"),
    DISCORD: (re.compile(r"[0-9]{1,20}"), "digits"),
    WHATSAPP: (re.compile(r"\+?[0-9]{5,15}"), "a phone number with its country code"),
}
_HINT_LENGTH, _MIN_HINTED_LENGTH = 4, 16


@dataclass(frozen=True)
class ChannelRequest:
    """Requested settings of a channel; None keeps the present value, and so does a blank token."""

    bot_token: Sensitive[str] | None = None
    app_token: Sensitive[str] | None = None
    dm_policy: DmPolicy | None = None
    allow_from: Sequence[str] | None = None
    enabled: bool | None = None


@dataclass(frozen=True)
class Channel:
    """A configured channel; `bot_name` is the bot's name, once known, `unchecked` why its tokens are not checked."""

    name: str
    bot_token: Sensitive[str]
    app_token: Sensitive[str] | None
    dm_policy: DmPolicy
    allow_from: tuple[str, ...]
    enabled: bool
    bot_name: str | None = None
    unchecked: str | None = None
    unchecked_at: datetime | None = None

    @property
    def token_hashes(self) -> tuple[str | None, str | None]:
        """Hashes for finding duplicates of sealed tokens; WhatsApp tokens need not be unique."""
        if self.name == WHATSAPP:
            return None, None
        return _hash(self.bot_token), None if self.app_token is None else _hash(self.app_token)

    def to_setup(self) -> ChannelSetup:
        allow_from = () if ANYONE in self.allow_from else self.allow_from
        return ChannelSetup(self.bot_token, self.app_token, self.dm_policy, allow_from)


@dataclass(frozen=True)
class ChannelStatus:
    """A channel with its state in the running gateway, if known."""

    channel: Channel
    state: ChannelState | None


@dataclass(frozen=True)
class ChannelOverview:
    """An agent's channels by name, and the version of its engine."""

    channels: Mapping[str, ChannelStatus]
    version: str


@dataclass(frozen=True)
class ChannelChange:
    """The result of a change; `warning` is a hint for the user."""

    message: str
    bot_name: str | None = None
    warning: str | None = None


def merge_request(name: str, request: ChannelRequest, present: Channel | None) -> Channel:
    """Apply a request to the `present` channel, if there is one. Raises MissingBotToken, MissingAppToken."""
    bot_token = _non_blank(request.bot_token) or (present.bot_token if present else None)
    app_token = (_non_blank(request.app_token) or (present.app_token if present else None)) if name == SLACK else None
    if bot_token is None:
        raise MissingBotToken
    if name == SLACK and app_token is None:
        raise MissingAppToken
    if present is None:
        present = Channel(name, bot_token, app_token, "open", (), enabled=True)
    new = bot_token != present.bot_token
    return replace(
        present,
        bot_token=bot_token,
        app_token=app_token,
        dm_policy=request.dm_policy or present.dm_policy,
        allow_from=present.allow_from if request.allow_from is None else tuple(dict.fromkeys(request.allow_from)),
        enabled=present.enabled if request.enabled is None else request.enabled,
        bot_name=None if new else present.bot_name,
    )


def check_channel(channel: Channel) -> None:
    """Check the format of tokens and user ids. Raises InvalidChannelToken, InvalidAllowFrom."""
    pattern, description = _BOT_TOKENS[channel.name]
    if not _is_valid_token(pattern, channel.bot_token):
        raise InvalidChannelToken(f"This is not a bot token of {LABELS[channel.name]}: {description}")
    if channel.app_token is not None and not _is_valid_token(_APP_TOKEN, channel.app_token):
        raise InvalidChannelToken("This is not an app-level token of Slack: it starts with xapp-")
    if len(channel.allow_from) > ALLOW_FROM_LIMIT:
        raise InvalidAllowFrom(f"allowFrom can have at most {ALLOW_FROM_LIMIT} ids")
    pattern, description = _USER_IDS[channel.name]
    for user in channel.allow_from:
        anyone = user == ANYONE and channel.dm_policy == "open"
        if not anyone and (len(user) > ID_LIMIT or not pattern.fullmatch(user)):
            raise InvalidAllowFrom(f"allowFrom contains an invalid {LABELS[channel.name]} user id: {description}")


def token_hint(token: Sensitive[str]) -> str | None:
    """Return the last characters of a token, or None if it is too short to show them safely."""
    text = token.reveal()
    return text[-_HINT_LENGTH:] if len(text) >= _MIN_HINTED_LENGTH else None


def redact_state(state: ChannelState | None, channel: Channel) -> ChannelState | None:
    """Sanitize the error of a channel's state and remove tokens, which errors may quote."""
    if state is None or state.last_error is None:
        return state
    text = state.last_error
    for token in (channel.bot_token, channel.app_token):
        if token is not None:
            text = text.replace(token.reveal(), "[redacted]")
    return replace(state, last_error=redact_credentials(sanitize_line(text))[:ERROR_LIMIT])


def _non_blank(token: Sensitive[str] | None) -> Sensitive[str] | None:
    text = token.reveal().strip() if token is not None else ""
    return Sensitive(text) if text else None


def _is_valid_token(pattern: re.Pattern[str], token: Sensitive[str]) -> bool:
    return len(token.reveal()) <= TOKEN_LIMIT and pattern.fullmatch(token.reveal()) is not None


def _hash(token: Sensitive[str]) -> str:
    return hashlib.sha256(token.reveal().encode()).hexdigest()
