"""Shapes of channels (contract: Channel configuration object); what it leaves open follows the reference's clients."""

from collections.abc import Sequence

from roost.agents.channels.model import (
    Done,
    Overview,
    Shown,
    hint,
)
from roost.drivers.engine.abilities.channels import WHATSAPP, DmPolicy
from roost.web.wire import Wire


class ChannelRecord(Wire):
    """`running`, `connected` and `lastError` are the running gateway's words, null while it says nothing."""

    configured: bool = True
    enabled: bool
    dm_policy: DmPolicy
    allow_from: Sequence[str]
    bot_token_set: bool = True
    bot_token_hint: str | None
    app_token_set: bool
    app_token_hint: str | None
    bot_username: str | None
    running: bool | None
    connected: bool | None
    last_error: str | None


class WhatsAppRecord(ChannelRecord):
    """`linked` is whether a person has scanned the QR code."""

    linked: bool | None


class ChannelList(Wire):
    """null is a channel that is not configured; `version` is the engine's."""

    telegram: ChannelRecord | None
    slack: ChannelRecord | None
    discord: ChannelRecord | None
    whatsapp: WhatsAppRecord | None
    version: str


class ChannelDone(Wire):
    success: bool = True
    message: str
    bot_username: str | None = None
    warning: str | None = None


def listed(overview: Overview) -> ChannelList:
    records = {name: _record(shown) for name, shown in overview.channels.items()}
    none = dict.fromkeys(("telegram", "slack", "discord", "whatsapp"))
    return ChannelList.model_validate(none | records | {"version": overview.version})


def done(result: Done) -> ChannelDone:
    return ChannelDone(message=result.message, bot_username=result.bot_name, warning=result.warning)


def _record(shown: Shown) -> ChannelRecord:
    channel, state = shown.channel, shown.state
    record = ChannelRecord(
        enabled=channel.enabled,
        dm_policy=channel.dm_policy,
        allow_from=channel.allow_from,
        bot_token_hint=hint(channel.bot_token),
        app_token_set=channel.app_token is not None,
        app_token_hint=hint(channel.app_token) if channel.app_token else None,
        bot_username=channel.bot_name,
        running=state.running if state else None,
        connected=state.connected if state else None,
        last_error=state.last_error if state else None,
    )
    if channel.name != WHATSAPP:
        return record
    return WhatsAppRecord(**record.model_dump(), linked=state.linked if state else None)
