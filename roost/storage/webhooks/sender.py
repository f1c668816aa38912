"""Sending of webhook messages: each delivery is an operation, which ends when it is delivered or given up.

Deliveries are unordered operations with limits for a tenant and for a webhook, so that a slow receiver delays only
itself. A delivery has the id of its operation; an attempt that was cut off is made again.
"""

from contextlib import suppress
from typing import Final

from sqlalchemy import Connection

from roost import work
from roost.core import clock, ids, log
from roost.core.db import Database
from roost.core.seal import Sealer, UnsealFailed
from roost.drivers.http_sender.contract import TIMEOUT, DeliveryFailed, HttpSender
from roost.storage.webhooks import message, store
from roost.storage.webhooks.errors import WebhookQueueFull
from roost.storage.webhooks.model import (
    ATTEMPTS,
    DELIVER,
    KEPT,
    LIMITS,
    SEND_TEST,
    DeliveryJob,
    DeliveryOutcome,
    WebhookDelivery,
    WebhookEvent,
    judge_outcome,
    operation_subject,
)
from roost.storage.webhooks.model import TEST as TEST_EVENT
from roost.storage.webhooks.service import add_deliveries, get_webhook, new_delivery
from roost.work import ClaimedOperation, OperationState, Settlement

RETRIES: Final = 10_000
"""With their pauses, enough for a month without a writable database."""
_SWEPT_AT_ONCE: Final = 500
_TEST_SECONDS: Final = TIMEOUT + 5
_ERROR_LIMIT = 255

_log = log.get_logger("webhooks")


class WebhookSender:
    """Handler of the operations that deliver messages to webhooks."""

    def __init__(self, db: Database, queue: work.OperationWorker, sealer: Sealer, http_sender: HttpSender) -> None:
        self._db = db
        self._queue = queue
        self._sealer = sealer
        self._http_sender = http_sender
        for kind in (DELIVER, SEND_TEST):
            queue.handle(kind, self.attempt, retries=RETRIES, limits=LIMITS)

    async def test(self, tenant_id: str, webhook_id: str) -> WebhookDelivery:
        """Send one test message once and return its delivery. Raises WebhookNotFound, WebhookQueueFull."""
        delivery = await self._db.write(lambda connection: _add_test(connection, tenant_id, webhook_id))
        with suppress(work.OperationNotFound):  # the webhook was deleted meanwhile
            await self._queue.wait(delivery.id, _TEST_SECONDS)
        sent = await self._db.read(lambda connection: store.find_delivery(connection, webhook_id, delivery.id))
        return sent or delivery

    async def expire(self) -> int:
        """Delete some events that are too old, with their deliveries, and return the number of rows."""
        return await self._db.write(
            lambda connection: store.sweep_events(connection, clock.utc_now() - KEPT, _SWEPT_AT_ONCE)
        )

    async def attempt(self, claim: ClaimedOperation) -> Settlement:
        """Make one attempt at a delivery."""
        job = await claim.guard(lambda connection: _begin(connection, claim))
        if job is None:
            return Settlement(lambda connection: _defer_operation(connection, claim))
        outcome = await self._deliver(job)
        return Settlement(lambda connection: _record(connection, claim, job, outcome))

    async def _deliver(self, job: DeliveryJob) -> DeliveryOutcome:
        body = job.body.encode()
        try:
            places = [(store.PLACE.format(webhook_id=job.webhook.id, id=name), sealed) for name, sealed in job.secrets]
            secrets = [self._sealer.open(sealed, place) for place, sealed in places]
            headers = message.message_headers(job.delivery.event_id, body, secrets, clock.utc_now())
            outcome = DeliveryOutcome(
                await self._http_sender.deliver(job.webhook.tenant_id, job.webhook.url, body, headers)
            )
        except DeliveryFailed as problem:
            outcome = DeliveryOutcome(error=problem.message[:_ERROR_LIMIT])
        except UnsealFailed:
            _log.error("webhook.secret_unreadable", webhook=job.webhook.id)
            outcome = DeliveryOutcome(error="The secret of this webhook could not be opened")
        except Exception:  # noqa: BLE001 - the edge of an attempt: an unexpected failure counts like any other
            _log.exception("webhook.crashed", webhook=job.webhook.id, delivery=job.delivery.id)
            outcome = DeliveryOutcome(error="The attempt failed")
        _log.info(
            "delivery.attempted",
            webhook=job.webhook.id,
            delivery=job.delivery.id,
            delivered=outcome.taken,
            status=outcome.status,
            error=outcome.error,
            attempt=job.delivery.attempts,
        )
        return outcome


def _add_test(connection: Connection, tenant_id: str, webhook_id: str) -> WebhookDelivery:
    """Add a delivery that has one attempt. Raises WebhookNotFound, WebhookQueueFull."""
    webhook, now = get_webhook(connection, tenant_id, webhook_id, lock=True), clock.utc_now()
    subject = operation_subject(webhook_id)
    sending = work.count_operations(connection, DELIVER, subject, OperationState.RUNNING)
    sending += work.count_operations(connection, SEND_TEST, subject, OperationState.PENDING, OperationState.RUNNING)
    if sending >= LIMITS.per_subject:
        raise WebhookQueueFull
    event = WebhookEvent(ids.new_id(), tenant_id, TEST_EVENT, message.of_test(tenant_id, webhook.id, now), now)
    delivery = new_delivery(webhook_id, event, failures=ATTEMPTS - 1)
    add_deliveries(connection, SEND_TEST, event, [delivery])
    return delivery


def _begin(connection: Connection, claim: ClaimedOperation) -> DeliveryJob | None:
    """Return the delivery that is to be sent; None if it is finished or its webhook takes no messages."""
    webhook = store.find_receiver(connection, claim.id)
    if webhook is None or not (webhook.enabled or claim.kind == SEND_TEST):
        return None
    return store.begin_attempt(connection, webhook, claim.id, clock.utc_now())


def _defer_operation(connection: Connection, claim: ClaimedOperation) -> None:
    """End an operation without an attempt; if its webhook is disabled it waits until the webhook is enabled."""
    webhook = store.find_receiver(connection, claim.id, lock=True)
    if webhook is None:
        work.finish_operation(connection, claim, None)
    else:
        work.postpone_operation(connection, claim, clock.utc_now())
        if not webhook.enabled:
            work.pause_operations(connection, claim.kind, claim.subject)


def _record(connection: Connection, claim: ClaimedOperation, job: DeliveryJob, outcome: DeliveryOutcome) -> None:
    now, chance = clock.utc_now(), int.from_bytes(ids.random_bytes(2)) / 0xFFFF
    verdict = judge_outcome(job, outcome, now, chance)
    store.record_attempt(connection, job, outcome, verdict, now)
    if verdict.disable is not None:
        work.pause_operations(connection, DELIVER, claim.subject)
    if verdict.next_at is None:
        work.finish_operation(connection, claim, None)
    else:
        work.postpone_operation(connection, claim, verdict.next_at)
