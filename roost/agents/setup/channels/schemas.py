"""API shapes of channels (contract: Channel configuration object; open details follow the reference's clients)."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import ConfigDict, Field, StrictBool

from roost.agents.setup.channels.model import (
    ALLOW_FROM_LIMIT,
    ID_LIMIT,
    TOKEN_LIMIT,
    ChannelChange,
    ChannelOverview,
    ChannelRequest,
    ChannelStatus,
    token_hint,
)
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.channels import WHATSAPP, DmPolicy
from roost.web.schemas import ApiSchema, Moment, Text

_Token = Annotated[Text, Field(max_length=TOKEN_LIMIT)]
_UserId = Annotated[Text, Field(min_length=1, max_length=ID_LIMIT)]


class ChannelConfiguration(ApiSchema):
    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "botToken": "123456789:AAExampleTokenOfATelegramBot0123456",
                    "dmPolicy": "pairing",
                    "allowFrom": ["4711"],
                }
            ]
        }
    )

    bot_token: _Token | None = None
    app_token: _Token | None = None
    dm_policy: DmPolicy | None = None
    allow_from: Annotated[Sequence[_UserId], Field(max_length=ALLOW_FROM_LIMIT)] | None = None
    enabled: StrictBool | None = None

    def to_request(self) -> ChannelRequest:
        bot, app = (Sensitive(token) if token else None for token in (self.bot_token, self.app_token))
        return ChannelRequest(bot, app, self.dm_policy, self.allow_from, self.enabled)


class PairingRequestRecord(ApiSchema):
    """A stranger who waits for approval; without `requestId` only the code that the bot sent approves it."""

    request_id: str | None
    sender_id: str
    sender_name: str | None
    requested_at: Moment | None


class ChannelRecord(ApiSchema):
    """`running`, `connected`, `lastError` and `lastMessageAt` come from the running gateway, and are null without it.

    `lastMessageAt` is also null for engines that do not report messages. `pairingRequests` are the people who wrote
    and may not yet. `unchecked` is why the last check of the tokens got no answer, at `uncheckedAt`; null after
    one that did, and while the gateway is connected with them.
    """

    configured: bool = True
    enabled: bool
    dm_policy: DmPolicy
    allow_from: Sequence[str]
    bot_token_set: bool = True
    bot_token_hint: str | None
    app_token_set: bool
    app_token_hint: str | None
    bot_username: str | None
    unchecked: str | None = None
    unchecked_at: Moment | None = None
    running: bool | None
    connected: bool | None
    last_error: str | None
    last_message_at: Moment | None
    pairing_requests: Sequence[PairingRequestRecord]


class WhatsAppRecord(ChannelRecord):
    """`linked` says whether the QR code has been scanned."""

    linked: bool | None


class ChannelList(ApiSchema):
    """Channels by name, null if not configured; `version` is the engine's."""

    telegram: ChannelRecord | None
    slack: ChannelRecord | None = Field(examples=[None])
    discord: ChannelRecord | None = Field(examples=[None])
    whatsapp: WhatsAppRecord | None = Field(examples=[None])
    version: str


class ChannelChangeRecord(ApiSchema):
    success: bool = True
    message: str
    bot_username: str | None = None
    warning: str | None = None


def channel_list(overview: ChannelOverview) -> ChannelList:
    records = {name: _record(status) for name, status in overview.channels.items()}
    missing = dict.fromkeys(("telegram", "slack", "discord", "whatsapp"))
    return ChannelList.model_validate(missing | records | {"version": overview.version})


def change_record(result: ChannelChange) -> ChannelChangeRecord:
    return ChannelChangeRecord(message=result.message, bot_username=result.bot_name, warning=result.warning)


def _record(status: ChannelStatus) -> ChannelRecord:
    channel, state = status.channel, status.state
    works = state is not None and state.connected
    record = ChannelRecord(
        enabled=channel.enabled,
        dm_policy=channel.dm_policy,
        allow_from=channel.allow_from,
        bot_token_hint=token_hint(channel.bot_token),
        app_token_set=channel.app_token is not None,
        app_token_hint=token_hint(channel.app_token) if channel.app_token else None,
        bot_username=channel.bot_name,
        unchecked=None if works else channel.unchecked,
        unchecked_at=None if works else channel.unchecked_at,
        running=state.running if state else None,
        connected=state.connected if state else None,
        last_error=state.last_error if state else None,
        last_message_at=state.last_message_at if state else None,
        pairing_requests=[PairingRequestRecord(**vars(one)) for one in state.requests] if state else [],
    )
    if channel.name != WHATSAPP:
        return record
    return WhatsAppRecord(**record.model_dump(), linked=state.linked if state else None)
