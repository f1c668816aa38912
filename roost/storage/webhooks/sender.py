"""The sending: takes what is due from the outbox, has it delivered, and records what became of it.

Deliveries have a loop of their own and not that of `operations`: they are tried for more than a day, and those to
receivers that are slow or dead must take no turn from anything else. What one webhook and one tenant can have on the
way is bounded for the same reason. A delivery is begun by a lease in its row; cut off, it is begun again.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from sqlalchemy import Connection

from roost.core import clock, ids, log
from roost.core.db import Database
from roost.core.seal import Sealer, UnsealFailed
from roost.drivers.http_sender.contract import DeliveryFailed, HttpSender
from roost.storage.webhooks import message, store
from roost.storage.webhooks.errors import WebhookQueueFull
from roost.storage.webhooks.model import (
    ATTEMPTS,
    KEPT,
    LEASE,
    DeliveryJob,
    DeliveryOutcome,
    WebhookDelivery,
    WebhookEvent,
    judge,
)
from roost.storage.webhooks.model import TEST as TEST_EVENT
from roost.storage.webhooks.service import found, new_delivery

_POLL: Final = 0.25
_SWEEP_SECONDS: Final = 3600.0
_SWEPT_AT_ONCE: Final = 500
_AT_ONCE, _OF_ONE_TENANT, _OF_ONE_WEBHOOK = 64, 16, 4
_ERROR_LIMIT = 255

_log = log.get_logger("webhooks")


class WebhookSender:
    def __init__(self, db: Database, sealer: Sealer, courier: HttpSender) -> None:
        self._db = db
        self._sealer = sealer
        self._courier = courier
        self._running: dict[asyncio.Task[WebhookDelivery | None], DeliveryJob] = {}
        self._asked = Counter[str]()  # tests that are about to begin
        self._loops: list[asyncio.Task[None]] = []
        self._wake = asyncio.Event()

    async def start(self) -> None:
        """A SQLite database has a single server: whatever is on its way there, its sender is dead."""
        if self._db.is_sqlite:
            await self._db.write(lambda connection: store.release(connection, clock.utc_now()))
        self._loops = [asyncio.create_task(self._send_always()), asyncio.create_task(self._sweep_always())]

    async def stop(self) -> None:
        """Idempotent. What is cut off is sent again by the next start."""
        tasks = [*self._loops, *self._running]
        self._loops = []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def wake(self) -> None:
        """Look for what is due now, after a commit."""
        self._wake.set()

    async def test(self, tenant_id: str, webhook_id: str) -> WebhookDelivery:
        """Send one message that is of no event, once, and tell what became of it. Raises WebhookMissing, TooBusy."""
        await self._db.read(lambda connection: found(connection, tenant_id, webhook_id))
        running = Counter(job.webhook.id for job in self._running.values())[webhook_id]
        if running + self._asked[webhook_id] >= _OF_ONE_WEBHOOK:
            raise WebhookQueueFull
        self._asked[webhook_id] += 1
        try:
            job = await self._db.write(lambda connection: _begun(connection, tenant_id, webhook_id))
            attempt = self._begin(job)
        finally:
            self._asked -= Counter((webhook_id,))
        return await asyncio.shield(attempt) or job.delivery

    async def _send_always(self) -> None:
        while True:
            self._wake.clear()
            try:
                for job in await self._claim():
                    self._begin(job)
            except Exception:  # noqa: BLE001 - the edge of the loop: the database may come back
                _log.exception("webhooks.claim_failed")
            with suppress(TimeoutError):  # `wait_for` of Python 3.11 loses a cancellation that meets the wake-up
                async with asyncio.timeout(_POLL):
                    await self._wake.wait()

    async def _claim(self) -> Sequence[DeliveryJob]:
        of_webhook = Counter(job.webhook.id for job in self._running.values())
        of_tenant = Counter(job.webhook.tenant_id for job in self._running.values())
        now, room = clock.utc_now(), _AT_ONCE - len(self._running)
        full = [webhook for webhook, count in of_webhook.items() if count >= _OF_ONE_WEBHOOK]
        due = await self._db.read(lambda connection: store.due(connection, now, full, _AT_ONCE)) if room > 0 else ()
        if not due:
            return ()

        def take(connection: Connection) -> Sequence[DeliveryJob]:
            taken: list[DeliveryJob] = []
            tenants = of_tenant.copy()
            for webhook, tenant in due:
                limits = _OF_ONE_WEBHOOK - of_webhook[webhook], _OF_ONE_TENANT - tenants[tenant], room - len(taken)
                if (limit := min(limits)) > 0:
                    jobs = store.claim(connection, webhook, now, now + LEASE, limit)
                    tenants[tenant] += len(jobs)
                    taken += jobs
            return taken

        return await self._db.write(take)

    def _begin(self, job: DeliveryJob) -> asyncio.Task[WebhookDelivery | None]:
        task = asyncio.create_task(self._attempt(job))
        self._running[task] = job
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[WebhookDelivery | None]) -> None:
        del self._running[task]
        self._wake.set()

    async def _attempt(self, job: DeliveryJob) -> WebhookDelivery | None:
        """The delivery as it is after one attempt; None when what became of it could not be recorded."""
        try:
            outcome = await self._deliver(job)
            return await self._db.write(lambda connection: _recorded(connection, job, outcome))
        except Exception:  # noqa: BLE001 - the edge of an attempt: it is begun again when its lease is over
            _log.exception("webhook.not_recorded", webhook=job.webhook.id, delivery=job.delivery.id)
            return None

    async def _deliver(self, job: DeliveryJob) -> DeliveryOutcome:
        body = job.body.encode()
        try:
            places = [(store.PLACE.format(webhook_id=job.webhook.id, id=name), sealed) for name, sealed in job.secrets]
            secrets = [self._sealer.open(sealed, place) for place, sealed in places]
            headers = message.headers(job.delivery.event_id, body, secrets, clock.utc_now())
            outcome = DeliveryOutcome(
                await self._courier.deliver(job.webhook.tenant_id, job.webhook.url, body, headers)
            )
        except DeliveryFailed as problem:
            outcome = DeliveryOutcome(error=problem.message[:_ERROR_LIMIT])
        except UnsealFailed:
            _log.error("webhook.unreadable_secret", webhook=job.webhook.id)
            outcome = DeliveryOutcome(error="The secret of this webhook could not be opened")
        except Exception:  # noqa: BLE001 - the edge of an attempt: what nobody thought of is a failure like any other
            _log.exception("webhook.crashed", webhook=job.webhook.id, delivery=job.delivery.id)
            outcome = DeliveryOutcome(error="The attempt failed")
        what = "webhook.delivered" if outcome.taken else "webhook.not_delivered"
        told = {"status": outcome.status, "error": outcome.error, "attempt": job.delivery.attempts}
        _log.info(what, webhook=job.webhook.id, delivery=job.delivery.id, **told)
        return outcome

    async def _sweep_always(self) -> None:
        while True:
            try:
                while await self._db.write(lambda c: store.sweep(c, clock.utc_now() - KEPT, _SWEPT_AT_ONCE)):
                    pass
            except Exception:  # noqa: BLE001 - the edge of the loop
                _log.exception("webhooks.sweep_failed")
            await asyncio.sleep(_SWEEP_SECONDS)


def _begun(connection: Connection, tenant_id: str, webhook_id: str) -> DeliveryJob:
    """A delivery that is on its way and has one attempt. Raises WebhookMissing."""
    webhook, now = found(connection, tenant_id, webhook_id), clock.utc_now()
    event = WebhookEvent(ids.new_id(), tenant_id, TEST_EVENT, message.of_test(tenant_id, webhook.id, now), now)
    store.add_event(connection, event)
    delivery = new_delivery(webhook_id, event, failures=ATTEMPTS - 1)
    store.add_deliveries(connection, [delivery])
    return store.begin(connection, webhook_id, [delivery.id], now, now + LEASE)[0]


def _recorded(connection: Connection, job: DeliveryJob, outcome: DeliveryOutcome) -> WebhookDelivery | None:
    now, chance = clock.utc_now(), int.from_bytes(ids.random_bytes(2)) / 0xFFFF
    store.record(connection, job, outcome, judge(job, outcome, now, chance), now)
    return store.delivery(connection, job.webhook.id, job.delivery.id)
