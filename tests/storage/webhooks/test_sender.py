"""Delivery of events to real receivers on loopback, at least once, with retries up to a limit."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

import httpx2
import pytest
from standardwebhooks.webhooks import Webhook as Reader

from roost import work
from roost.core import clock
from roost.core.db import Connection, Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.http_sender.guarded import GuardedHttpSender
from roost.storage.content.model import ContentNetwork
from roost.storage.webhooks import sender, store
from roost.storage.webhooks.model import (
    DELIVER,
    MAX_ATTEMPTS,
    RETENTION,
    SENDING_LIMITS,
    TEST_EVENT,
    DeliveryState,
    DisabledReason,
    Webhook,
    WebhookNotFound,
    WebhookQueueFull,
)
from roost.storage.webhooks.service import WebhookUpdate
from roost.work import ClaimedOperation, LeaseLost, Operation, OperationLimits, OperationState, worker
from roost.work import store as work_store
from roost.work.model import FreeSlots
from tests.storage.storage_env import StorageEnv
from tests.storage.webhooks.webhook_env import FakeClock, WebhookEnv, until
from tests.support.receiver import Receiver, receiving

NOWHERE = "http://127.0.0.1:9/hook"


@pytest.fixture
def webhook_env(env: StorageEnv, database: Database, monkeypatch: pytest.MonkeyPatch) -> WebhookEnv:
    monkeypatch.setattr(worker, "_POLL_SECONDS", 0.02)
    return WebhookEnv(env, database)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as running:
        yield running


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    fake = FakeClock()
    monkeypatch.setattr(clock, "utc_now", fake)
    return fake


async def test_an_event_is_delivered_with_a_valid_signature(webhook_env: WebhookEnv, receiver: Receiver) -> None:
    created = await webhook_env.create(receiver.url)
    async with webhook_env.sending():
        file = await webhook_env.add()
        (message,) = await receiver.wait()
        (delivery,) = await webhook_env.wait_for_deliveries(created.webhook, DeliveryState.DELIVERED)
    body = Reader(created.secret.reveal()).verify(message.body, dict(message.headers))
    assert (body["event_type"], body["data"]["object"]["id"]) == ("ipfs.private.file_added", file.id)
    assert message.headers["webhook-id"] == delivery.event_id
    assert message.headers["content-type"] == "application/json"
    assert (delivery.status, delivery.error, delivery.attempts) == (200, None, 1)
    assert delivery.finished_at is not None
    assert message.path == "/hook"


async def test_both_secrets_sign(webhook_env: WebhookEnv, receiver: Receiver) -> None:
    old = await webhook_env.create(receiver.url)
    _, new_secret = await webhook_env.webhooks.rotate_secret(webhook_env.tenant, old.webhook.id)
    await webhook_env.add()
    async with webhook_env.sending():
        (message,) = await receiver.wait()
    for secret in (old.secret, new_secret):
        Reader(secret.reveal()).verify(message.body, dict(message.headers))
    assert old.secret != new_secret


async def test_a_retry_sends_the_same_message(webhook_env: WebhookEnv, receiver: Receiver, time: FakeClock) -> None:
    webhook = (await webhook_env.create(receiver.url)).webhook
    receiver.status = 500
    async with webhook_env.sending():
        await webhook_env.add()
        (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.PENDING)
        assert (delivery.status, delivery.attempts) == (500, 1)
        assert (await webhook_env.webhooks.get(webhook_env.tenant, webhook.id)).failing_since is not None
        receiver.status = 204
        time.advance(timedelta(seconds=10))
        (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.DELIVERED)
    assert (delivery.status, delivery.attempts, len(receiver.messages)) == (204, 2, 2)
    first, second = receiver.messages
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert int(second.headers["webhook-timestamp"]) >= int(first.headers["webhook-timestamp"]) + 10
    assert (await webhook_env.webhooks.get(webhook_env.tenant, webhook.id)).failing_since is None


async def test_a_delivery_fails_after_its_last_attempt_and_can_be_sent_again(
    webhook_env: WebhookEnv, receiver: Receiver, time: FakeClock
) -> None:
    webhook = (await webhook_env.create(receiver.url)).webhook
    receiver.status = 503
    async with webhook_env.sending():
        await webhook_env.add()
        for attempt in range(1, MAX_ATTEMPTS + 1):
            (delivery,) = await webhook_env.wait_for_deliveries(
                webhook, DeliveryState.PENDING, DeliveryState.FAILED, attempts=attempt
            )
            time.advance(timedelta(hours=17))
        assert (delivery.state, delivery.attempts, delivery.status) == (DeliveryState.FAILED, MAX_ATTEMPTS, 503)
        receiver.status = 200
        restarted = await webhook_env.webhooks.redeliver(webhook_env.tenant, webhook.id, delivery.id)
        assert (restarted.state, restarted.finished_at) == (DeliveryState.PENDING, None)
        (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.DELIVERED)
    assert len(receiver.messages) == MAX_ATTEMPTS + 1


async def test_days_of_failures_disable_a_webhook(webhook_env: WebhookEnv, time: FakeClock) -> None:
    webhook = (await webhook_env.create(NOWHERE)).webhook
    async with webhook_env.sending():
        await webhook_env.add()
        for attempt in range(1, MAX_ATTEMPTS + 1):
            (delivery,) = await webhook_env.wait_for_deliveries(
                webhook, DeliveryState.PENDING, DeliveryState.FAILED, attempts=attempt
            )
            time.advance(timedelta(hours=20))

        async def disabled() -> Webhook | None:
            found = await webhook_env.webhooks.get(webhook_env.tenant, webhook.id)
            return None if found.enabled else found

        assert (await until(disabled)).disabled_reason is DisabledReason.FAILING
        await webhook_env.add(b"two")
        assert len(await webhook_env.list_deliveries(webhook)) == 1
    assert (delivery.status, delivery.error) == (None, "The receiver did not answer: it refuses connections")


async def test_status_410_disables_a_webhook(webhook_env: WebhookEnv, receiver: Receiver) -> None:
    webhook = (await webhook_env.create(receiver.url)).webhook
    receiver.status = 410
    async with webhook_env.sending():
        await webhook_env.add()
        (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.FAILED)
    assert delivery.status == 410
    found = await webhook_env.webhooks.get(webhook_env.tenant, webhook.id)
    assert (found.enabled, found.disabled_reason) == (False, DisabledReason.GONE)


async def test_pending_deliveries_of_a_disabled_webhook_are_sent_when_it_is_enabled(
    webhook_env: WebhookEnv, receiver: Receiver
) -> None:
    webhook = (await webhook_env.create(receiver.url)).webhook
    await webhook_env.add()
    await webhook_env.webhooks.update(webhook_env.tenant, webhook.id, WebhookUpdate(enabled=False))
    other = (await webhook_env.create(receiver.url + "/other")).webhook
    await webhook_env.add(b"two")
    async with webhook_env.sending():
        await webhook_env.wait_for_deliveries(other, DeliveryState.DELIVERED)
        assert [one.attempts for one in await webhook_env.list_deliveries(webhook)] == [0]
        await webhook_env.webhooks.update(webhook_env.tenant, webhook.id, WebhookUpdate(enabled=True))
        await webhook_env.wait_for_deliveries(webhook, DeliveryState.DELIVERED)


async def test_a_silent_receiver_delays_only_itself(webhook_env: WebhookEnv, receiver: Receiver) -> None:
    webhook_env.timeout = 30.0
    async with receiving(None) as silent:
        slow = (await webhook_env.create(silent.url)).webhook
        fast = (await webhook_env.create(receiver.url)).webhook
        async with webhook_env.sending():
            for number in range(12):
                await webhook_env.add(str(number).encode())
            await webhook_env.wait_for_deliveries(fast, DeliveryState.DELIVERED)
            states = [one.state for one in await webhook_env.list_deliveries(slow)]
    assert len(receiver.messages) == 12
    assert (states.count(DeliveryState.SENDING), states.count(DeliveryState.PENDING)) == (4, 8)
    assert len(silent.messages) == 4


async def test_a_tenant_has_a_message_limit(webhook_env: WebhookEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "SENDING_LIMITS", OperationLimits(total=64, per_tenant=6, per_subject=4))
    webhook_env.timeout = 30.0
    async with receiving(None) as silent, receiving() as other_receiver:
        for _ in range(3):
            await webhook_env.create(silent.url)
        other = WebhookEnv(webhook_env.env, webhook_env.db)
        other.env.tenant_id, own_id = other.env.other_id, other.env.tenant_id
        await other.create(other_receiver.url)
        await other.add(b"other")
        other.env.tenant_id = own_id
        for number in range(4):
            await webhook_env.add(str(number).encode())
        async with webhook_env.sending():
            await silent.wait(6)
            await other_receiver.wait()
    assert len(silent.messages) == 6


async def test_a_dead_process_s_delivery_is_sent(webhook_env: WebhookEnv, receiver: Receiver, time: FakeClock) -> None:
    webhook = (await webhook_env.create(receiver.url)).webhook
    await webhook_env.add()
    lease = timedelta(minutes=1)

    def begin_and_die(connection: Connection) -> Operation:
        """Claim and begin the delivery, like a process that ends before it sends."""
        until, slots = clock.utc_now() + lease, FreeSlots(SENDING_LIMITS, ())
        (operation,) = work_store.claim_unordered(connection, DELIVER, slots, owner="dead", until=until)
        store.begin_attempt(connection, webhook, operation.id, clock.utc_now())
        return operation

    dead = await webhook_env.db.write(begin_and_die)
    if not webhook_env.db.is_sqlite:
        time.advance(lease)  # on PostgreSQL another process may hold the lease; SQLite has a single process
    async with webhook_env.sending():
        (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.DELIVERED)
    assert (delivery.id, delivery.attempts, len(receiver.messages)) == (dead.id, 2, 1)
    with pytest.raises(LeaseLost):
        await ClaimedOperation(**vars(dead), db=webhook_env.db).guard(lambda _: None)


async def test_an_unreadable_secret_is_a_failed_attempt(webhook_env: WebhookEnv, receiver: Receiver) -> None:
    webhook = (await webhook_env.create(receiver.url)).webhook
    await webhook_env.add()
    webhook_env.sealer = Sealer(Sensitive(bytes(31) + b"1"))
    async with webhook_env.sending():
        (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.PENDING)
    assert delivery.error == "The secret of this webhook could not be opened"
    assert receiver.messages == []


async def test_a_test_sends_one_message_and_returns_its_outcome(webhook_env: WebhookEnv, receiver: Receiver) -> None:
    created = await webhook_env.create(receiver.url, enabled=False)
    async with webhook_env.sending() as sender:
        delivery = await sender.send_test(webhook_env.tenant, created.webhook.id)
        assert (delivery.event_type, delivery.state, delivery.status) == (TEST_EVENT, DeliveryState.DELIVERED, 200)
        body = Reader(created.secret.reveal()).verify(receiver.messages[0].body, dict(receiver.messages[0].headers))
        assert (body["event_type"], body["workspace_id"]) == (TEST_EVENT, webhook_env.tenant)
        receiver.status = 500
        delivery = await sender.send_test(webhook_env.tenant, created.webhook.id)
        assert (delivery.state, delivery.status, delivery.attempts) == (DeliveryState.FAILED, 500, 1)
        with pytest.raises(WebhookNotFound):
            await sender.send_test(webhook_env.env.other_id, created.webhook.id)


async def test_concurrent_tests_have_a_limit(webhook_env: WebhookEnv) -> None:
    webhook_env.timeout = 30.0
    async with receiving(None) as silent:
        webhook = (await webhook_env.create(silent.url)).webhook
        async with webhook_env.sending() as sender:
            tasks = [asyncio.create_task(sender.send_test(webhook_env.tenant, webhook.id)) for _ in range(4)]
            await silent.wait(4)
            with pytest.raises(WebhookQueueFull):
                await sender.send_test(webhook_env.tenant, webhook.id)
            with pytest.raises(WebhookNotFound):  # not WebhookQueueFull, which only the owner of the webhook may see
                await sender.send_test(webhook_env.env.other_id, webhook.id)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_tests_that_begin_at_once_have_a_limit(webhook_env: WebhookEnv, receiver: Receiver) -> None:
    webhook = (await webhook_env.create(receiver.url)).webhook
    async with webhook_env.sending() as sender:
        calls = [sender.send_test(webhook_env.tenant, webhook.id) for _ in range(9)]
        results = await asyncio.gather(*calls, return_exceptions=True)
        assert sum(isinstance(result, WebhookQueueFull) for result in results) >= 1
        assert (await sender.send_test(webhook_env.tenant, webhook.id)).state is DeliveryState.DELIVERED


async def test_old_events_and_rows_of_deleted_webhooks_are_swept(webhook_env: WebhookEnv, time: FakeClock) -> None:
    kept, deleted = (await webhook_env.create(NOWHERE)).webhook, (await webhook_env.create(NOWHERE)).webhook
    await webhook_env.add()
    time.advance(RETENTION)
    await webhook_env.add(b"two", network=ContentNetwork.PUBLIC)
    await webhook_env.webhooks.delete(webhook_env.tenant, deleted.id)

    def counts(connection: Any) -> tuple[int, int, int]:
        tables = (store.events, store.deliveries, store.webhooks)
        return tuple(len(connection.execute(table.select()).all()) for table in tables)  # type: ignore[return-value] - three

    async def sweep() -> int:
        return await webhook_env.db.write(
            lambda connection: store.sweep_events(connection, clock.utc_now() - RETENTION, 1)
        )

    assert await webhook_env.db.read(counts) == (2, 4, 2)
    while await sweep():
        pass
    assert await webhook_env.db.read(counts) == (1, 1, 1)
    assert [one.event_type for one in await webhook_env.list_deliveries(kept)] == ["ipfs.public.file_added"]


async def test_an_unexpected_error_is_a_failed_attempt(webhook_env: WebhookEnv) -> None:
    class Broken(GuardedHttpSender):
        async def deliver(self, tenant_id: str, url: str, body: bytes, headers: Mapping[str, str]) -> int:
            raise RuntimeError(tenant_id, url, body, headers)

    webhook = (await webhook_env.create()).webhook
    await webhook_env.add()
    broken = Broken(lambda _: httpx2.AsyncHTTPTransport(), lambda _: None)
    async with webhook_env.sending(broken):
        (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.PENDING)
    assert (delivery.error, delivery.attempts) == ("The attempt failed", 1)


async def test_all_tenants_have_a_message_limit(webhook_env: WebhookEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "SENDING_LIMITS", OperationLimits(total=5, per_tenant=16, per_subject=4))
    webhook_env.timeout = 30.0
    async with receiving(None) as silent:
        webhooks = [(await webhook_env.create(silent.url)).webhook for _ in range(3)]
        for number in range(3):
            await webhook_env.add(str(number).encode())
        async with webhook_env.sending():
            await silent.wait(5)
            states = [one.state for webhook in webhooks for one in await webhook_env.list_deliveries(webhook)]
    assert (states.count(DeliveryState.SENDING), states.count(DeliveryState.PENDING), len(silent.messages)) == (5, 4, 5)


async def test_an_attempt_that_a_stop_interrupted_is_made_again_after_the_next_start(webhook_env: WebhookEnv) -> None:
    webhook_env.timeout = 30.0
    async with receiving(None) as silent:
        webhook = (await webhook_env.create(silent.url)).webhook
        async with webhook_env.sending():
            await webhook_env.add()
            await silent.wait()
        silent.status = 200
        async with webhook_env.sending():
            (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.DELIVERED)
    assert (delivery.attempts, len(silent.messages)) == (2, 2)


async def test_a_webhook_that_is_deleted_during_an_attempt(webhook_env: WebhookEnv) -> None:
    webhook_env.timeout = 0.3
    async with receiving(None) as silent:
        webhook = (await webhook_env.create(silent.url)).webhook
        await webhook_env.add()
        async with webhook_env.sending():
            await silent.wait()
            await webhook_env.webhooks.delete(webhook_env.tenant, webhook.id)
            before = clock.utc_now() - RETENTION
            while await webhook_env.db.write(lambda connection: store.sweep_events(connection, before, 100)):
                pass
            other = (await webhook_env.create(silent.url)).webhook
            silent.status = 200
            await webhook_env.add(b"two")
            await webhook_env.wait_for_deliveries(other, DeliveryState.DELIVERED)
    assert [one.id for one in await webhook_env.webhooks.list(webhook_env.tenant)] == [other.id]


async def test_a_change_is_sent_without_waiting_for_the_poll(
    webhook_env: WebhookEnv, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_POLL_SECONDS", 600.0)
    webhook = (await webhook_env.create(receiver.url)).webhook
    async with webhook_env.sending():
        await webhook_env.add()
        (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.DELIVERED)
        await webhook_env.webhooks.redeliver(webhook_env.tenant, webhook.id, delivery.id)
        await receiver.wait(2)


async def test_deliveries_of_a_webhook_that_is_disabled_during_an_attempt_wait(
    webhook_env: WebhookEnv, receiver: Receiver
) -> None:
    webhook = (await webhook_env.create(receiver.url)).webhook
    receiver.status = 410
    await webhook_env.add()
    await webhook_env.add(b"two")
    async with webhook_env.sending():
        await receiver.wait()

        async def is_disabled() -> bool:
            return not (await webhook_env.webhooks.get(webhook_env.tenant, webhook.id)).enabled

        await until(is_disabled)
        (failed, *_) = [one for one in await webhook_env.list_deliveries(webhook) if one.state is DeliveryState.FAILED]
        restarted = await webhook_env.webhooks.redeliver(webhook_env.tenant, webhook.id, failed.id)
        assert restarted.state is DeliveryState.PENDING

        async def is_paused() -> bool:
            operation = await webhook_env.db.read(lambda connection: work.get_operation(connection, failed.id))
            return operation.state is OperationState.PAUSED

        await until(is_paused)
        receiver.status = 200
        await webhook_env.webhooks.update(webhook_env.tenant, webhook.id, WebhookUpdate(enabled=True))
        await until(lambda: _is_delivered(webhook_env, webhook, failed.id))


async def _is_delivered(webhook_env: WebhookEnv, webhook: Webhook, delivery_id: str) -> bool:
    states = {one.id: one.state for one in await webhook_env.list_deliveries(webhook)}
    return states[delivery_id] is DeliveryState.DELIVERED
