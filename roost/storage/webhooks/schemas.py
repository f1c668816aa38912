"""Schemas of webhooks and their deliveries."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, StrictBool

from roost.storage.webhooks.model import (
    DESCRIPTION_LIMIT,
    EVENT_TYPES,
    PAGE_DEFAULT,
    PAGE_LIMIT,
    DeliveryState,
    Webhook,
    WebhookDelivery,
    WebhookWithNewSecret,
)
from roost.web.schemas import Moment, StorageSchema, Text

_URL = "https://hooks.example/roost"
_Url = Annotated[Text, Field(max_length=4096, examples=[_URL])]
_Events = Annotated[Sequence[Annotated[Text, Field(max_length=100)]], Field(max_length=100)]
_Description = Annotated[Text, Field(max_length=DESCRIPTION_LIMIT)]


class CreateWebhookRequest(StorageSchema):
    """Without `events` the webhook receives all types."""

    url: _Url
    events: _Events = ()
    description: _Description = ""
    enabled: StrictBool = True


class UpdateWebhookRequest(StorageSchema):
    """Omitted fields keep their values."""

    url: _Url | None = None
    events: _Events | None = None
    description: _Description | None = None
    enabled: StrictBool | None = None


class DeliveryListParameters(StorageSchema):
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_DEFAULT
    state: DeliveryState | None = None
    page_token: Annotated[str | None, Field(alias="pageToken")] = None


class WebhookRecord(StorageSchema):
    """`disabled_reason` is `gone` or `failing` if the server disabled the webhook."""

    id: str
    url: str = Field(examples=[_URL])
    description: str
    events: Annotated[Sequence[str], Field(json_schema_extra={"items": {"enum": list(EVENT_TYPES)}})]
    enabled: bool
    disabled_reason: str | None
    failing_since: Moment | None
    created_at: Moment
    updated_at: Moment


class WebhookWithSecret(WebhookRecord):
    """`secret` is shown only in this response."""

    secret: str


class WebhookList(StorageSchema):
    webhooks: Sequence[WebhookRecord]


class DeliveryRecord(StorageSchema):
    """`status` is the last HTTP status, `error` the reason if there was none. `event_id` is the `webhook-id` header."""

    id: str
    event_id: str
    event_type: str
    state: DeliveryState = Field(examples=[DeliveryState.DELIVERED])
    attempts: int
    status: int | None = Field(examples=[200])
    error: str | None
    created_at: Moment
    attempted_at: Moment | None
    next_attempt_at: Moment | None
    finished_at: Moment | None


class DeliveryList(StorageSchema):
    """`next_page_token` is null on the last page."""

    deliveries: Sequence[DeliveryRecord]
    next_page_token: str | None


def webhook_record(webhook: Webhook) -> WebhookRecord:
    return WebhookRecord(**vars(webhook))


def created_webhook_record(created: WebhookWithNewSecret) -> WebhookWithSecret:
    return WebhookWithSecret(**vars(created.webhook), secret=created.secret.reveal())


def delivery_record(delivery: WebhookDelivery) -> DeliveryRecord:
    is_pending = delivery.state is DeliveryState.PENDING
    return DeliveryRecord(**vars(delivery), next_attempt_at=delivery.next_at if is_pending else None)
