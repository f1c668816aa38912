"""Delivery of events to real receivers on loopback: at least once, retried, or given up."""

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
from roost.storage.webhooks.errors import WebhookNotFound, WebhookQueueFull
from roost.storage.webhooks.model import (
    ATTEMPTS,
    DELIVER,
    KEPT,
    LIMITS,
    TEST,
    DeliveryState,
    DisabledReason,
    Webhook,
    WebhookDelivery,
)
from roost.storage.webhooks.service import WebhookUpdate
from roost.work import ClaimedOperation, LeaseLost, Operation, OperationLimits, OperationState, worker
from roost.work import store as work_store
from roost.work.model import FreeSlots
from tests.receiver import Receiver, receiving
from tests.storage.storage_env import StorageEnv
from tests.storage.webhooks.webhook_env import FakeClock, WebhookEnv, until

NOWHERE = "http://127.0.0.1:9/hook"


@pytest.fixture
def webhook_env(env: StorageEnv, database: Database, monkeypatch: pytest.MonkeyPatch) -> WebhookEnv:
    monkeypatch.setattr(worker, "_POLL", 0.02)
    return WebhookEnv(env, database)


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    made = FakeClock()
    monkeypatch.setattr(clock, "utc_now", made)
    return made


async def test_a_file_is_told_of_and_the_signature_is_right(webhook_env: WebhookEnv, receiver: Receiver) -> None:
    made = await webhook_env.create(receiver.url)
    async with webhook_env.sending():
        file = await webhook_env.add()
        (message,) = await receiver.wait()
        (delivery,) = await webhook_env.wait_for_deliveries(made.webhook, DeliveryState.DELIVERED)
    told = Reader(made.secret.reveal()).verify(message.body, dict(message.headers))
    assert (told["event_type"], told["data"]["object"]["id"]) == ("ipfs.private.file_added", file.id)
    assert message.headers["webhook-id"] == delivery.event_id
    assert message.headers["content-type"] == "application/json"
    assert (delivery.status, delivery.error, delivery.attempts) == (200, None, 1)
    assert delivery.finished_at is not None
    assert message.path == "/hook"


async def test_both_secrets_sign(webhook_env: WebhookEnv, receiver: Receiver) -> None:
    old = await webhook_env.create(receiver.url)
    new = await webhook_env.webhooks.rotate_secret(webhook_env.tenant, old.webhook.id)
    await webhook_env.add()
    async with webhook_env.sending():
        (message,) = await receiver.wait()
    for secret in (old.secret, new.secret):
        Reader(secret.reveal()).verify(message.body, dict(message.headers))
    assert old.secret != new.secret


async def test_what_fails_is_sent_again_the_same(webhook_env: WebhookEnv, receiver: Receiver, time: FakeClock) -> None:
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


async def test_one_that_never_answers_is_given_up_and_can_be_sent_again(
    webhook_env: WebhookEnv, receiver: Receiver, time: FakeClock
) -> None:
    webhook = (await webhook_env.create(receiver.url)).webhook
    receiver.status = 503
    async with webhook_env.sending():
        await webhook_env.add()
        for attempt in range(1, ATTEMPTS + 1):
            (delivery,) = await webhook_env.wait_for_deliveries(
                webhook, DeliveryState.PENDING, DeliveryState.FAILED, attempts=attempt
            )
            time.advance(timedelta(hours=17))
        assert (delivery.state, delivery.attempts, delivery.status) == (DeliveryState.FAILED, ATTEMPTS, 503)
        receiver.status = 200
        again = await webhook_env.webhooks.redeliver(webhook_env.tenant, webhook.id, delivery.id)
        assert (again.state, again.finished_at) == (DeliveryState.PENDING, None)
        (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.DELIVERED)
    assert len(receiver.messages) == ATTEMPTS + 1


async def test_days_of_failures_disable_it(webhook_env: WebhookEnv, time: FakeClock) -> None:
    webhook = (await webhook_env.create(NOWHERE)).webhook
    async with webhook_env.sending():
        await webhook_env.add()
        for attempt in range(1, ATTEMPTS + 1):
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
    assert (delivery.status, delivery.error) == (None, "The connection failed: ConnectError")


async def test_gone_is_gone(webhook_env: WebhookEnv, receiver: Receiver) -> None:
    webhook = (await webhook_env.create(receiver.url)).webhook
    receiver.status = 410
    async with webhook_env.sending():
        await webhook_env.add()
        (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.FAILED)
    assert delivery.status == 410
    found = await webhook_env.webhooks.get(webhook_env.tenant, webhook.id)
    assert (found.enabled, found.disabled_reason) == (False, DisabledReason.GONE)


