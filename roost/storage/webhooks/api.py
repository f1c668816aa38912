"""Endpoints of webhooks."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query

from roost.identity.authenticator import OrgReader, OrgWriter
from roost.storage.webhooks import schemas
from roost.storage.webhooks.sender import WebhookSender
from roost.storage.webhooks.service import WebhookService, WebhookUpdate
from roost.web.schemas import DataEnvelope
from roost.web.service_registry import provide_service

Service = Annotated[WebhookService, Depends(provide_service(WebhookService))]
Sender = Annotated[WebhookSender, Depends(provide_service(WebhookSender))]
WebhookId = Annotated[UUID, Path(alias="id")]
DeliveryId = Annotated[UUID, Path(alias="delivery")]
router = APIRouter(prefix="/v3/webhooks", tags=["webhooks"])


@router.get("")
async def list_webhooks(caller: OrgReader, webhooks: Service) -> DataEnvelope[schemas.WebhookList]:
    """List the tenant's webhooks, oldest first."""
    listed = await webhooks.list(caller.tenant_id)
    return DataEnvelope(data=schemas.WebhookList(webhooks=[schemas.webhook_record(webhook) for webhook in listed]))


@router.post("")
async def create_webhook(
    caller: OrgWriter, body: schemas.CreateWebhookRequest, webhooks: Service
) -> DataEnvelope[schemas.WebhookWithSecret]:
    """Create a webhook: a URL that receives the events of files. Its signing secret is shown only in this response."""
    created = await webhooks.create(caller.tenant_id, body.url, WebhookUpdate(**vars(body)))
    return DataEnvelope(data=schemas.created_webhook_record(created))


@router.get("/{id:uuid}")
async def get_webhook(
    caller: OrgReader, webhook_id: WebhookId, webhooks: Service
) -> DataEnvelope[schemas.WebhookRecord]:
    """Return a webhook, without its secret."""
    return DataEnvelope(data=schemas.webhook_record(await webhooks.get(caller.tenant_id, str(webhook_id))))


@router.put("/{id:uuid}")
async def update_webhook(
    caller: OrgWriter, webhook_id: WebhookId, body: schemas.UpdateWebhookRequest, webhooks: Service
) -> DataEnvelope[schemas.WebhookRecord]:
    """Change the given fields of a webhook. Enabling it resets its failures."""
    updated = await webhooks.update(caller.tenant_id, str(webhook_id), WebhookUpdate(**vars(body)))
    return DataEnvelope(data=schemas.webhook_record(updated))


@router.delete("/{id:uuid}")
async def delete_webhook(caller: OrgWriter, webhook_id: WebhookId, webhooks: Service) -> DataEnvelope[None]:
    """Delete a webhook and its pending messages."""
    await webhooks.delete(caller.tenant_id, str(webhook_id))
    return DataEnvelope(data=None)


@router.post("/{id:uuid}/rotate_secret")
async def rotate_secret(
    caller: OrgWriter, webhook_id: WebhookId, webhooks: Service
) -> DataEnvelope[schemas.WebhookWithSecret]:
    """Create a signing secret, shown only in this response; the previous one also signs for 24 hours."""
    rotated = await webhooks.rotate_secret(caller.tenant_id, str(webhook_id))
    return DataEnvelope(data=schemas.created_webhook_record(rotated))


@router.get("/{id:uuid}/deliveries")
async def list_deliveries(
    caller: OrgReader,
    webhook_id: WebhookId,
    parameters: Annotated[schemas.DeliveryListParameters, Query()],
    webhooks: Service,
) -> DataEnvelope[schemas.DeliveryList]:
    """List a webhook's deliveries of the last 7 days with their outcomes, newest first."""
    page, token = await webhooks.list_deliveries(
        caller.tenant_id, str(webhook_id), parameters.state, parameters.page_token, parameters.limit
    )
    records = [schemas.delivery_record(delivery) for delivery in page]
    return DataEnvelope(data=schemas.DeliveryList(deliveries=records, next_page_token=token))


@router.post("/{id:uuid}/deliveries/{delivery:uuid}/redeliver")
async def redeliver_webhook(
    caller: OrgWriter, webhook_id: WebhookId, delivery_id: DeliveryId, webhooks: Service
) -> DataEnvelope[schemas.DeliveryRecord]:
    """Send a message again, now."""
    delivery = await webhooks.redeliver(caller.tenant_id, str(webhook_id), str(delivery_id))
    return DataEnvelope(data=schemas.delivery_record(delivery))


@router.post("/{id:uuid}/test")
async def test_webhook(
    caller: OrgWriter, webhook_id: WebhookId, sender: Sender
) -> DataEnvelope[schemas.DeliveryRecord]:
    """Send a `webhook.test` message once, also to a disabled webhook, and return the delivery."""
    return DataEnvelope(data=schemas.delivery_record(await sender.send_test(caller.tenant_id, str(webhook_id))))
