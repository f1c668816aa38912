"""Webhooks of a tenant, their deliveries, and the outbox of events.

Changes lock the tenant's row, so that concurrent calls cannot exceed the limit of webhooks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from roost import work
from roost.core import clock, ids, page_cursor
from roost.core.db import Connection, Database
from roost.core.page_cursor import PageCursor
from roost.core.partial_update import given_fields
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.http_sender.contract import HttpSender
from roost.identity import tenants
from roost.storage.files.model import File, FileEvent
from roost.storage.webhooks import store
from roost.storage.webhooks.model import (
    DELIVER,
    PAGE_LIMIT,
    SECRET_BYTES,
    SECRET_OVERLAP,
    SECRETS_LIMIT,
    WEBHOOK_LIMIT,
    DeliveryNotFound,
    DeliveryState,
    EmptyWebhookUpdate,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
    WebhookLimitReached,
    event_type,
    file_event_body,
    format_secret,
    normalize_events,
    operation_subject,
)


@dataclass(frozen=True)
class WebhookUpdate:
    """Changes of a webhook; None keeps a value."""

    url: str | None = None
    events: Sequence[str] | None = None
    description: str | None = None
    enabled: bool | None = None


class WebhookService:
    def __init__(self, db: Database, sealer: Sealer, http_sender: HttpSender) -> None:
        self._db = db
        self._sealer = sealer
        self._http_sender = http_sender

    def add_file_event(self, connection: Connection, change: FileEvent, file: File, previous: File | None) -> None:
        """Add a file's event and its deliveries to the webhooks that accept it, in the caller's transaction."""
        kind = event_type(change, file)
        receivers = [hook for hook in store.list_webhooks(connection, file.tenant_id) if hook.accepts(kind)]
        if not receivers:
            return
        now = clock.utc_now()
        body = file_event_body(change, file, previous, now)
        event = WebhookEvent(ids.new_id(), file.tenant_id, kind, body, now)
        add_deliveries(connection, DELIVER, event, [webhook.id for webhook in receivers])

    async def list(self, tenant_id: str) -> Sequence[Webhook]:
        """List webhooks, oldest first."""
        return await self._db.read(lambda connection: store.list_webhooks(connection, tenant_id))

    async def get(self, tenant_id: str, webhook_id: str) -> Webhook:
        """Return one webhook. Raises WebhookNotFound."""
        return await self._db.read(lambda connection: store.get_webhook(connection, tenant_id, webhook_id))

    async def create(self, tenant_id: str, url: str, update: WebhookUpdate) -> tuple[Webhook, Sensitive[str]]:
        """Create a webhook; return it with its secret. Raises UrlRefused, InvalidWebhookEvents, WebhookLimitReached."""
        self._http_sender.check(url)
        events = normalize_events(update.events or ())

        def add(connection: Connection) -> tuple[Webhook, Sensitive[str]]:
            tenants.lock_tenant(connection, tenant_id)
            if len(store.list_webhooks(connection, tenant_id)) >= WEBHOOK_LIMIT:
                raise WebhookLimitReached
            now, text, is_enabled = clock.utc_now(), update.description or "", update.enabled is not False
            webhook = Webhook(ids.new_id(), tenant_id, url, text, events, is_enabled, None, None, now, now)
            store.insert_webhook(connection, webhook)
            return self._add_secret(connection, webhook, now)

        return await self._db.write(add)

    async def update(self, tenant_id: str, webhook_id: str, update: WebhookUpdate) -> Webhook:
        """Change a webhook; enabling it resets its failures.

        Raises UrlRefused, InvalidWebhookEvents, EmptyWebhookUpdate, WebhookNotFound.
        """
        changes = given_fields(update)
        if not changes:
            raise EmptyWebhookUpdate
        if update.url is not None:
            self._http_sender.check(update.url)
        if update.events is not None:
            changes["events"] = normalize_events(update.events)

        def change(connection: Connection) -> Webhook:
            tenants.lock_tenant(connection, tenant_id)
            old = store.get_webhook(connection, tenant_id, webhook_id, lock=True)
            new = replace(old, **changes, updated_at=clock.utc_now())
            if update.enabled is not None:
                new = replace(new, disabled_reason=None, failing_since=None)
                resume_or_pause = work.resume_operations if update.enabled else work.pause_operations
                resume_or_pause(connection, DELIVER, operation_subject(webhook_id))
            store.update_webhook(connection, new)
            return new

        return await self._db.write(change)

    async def delete(self, tenant_id: str, webhook_id: str) -> None:
        """Delete a webhook and its pending deliveries. Raises WebhookNotFound."""

        def remove(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            store.mark_deleted(connection, store.get_webhook(connection, tenant_id, webhook_id).id, clock.utc_now())
            work.discard_waiting(connection, operation_subject(webhook_id))

        await self._db.write(remove)

    async def rotate_secret(self, tenant_id: str, webhook_id: str) -> tuple[Webhook, Sensitive[str]]:
        """Return a new secret; the replaced one also signs for `SECRET_OVERLAP`. Raises WebhookNotFound."""

        def rotate(connection: Connection) -> tuple[Webhook, Sensitive[str]]:
            tenants.lock_tenant(connection, tenant_id)
            webhook, now = store.get_webhook(connection, tenant_id, webhook_id), clock.utc_now()
            store.retire_secrets(connection, webhook_id, now, now + SECRET_OVERLAP, SECRETS_LIMIT - 1)
            return self._add_secret(connection, webhook, now)

        return await self._db.write(rotate)

    async def list_deliveries(
        self, tenant_id: str, webhook_id: str, state: DeliveryState | None, token: str | None, limit: int
    ) -> tuple[Sequence[WebhookDelivery], str | None]:
        """Return a page, newest first, and the token of the next page. Raises WebhookNotFound, InvalidPageToken."""
        after = PageCursor.parse(token) if token else None
        limit = min(max(limit, 1), PAGE_LIMIT)

        def read(connection: Connection) -> Sequence[WebhookDelivery]:
            store.get_webhook(connection, tenant_id, webhook_id)
            return store.list_deliveries(connection, webhook_id, state, after, limit + 1)

        return page_cursor.split_page(await self._db.read(read), limit)

    async def redeliver(self, tenant_id: str, webhook_id: str, delivery_id: str) -> WebhookDelivery:
        """Send a message again now, with its maximum number of attempts, unless it is being sent.

        Raises WebhookNotFound, DeliveryNotFound.
        """

        def restart(connection: Connection) -> WebhookDelivery:
            store.get_webhook(connection, tenant_id, webhook_id)
            delivery = store.find_delivery(connection, webhook_id, delivery_id)
            if delivery is None:
                raise DeliveryNotFound
            if work.discard_operation(connection, delivery_id):
                store.restart_delivery(connection, delivery_id, clock.utc_now())
                subject = operation_subject(webhook_id)
                work.add_operation(connection, DELIVER, subject, tenant_id=tenant_id, operation_id=delivery_id)
            return store.find_delivery(connection, webhook_id, delivery_id) or delivery

        return await self._db.write(restart)

    def _add_secret(self, connection: Connection, webhook: Webhook, at: datetime) -> tuple[Webhook, Sensitive[str]]:
        secret, secret_id = Sensitive(ids.random_bytes(SECRET_BYTES)), ids.new_id()
        envelope = self._sealer.seal(secret.reveal(), store.ASSOCIATED_DATA.format(webhook_id=webhook.id, id=secret_id))
        store.add_secret(connection, webhook.id, secret_id, envelope, at)
        return webhook, format_secret(secret)


def add_deliveries(
    connection: Connection, kind: str, event: WebhookEvent, webhook_ids: Sequence[str], failures: int = 0
) -> Sequence[WebhookDelivery]:
    """Add an event, its deliveries, which are due now, and the operations that make them.

    failures: those that count already, so that fewer attempts are left.
    """
    due_at = event.created_at
    added = [
        WebhookDelivery(ids.new_id(), webhook_id, event.id, event.type, due_at, due_at, failures=failures)
        for webhook_id in webhook_ids
    ]
    store.add_event(connection, event)
    store.add_deliveries(connection, added)
    for delivery in added:
        subject = operation_subject(delivery.webhook_id)
        work.add_operation(connection, kind, subject, tenant_id=event.tenant_id, operation_id=delivery.id)
    return added