async def test_what_waits_for_one_that_is_disabled_is_sent_when_it_is_enabled(
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


async def test_a_silent_receiver_holds_up_nobody_else(webhook_env: WebhookEnv, receiver: Receiver) -> None:
    webhook_env.timeout = 30.0
    async with receiving(None) as silent:
        dead, alive = (await webhook_env.create(silent.url)).webhook, (await webhook_env.create(receiver.url)).webhook
        async with webhook_env.sending():
            for number in range(12):
                await webhook_env.add(str(number).encode())
            await webhook_env.wait_for_deliveries(alive, DeliveryState.DELIVERED)
            states = [one.state for one in await webhook_env.list_deliveries(dead)]
    assert len(receiver.messages) == 12
    assert (states.count(DeliveryState.SENDING), states.count(DeliveryState.PENDING)) == (4, 8)
    assert len(silent.messages) == 4


async def test_a_tenant_takes_no_more_than_its_part(webhook_env: WebhookEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "LIMITS", OperationLimits(total=64, per_tenant=6, per_subject=4))
    webhook_env.timeout = 30.0
    async with receiving(None) as silent, receiving() as theirs:
        for _ in range(3):
            await webhook_env.create(silent.url)
        other = WebhookEnv(webhook_env.env, webhook_env.db)
        other.env.tenant_id, mine = other.env.other_id, other.env.tenant_id
        await other.create(theirs.url)
        await other.add(b"theirs")
        other.env.tenant_id = mine
        for number in range(4):
            await webhook_env.add(str(number).encode())
        async with webhook_env.sending():
            await silent.wait(6)
            await theirs.wait()
    assert len(silent.messages) == 6


async def test_a_dead_senders_delivery_is_resent(webhook_env: WebhookEnv, receiver: Receiver, time: FakeClock) -> None:
    webhook = (await webhook_env.create(receiver.url)).webhook
    await webhook_env.add()
    lease = timedelta(minutes=1)

    def die(connection: Connection) -> Operation:
        """Claim and begin the delivery, like a process that ends before it sends."""
        until, slots = clock.utc_now() + lease, FreeSlots(LIMITS, ())
        (operation,) = work_store.claim_unordered(connection, DELIVER, slots, owner="dead", until=until)
        store.begin_attempt(connection, webhook, operation.id, clock.utc_now())
        return operation

    dead = await webhook_env.db.write(die)
    if not webhook_env.db.is_sqlite:
        time.advance(lease)  # on PostgreSQL another process may hold it; on SQLite there is only one
    async with webhook_env.sending():
        (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.DELIVERED)
    assert (delivery.id, delivery.attempts, len(receiver.messages)) == (dead.id, 2, 1)
    with pytest.raises(LeaseLost):
        await ClaimedOperation(**vars(dead), db=webhook_env.db).guard(lambda _: None)


async def test_a_secret_that_cannot_be_opened_is_a_failure(webhook_env: WebhookEnv, receiver: Receiver) -> None:
    webhook = (await webhook_env.create(receiver.url)).webhook
    await webhook_env.add()
    webhook_env.sealer = Sealer(Sensitive(bytes(31) + b"1"))
    async with webhook_env.sending():
        (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.PENDING)
    assert delivery.error == "The secret of this webhook could not be opened"
    assert receiver.messages == []


async def test_a_test_is_one_message_and_tells_what_came_of_it(webhook_env: WebhookEnv, receiver: Receiver) -> None:
    made = await webhook_env.create(receiver.url, enabled=False)
    async with webhook_env.sending() as sender:
        done = await sender.test(webhook_env.tenant, made.webhook.id)
        assert (done.event_type, done.state, done.status) == (TEST, DeliveryState.DELIVERED, 200)
        told = Reader(made.secret.reveal()).verify(receiver.messages[0].body, dict(receiver.messages[0].headers))
        assert (told["event_type"], told["workspace_id"]) == (TEST, webhook_env.tenant)
        receiver.status = 500
        done = await sender.test(webhook_env.tenant, made.webhook.id)
        assert (done.state, done.status, done.attempts) == (DeliveryState.FAILED, 500, 1)
        with pytest.raises(WebhookNotFound):
            await sender.test(webhook_env.env.other_id, made.webhook.id)


async def test_tests_are_bounded(webhook_env: WebhookEnv) -> None:
    webhook_env.timeout = 30.0
    async with receiving(None) as silent:
        webhook = (await webhook_env.create(silent.url)).webhook
        async with webhook_env.sending() as sender:
            begun = [asyncio.create_task(sender.test(webhook_env.tenant, webhook.id)) for _ in range(4)]
            await silent.wait(4)
            with pytest.raises(WebhookQueueFull):
                await sender.test(webhook_env.tenant, webhook.id)
            with pytest.raises(WebhookNotFound):  # not the operation's own message, which only its owner sees
                await sender.test(webhook_env.env.other_id, webhook.id)
        for task in begun:
            task.cancel()
        await asyncio.gather(*begun, return_exceptions=True)


async def test_no_more_messages_of_a_test_are_begun_at_once(webhook_env: WebhookEnv, receiver: Receiver) -> None:
    webhook = (await webhook_env.create(receiver.url)).webhook
    async with webhook_env.sending() as sender:
        begun = [sender.test(webhook_env.tenant, webhook.id) for _ in range(9)]
        ends = await asyncio.gather(*begun, return_exceptions=True)
        assert sum(isinstance(end, WebhookQueueFull) for end in ends) >= 1
        assert (await sender.test(webhook_env.tenant, webhook.id)).state is DeliveryState.DELIVERED


async def test_old_events_and_what_deleted_ones_left_are_swept(webhook_env: WebhookEnv, time: FakeClock) -> None:
    kept, gone = (await webhook_env.create(NOWHERE)).webhook, (await webhook_env.create(NOWHERE)).webhook
    await webhook_env.add()
    time.advance(KEPT)
    await webhook_env.add(b"two", network=ContentNetwork.PUBLIC)
    await webhook_env.webhooks.delete(webhook_env.tenant, gone.id)

    def counts(connection: Any) -> tuple[int, int, int]:
        tables = (store.events, store.deliveries, store.webhooks)
        return tuple(len(connection.execute(table.select()).all()) for table in tables)  # type: ignore[return-value] - three

    async def sweep() -> int:
        return await webhook_env.db.write(lambda connection: store.sweep_events(connection, clock.utc_now() - KEPT, 1))

    assert await webhook_env.db.read(counts) == (2, 4, 2)
    while await sweep():
        pass
    assert await webhook_env.db.read(counts) == (1, 1, 1)
    assert [one.event_type for one in await webhook_env.list_deliveries(kept)] == ["ipfs.public.file_added"]


async def test_what_nobody_thought_of_is_a_failure(webhook_env: WebhookEnv) -> None:
    class Broken(GuardedHttpSender):
        async def deliver(self, tenant_id: str, url: str, body: bytes, headers: Mapping[str, str]) -> int:
            raise RuntimeError(tenant_id, url, body, headers)

    webhook = (await webhook_env.create()).webhook
    await webhook_env.add()
    broken = Broken(lambda _: httpx2.AsyncHTTPTransport(), lambda _: None)
    async with webhook_env.sending(broken):
        (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.PENDING)
    assert (delivery.error, delivery.attempts) == ("The attempt failed", 1)


async def test_no_more_are_on_their_way_than_may_be(webhook_env: WebhookEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender, "LIMITS", OperationLimits(total=5, per_tenant=16, per_subject=4))
    webhook_env.timeout = 30.0
    async with receiving(None) as silent:
        webhooks = [(await webhook_env.create(silent.url)).webhook for _ in range(3)]
        for number in range(3):
            await webhook_env.add(str(number).encode())
        async with webhook_env.sending():
            await silent.wait(5)
            states = [one.state for webhook in webhooks for one in await webhook_env.list_deliveries(webhook)]
    assert (states.count(DeliveryState.SENDING), states.count(DeliveryState.PENDING)) == (5, 4)
    assert len(silent.messages) == 5


async def test_what_was_cut_off_by_a_stop_is_sent_by_the_next_start(webhook_env: WebhookEnv) -> None:
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


async def test_one_that_was_deleted_on_the_way(webhook_env: WebhookEnv) -> None:
    webhook_env.timeout = 0.3
    async with receiving(None) as silent:
        webhook = (await webhook_env.create(silent.url)).webhook
        await webhook_env.add()
        async with webhook_env.sending():
            await silent.wait()
            await webhook_env.webhooks.delete(webhook_env.tenant, webhook.id)
            while await webhook_env.db.write(
                lambda connection: store.sweep_events(connection, clock.utc_now() - KEPT, 100)
            ):
                pass
            other = (await webhook_env.create(silent.url)).webhook
            silent.status = 200
            await webhook_env.add(b"two")
            await webhook_env.wait_for_deliveries(other, DeliveryState.DELIVERED)
    assert [one.id for one in await webhook_env.webhooks.list(webhook_env.tenant)] == [other.id]


async def test_a_change_is_sent_without_waiting_for_the_poll(
    webhook_env: WebhookEnv, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_POLL", 600.0)
    webhook = (await webhook_env.create(receiver.url)).webhook
    async with webhook_env.sending():
        await webhook_env.add()
        (delivery,) = await webhook_env.wait_for_deliveries(webhook, DeliveryState.DELIVERED)
        await webhook_env.webhooks.redeliver(webhook_env.tenant, webhook.id, delivery.id)
        await receiver.wait(2)


async def test_one_that_is_disabled_on_the_way_waits_until_it_is_enabled(
    webhook_env: WebhookEnv, receiver: Receiver
) -> None:
    webhook = (await webhook_env.create(receiver.url)).webhook
    receiver.status = 410
    await webhook_env.add()
    await webhook_env.add(b"two")
    async with webhook_env.sending():
        await receiver.wait()

        async def one_waits() -> list[WebhookDelivery] | None:
            told = await webhook_env.list_deliveries(webhook)
            return told if not (await webhook_env.webhooks.get(webhook_env.tenant, webhook.id)).enabled else None

        await until(one_waits)
        (failed, *_) = [one for one in await webhook_env.list_deliveries(webhook) if one.state is DeliveryState.FAILED]
        again = await webhook_env.webhooks.redeliver(webhook_env.tenant, webhook.id, failed.id)
        assert again.state is DeliveryState.PENDING

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
