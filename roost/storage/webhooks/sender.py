"""Send webhook messages: each delivery is an operation, which ends with a success or after the last attempt.

Deliveries are unordered operations with limits for a tenant and for a webhook, so that a slow receiver delays only
itself. A delivery has the id of its operation; an interrupted attempt is made again.
"""

from contextlib import suppress
from typing import Final

from roost import work
from roost.core import clock, ids, log
from roost.core.db import Connection, Database
from roost.core.seal import Sealer, UnsealFailed
from roost.drivers.http_sender.contract import TIMEOUT, DeliveryFailed, HttpSender
from roost.storage.webhooks import store
from roost.storage.webhooks.model import (
    DELIVER,
    MAX_ATTEMPTS,
    RETENTION,
    SEND_TEST,
    SENDING_LIMITS,
    TEST_EVENT,
    DeliveryJob,
    DeliveryOutcome,
    WebhookDelivery,
    WebhookEvent,
    WebhookQueueFull,
    judge_outcome,
    message_headers,
    operation_subject,
    test_event_body,
)
from roost.storage.webhooks.service import add_deliveries
from roost.work import ClaimedOperation, Operation, OperationState, Settlement

RETRIES: Final = 10_000
"""Retries of an operation whose outcome was not recorded: enough for a month without a writable database."""
_SWEEP_BATCH: Final = 500
_TEST_TIMEOUT_SECONDS: Final = TIMEOUT + 5
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
            queue.handle(kind, self.attempt_delivery, retries=RETRIES, limits=SENDING_LIMITS, on_failure=_mark_failed)

    async def send_test(self, tenant_id: str, webhook_id: str) -> WebhookDelivery:
        """Send one test message once and return its delivery. Raises WebhookNotFound, WebhookQueueFull."""
        delivery = await self._db.write(lambda connection: _add_test_delivery(connection, tenant_id, webhook_id))
        with suppress(work.OperationNotFound):  # the webhook was deleted in the meantime
            await self._queue.wait(delivery.id, _TEST_TIMEOUT_SECONDS)
        delivered = await self._db.read(lambda connection: store.find_delivery(connection, webhook_id, delivery.id))
        return delivered or delivery

    async def expire(self) -> int:
        """Delete a batch of expired events with their deliveries; return the number of rows."""
        return await self._db.write(
            lambda connection: store.sweep_events(connection, clock.utc_now() - RETENTION, _SWEEP_BATCH)
        )

    async def attempt_delivery(self, claim: ClaimedOperation) -> Settlement:
        """Make one attempt at a delivery."""
        job = await claim.guard(lambda connection: _begin_attempt(connection, claim))
        if job is None:
            return Settlement(lambda connection: _defer_operation(connection, claim))
        outcome = await self._deliver(job)
        return Settlement(lambda connection: _write_outcome(connection, claim, job, outcome))

    async def _deliver(self, job: DeliveryJob) -> DeliveryOutcome:
        body = job.body.encode()
        try:
            secrets = [
                self._sealer.open(envelope, store.ASSOCIATED_DATA.format(webhook_id=job.webhook.id, id=secret_id))
                for secret_id, envelope in job.secrets
            ]
            headers = message_headers(job.delivery.event_id, body, secrets, clock.utc_now())
            status = await self._http_sender.deliver(job.webhook.tenant_id, job.webhook.url, body, headers)
            outcome = DeliveryOutcome(status)
        except DeliveryFailed as problem:
            outcome = DeliveryOutcome(error=problem.message[:_ERROR_LIMIT])
        except UnsealFailed:
            _log.error("webhook.secret_unreadable", webhook=job.webhook.id)
            outcome = DeliveryOutcome(error="The secret of this webhook could not be opened")
        except Exception:  # noqa: BLE001 - the edge of an attempt: an unexpected error is a failed attempt
            _log.exception("webhook.crashed", webhook=job.webhook.id, delivery=job.delivery.id)
            outcome = DeliveryOutcome(error="The attempt failed")
        _log.info(
            "delivery.attempted",
            webhook=job.webhook.id,
            delivery=job.delivery.id,
            delivered=outcome.succeeded,
            status=outcome.status,
            error=outcome.error,
            attempt=job.delivery.attempts,
        )
        return outcome


def _add_test_delivery(connection: Connection, tenant_id: str, webhook_id: str) -> WebhookDelivery:
    """Add a test delivery with a single attempt. Raises WebhookNotFound, WebhookQueueFull."""
    webhook, now = store.get_webhook(connection, tenant_id, webhook_id, lock=True), clock.utc_now()
    subject = operation_subject(webhook_id)
    count = work.count_operations(connection, DELIVER, subject, OperationState.RUNNING)
    count += work.count_operations(connection, SEND_TEST, subject, OperationState.PENDING, OperationState.RUNNING)
    if count >= SENDING_LIMITS.per_subject:
        raise WebhookQueueFull
    event = WebhookEvent(ids.new_id(), tenant_id, TEST_EVENT, test_event_body(tenant_id, webhook.id, now), now)
    (delivery,) = add_deliveries(connection, SEND_TEST, event, [webhook_id], failures=MAX_ATTEMPTS - 1)
    return delivery


def _begin_attempt(connection: Connection, claim: ClaimedOperation) -> DeliveryJob | None:
    """Begin an attempt and return its delivery; None if that is finished or its webhook is disabled."""
    webhook = store.find_receiver(connection, claim.id)
    if webhook is None or not (webhook.enabled or claim.kind == SEND_TEST):
        return None
    return store.begin_attempt(connection, webhook, claim.id, clock.utc_now())


def _defer_operation(connection: Connection, claim: ClaimedOperation) -> None:
    """End an operation without an attempt; pause it if its webhook is disabled."""
    webhook = store.find_receiver(connection, claim.id, lock=True)
    if webhook is None:
        work.finish_operation(connection, claim, None)
    else:
        work.postpone_operation(connection, claim, clock.utc_now())
        if not webhook.enabled:
            work.pause_operations(connection, claim.kind, claim.subject)


def _mark_failed(connection: Connection, operation: Operation, reason: str) -> None:
    store.fail_delivery(connection, operation.id, reason[:_ERROR_LIMIT], clock.utc_now())


def _write_outcome(connection: Connection, claim: ClaimedOperation, job: DeliveryJob, outcome: DeliveryOutcome) -> None:
    now, jitter = clock.utc_now(), int.from_bytes(ids.random_bytes(2)) / 0xFFFF
    verdict = judge_outcome(job, outcome, now, jitter)
    store.record_attempt(connection, job, outcome, verdict, now)
    if verdict.disable is not None:
        work.pause_operations(connection, DELIVER, claim.subject)
    if verdict.next_at is None:
        work.finish_operation(connection, claim, None)
    else:
        work.postpone_operation(connection, claim, verdict.next_at)
