"""Endpoints of webhooks."""

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field, StrictBool

from roost.identity.authenticator import OrgReader, OrgWriter
from roost.storage.webhooks.model import (
    DESCRIPTION_LIMIT,
    EVENT_TYPES,
    PAGE_DEFAULT,
    PAGE_LIMIT,
    DeliveryState,
    WebhookDelivery,
)
from roost.storage.webhooks.sender import WebhookSender
from roost.storage.webhooks.service import WebhookService, WebhookUpdate
from roost.web.schemas import DataEnvelope, Moment, StorageSchema, Text
from roost.web.service_registry import provide_service

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


def delivery_record(delivery: WebhookDelivery) -> DeliveryRecord:
    is_pending = delivery.state is DeliveryState.PENDING
    return DeliveryRecord(**vars(delivery), next_attempt_at=delivery.next_at if is_pending else None)


Service = Annotated[WebhookService, Depends(provide_service(WebhookService))]
Sender = Annotated[WebhookSender, Depends(provide_service(WebhookSender))]
WebhookId = Annotated[UUID, Path(alias="id")]
DeliveryId = Annotated[UUID, Path(alias="delivery")]
router = APIRouter(prefix="/v3/webhooks", tags=["webhooks"])


@router.get("")
async def list_webhooks(caller: OrgReader, webhooks: Service) -> DataEnvelope[WebhookList]:
    """List the tenant's webhooks, oldest first."""
    listed = await webhooks.list(caller.tenant_id)
    return DataEnvelope(data=WebhookList(webhooks=[WebhookRecord(**vars(webhook)) for webhook in listed]))


@router.post("")
async def create_webhook(
    caller: OrgWriter, body: CreateWebhookRequest, webhooks: Service
) -> DataEnvelope[WebhookWithSecret]:
    """Create a webhook: a URL that receives the events of files. Its signing secret is shown only in this response."""
    created, secret = await webhooks.create(caller.tenant_id, body.url, WebhookUpdate(**vars(body)))
    return DataEnvelope(data=WebhookWithSecret(**vars(created), secret=secret.reveal()))


@router.get("/{id:uuid}")
async def get_webhook(caller: OrgReader, webhook_id: WebhookId, webhooks: Service) -> DataEnvelope[WebhookRecord]:
    """Return a webhook, without its secret."""
    return DataEnvelope(data=WebhookRecord(**vars(await webhooks.get(caller.tenant_id, str(webhook_id)))))


@router.put("/{id:uuid}")
async def update_webhook(
    caller: OrgWriter, webhook_id: WebhookId, body: UpdateWebhookRequest, webhooks: Service
) -> DataEnvelope[WebhookRecord]:
    """Change the given fields of a webhook. Enabling it resets its failures."""
    updated = await webhooks.update(caller.tenant_id, str(webhook_id), WebhookUpdate(**vars(body)))
    return DataEnvelope(data=WebhookRecord(**vars(updated)))


@router.delete("/{id:uuid}")
async def delete_webhook(caller: OrgWriter, webhook_id: WebhookId, webhooks: Service) -> DataEnvelope[None]:
    """Delete a webhook and its pending messages."""
    await webhooks.delete(caller.tenant_id, str(webhook_id))
    return DataEnvelope(data=None)


@router.post("/{id:uuid}/rotate_secret")
async def rotate_secret(caller: OrgWriter, webhook_id: WebhookId, webhooks: Service) -> DataEnvelope[WebhookWithSecret]:
    """Create a signing secret, shown only in this response; the previous one also signs for 24 hours."""
    rotated, secret = await webhooks.rotate_secret(caller.tenant_id, str(webhook_id))
    return DataEnvelope(data=WebhookWithSecret(**vars(rotated), secret=secret.reveal()))


@router.get("/{id:uuid}/deliveries")
async def list_deliveries(
    caller: OrgReader, webhook_id: WebhookId, parameters: Annotated[DeliveryListParameters, Query()], webhooks: Service
) -> DataEnvelope[DeliveryList]:
    """List a webhook's deliveries of the last 7 days with their outcomes, newest first."""
    page, token = await webhooks.list_deliveries(
        caller.tenant_id, str(webhook_id), parameters.state, parameters.page_token, parameters.limit
    )
    records = [delivery_record(delivery) for delivery in page]
    return DataEnvelope(data=DeliveryList(deliveries=records, next_page_token=token))


@router.post("/{id:uuid}/deliveries/{delivery:uuid}/redeliver")
async def redeliver_webhook(
    caller: OrgWriter, webhook_id: WebhookId, delivery_id: DeliveryId, webhooks: Service
) -> DataEnvelope[DeliveryRecord]:
    """Send a message again, now."""
    delivery = await webhooks.redeliver(caller.tenant_id, str(webhook_id), str(delivery_id))
    return DataEnvelope(data=delivery_record(delivery))


@router.post("/{id:uuid}/test")
async def test_webhook(caller: OrgWriter, webhook_id: WebhookId, sender: Sender) -> DataEnvelope[DeliveryRecord]:
    """Send a `webhook.test` message once, also to a disabled webhook, and return the delivery."""
    return DataEnvelope(data=delivery_record(await sender.send_test(caller.tenant_id, str(webhook_id))))
