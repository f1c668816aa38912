"""Tables of webhooks and all SQL about them."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import JsonText, UtcTime, metadata, page_by_creation, read_one, read_record, record_values
from roost.core.db.sealed import sealed_column
from roost.core.page_cursor import PageCursor
from roost.storage.webhooks.model import (
    DeliveryJob,
    DeliveryOutcome,
    DeliveryState,
    DeliveryVerdict,
    DisabledReason,
    Webhook,
    WebhookDelivery,
    WebhookEvent,
    WebhookNotFound,
)

ASSOCIATED_DATA = "webhook_secrets/{webhook_id}/{id}"

webhooks = sa.Table(
    "webhooks",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False, index=True),
    sa.Column("url", sa.String(2048), nullable=False),
    sa.Column("description", sa.String(500), nullable=False),
    sa.Column("events", JsonText, nullable=False),
    sa.Column("enabled", sa.Boolean, nullable=False),
    sa.Column("disabled_reason", sa.String(16)),
    sa.Column("failing_since", UtcTime),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.Column("deleted_at", UtcTime),
)

webhook_secrets = sa.Table(
    "webhook_secrets",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("webhook_id", sa.String(36), sa.ForeignKey("webhooks.id"), nullable=False, index=True),
    sealed_column("sealed", ASSOCIATED_DATA),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("expires_at", UtcTime),
)

events = sa.Table(
    "webhook_events",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("type", sa.String(64), nullable=False),
    sa.Column("body", sa.Text, nullable=False),
    sa.Column("created_at", UtcTime, nullable=False, index=True),
)

deliveries = sa.Table(
    "webhook_deliveries",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("webhook_id", sa.String(36), sa.ForeignKey("webhooks.id"), nullable=False),
    sa.Column(
        "event_id", sa.String(36), sa.ForeignKey("webhook_events.id", ondelete="CASCADE"), nullable=False, index=True
    ),
    sa.Column("state", sa.String(16), nullable=False),
    sa.Column("attempts", sa.Integer, nullable=False),
    sa.Column("failures", sa.Integer, nullable=False),
    sa.Column("status", sa.Integer),
    sa.Column("error", sa.String(255)),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("attempted_at", UtcTime),
    sa.Column("next_at", UtcTime, nullable=False),
    sa.Column("finished_at", UtcTime),
    sa.Index("ix_webhook_deliveries_webhook_id_created_at_id", "webhook_id", "created_at", "id"),
    sa.Index(
        "ix_webhook_deliveries_unfinished",
        "webhook_id",
        "next_at",
        sqlite_where=sa.text("finished_at IS NULL"),
        postgresql_where=sa.text("finished_at IS NULL"),
    ),
)
_d = deliveries.c
_SELECT_DELIVERY = sa.select(*_d, events.c.type.label("event_type")).join(events, events.c.id == _d.event_id)


def insert_webhook(connection: Connection, webhook: Webhook) -> None:
    connection.execute(webhooks.insert().values(record_values(webhooks, webhook, events=list(webhook.events))))


def update_webhook(connection: Connection, webhook: Webhook) -> None:
    values = record_values(webhooks, webhook, events=list(webhook.events))
    connection.execute(webhooks.update().where(webhooks.c.id == webhook.id).values(values))


def get_webhook(connection: Connection, tenant_id: str, webhook_id: str, *, lock: bool = False) -> Webhook:
    """Return a webhook; with `lock`, no other transaction changes it before this one ends. Raises WebhookNotFound."""
    query = _existing_webhooks(tenant_id).where(webhooks.c.id == webhook_id)
    webhook = read_one(connection, query.with_for_update() if lock else query, _webhook)
    if webhook is None:
        raise WebhookNotFound
    return webhook


def list_webhooks(connection: Connection, tenant_id: str) -> Sequence[Webhook]:
    """List webhooks, oldest first."""
    query = _existing_webhooks(tenant_id).order_by(webhooks.c.created_at, webhooks.c.id)
    return [_webhook(row) for row in connection.execute(query)]


def mark_deleted(connection: Connection, webhook_id: str, at: datetime) -> None:
    """Delete a webhook; the sweep deletes its deliveries."""
    connection.execute(webhook_secrets.delete().where(webhook_secrets.c.webhook_id == webhook_id))
    connection.execute(webhooks.update().where(webhooks.c.id == webhook_id).values(enabled=False, deleted_at=at))


def add_secret(connection: Connection, webhook_id: str, secret_id: str, envelope: bytes, at: datetime) -> None:
    row = {"id": secret_id, "webhook_id": webhook_id, "sealed": envelope, "created_at": at}
    connection.execute(webhook_secrets.insert().values(row))


def retire_secrets(connection: Connection, webhook_id: str, at: datetime, until: datetime, keep: int) -> None:
    """Let the newest `keep` secrets expire at `until` and delete the others, before a new one is added."""
    kept_ids = [row.id for row in list_secrets(connection, webhook_id, at)][:keep]
    of_webhook = webhook_secrets.c.webhook_id == webhook_id
    connection.execute(webhook_secrets.delete().where(of_webhook, webhook_secrets.c.id.not_in(kept_ids)))
    unlimited = webhook_secrets.c.expires_at.is_(None)
    connection.execute(webhook_secrets.update().where(of_webhook, unlimited).values(expires_at=until))


def list_secrets(connection: Connection, webhook_id: str, at: datetime) -> Sequence[Any]:
    """Return the valid secrets, newest first."""
    is_valid = sa.or_(webhook_secrets.c.expires_at.is_(None), webhook_secrets.c.expires_at > at)
    query = webhook_secrets.select().where(webhook_secrets.c.webhook_id == webhook_id, is_valid)
    return connection.execute(query.order_by(webhook_secrets.c.created_at.desc(), webhook_secrets.c.id)).all()


def add_event(connection: Connection, event: WebhookEvent) -> None:
    connection.execute(events.insert().values(record_values(events, event)))


def add_deliveries(connection: Connection, added: Sequence[WebhookDelivery]) -> None:
    connection.execute(deliveries.insert(), [record_values(deliveries, delivery) for delivery in added])


def find_delivery(connection: Connection, webhook_id: str, delivery_id: str) -> WebhookDelivery | None:
    query = _SELECT_DELIVERY.where(_d.webhook_id == webhook_id, _d.id == delivery_id)
    return read_one(connection, query, _delivery)


def list_deliveries(
    connection: Connection, webhook_id: str, state: DeliveryState | None, after: PageCursor | None, limit: int
) -> Sequence[WebhookDelivery]:
    """List deliveries, newest first, after the cursor `after`."""
    query = _SELECT_DELIVERY.where(_d.webhook_id == webhook_id)
    if state is not None:
        query = query.where(_d.state == state)
    ordered = page_by_creation(query, _d.created_at, _d.id, after)
    return [_delivery(row) for row in connection.execute(ordered.limit(limit))]


def restart_delivery(connection: Connection, delivery_id: str, at: datetime) -> None:
    """Make a delivery due now, with its maximum number of attempts again."""
    values = {"state": DeliveryState.PENDING, "failures": 0, "next_at": at, "finished_at": None}
    connection.execute(deliveries.update().where(_d.id == delivery_id).values(values))


def fail_delivery(connection: Connection, delivery_id: str, error: str, at: datetime) -> None:
    """End an unfinished delivery whose attempts could not be recorded."""
    values = {"state": DeliveryState.FAILED, "error": error, "next_at": at, "finished_at": at}
    connection.execute(deliveries.update().where(_d.id == delivery_id, _d.finished_at.is_(None)).values(values))


def find_receiver(connection: Connection, delivery_id: str, *, lock: bool = False) -> Webhook | None:
    """Return the webhook of an unfinished delivery; None if the webhook was deleted."""
    query = sa.select(webhooks).join(deliveries, _d.webhook_id == webhooks.c.id)
    query = query.where(_d.id == delivery_id, _d.finished_at.is_(None), webhooks.c.deleted_at.is_(None))
    return read_one(connection, query.with_for_update(of=webhooks) if lock else query, _webhook)


def begin_attempt(connection: Connection, webhook: Webhook, delivery_id: str, at: datetime) -> DeliveryJob:
    """Record the start of an attempt; return the delivery with its message and the secrets of its webhook."""
    values = {"state": DeliveryState.SENDING, "attempts": _d.attempts + 1, "attempted_at": at}
    connection.execute(deliveries.update().where(_d.id == delivery_id).values(values))
    secrets = [(row.id, row.sealed) for row in list_secrets(connection, webhook.id, at)]
    row = connection.execute(_SELECT_DELIVERY.add_columns(events.c.body).where(_d.id == delivery_id)).one()
    return DeliveryJob(_delivery(row), webhook, row.body, secrets)


def record_attempt(
    connection: Connection, job: DeliveryJob, outcome: DeliveryOutcome, verdict: DeliveryVerdict, at: datetime
) -> None:
    """Record the outcome of an attempt at its delivery and its webhook."""
    values: dict[str, Any] = {
        "state": verdict.state,
        "failures": _d.failures + (0 if outcome.succeeded else 1),
        "status": outcome.status,
        "error": outcome.error,
        "next_at": verdict.next_at or at,
        "finished_at": at if verdict.next_at is None else None,
    }
    connection.execute(deliveries.update().where(_d.id == job.delivery.id).values(values))
    query = webhooks.update().where(webhooks.c.id == job.webhook.id)
    if outcome.succeeded:
        connection.execute(query.where(webhooks.c.failing_since.is_not(None)).values(failing_since=None))
    else:
        connection.execute(query.where(webhooks.c.failing_since.is_(None)).values(failing_since=at))
    if verdict.disable is not None:
        connection.execute(query.where(webhooks.c.enabled).values(enabled=False, disabled_reason=verdict.disable))


def sweep_events(connection: Connection, before: datetime, limit: int) -> int:
    """Delete a batch of events from before a time and of rows of deleted webhooks; return the number of rows."""
    old = sa.select(events.c.id).where(events.c.created_at < before).limit(limit)
    count = connection.execute(events.delete().where(events.c.id.in_(old.scalar_subquery()))).rowcount
    is_deleted = webhooks.c.deleted_at.is_not(None)
    orphaned = sa.select(_d.id).join(webhooks, webhooks.c.id == _d.webhook_id).where(is_deleted).limit(limit)
    count += connection.execute(deliveries.delete().where(_d.id.in_(orphaned.scalar_subquery()))).rowcount
    has_no_deliveries = ~sa.exists().where(_d.webhook_id == webhooks.c.id)
    return count + connection.execute(webhooks.delete().where(is_deleted, has_no_deliveries)).rowcount


def _existing_webhooks(tenant_id: str) -> sa.Select[Any]:
    return sa.select(webhooks).where(webhooks.c.tenant_id == tenant_id, webhooks.c.deleted_at.is_(None))


def _webhook(row: Any) -> Webhook:
    reason = DisabledReason(row.disabled_reason) if row.disabled_reason else None
    return read_record(Webhook, row, events=tuple(row.events), disabled_reason=reason)


def _delivery(row: Any) -> WebhookDelivery:
    return read_record(WebhookDelivery, row, state=DeliveryState(row.state))
