"""Webhooks of tenants: created, changed, limited; events are stored in the transaction of the change."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

import roost.storage.files.groups.store  # noqa: F401 - files refer to groups, also when this folder runs alone
from roost.core import clock
from roost.core.db import Connection, Database, sealed
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.http_sender.contract import UrlRefused
from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import FileMetadata
from roost.storage.webhooks import service, store
from roost.storage.webhooks.model import (
    EVENT_TYPES,
    SECRET_OVERLAP,
    DeliveryNotFound,
    DeliveryState,
    DisabledReason,
    EmptyWebhookUpdate,
    InvalidWebhookEvents,
    WebhookLimitReached,
    WebhookNotFound,
)
from roost.storage.webhooks.service import WebhookUpdate
from tests.storage.storage_env import StorageEnv
from tests.storage.webhooks.webhook_env import KEY, WebhookEnv

PRIVATE = ContentNetwork.PRIVATE


@pytest.fixture
def webhook_env(env: StorageEnv, database: Database) -> WebhookEnv:
    return WebhookEnv(env, database)


async def test_a_webhook_is_created_updated_and_deleted(webhook_env: WebhookEnv) -> None:
    created = await webhook_env.create(events=[EVENT_TYPES[0]], description="test")
    assert created.secret.reveal().startswith("whsec_")
    webhook = created.webhook
    assert (webhook.url, webhook.description, webhook.enabled) == ("https://receiver.example/hook", "test", True)
    assert await webhook_env.webhooks.get(webhook_env.tenant, webhook.id) == webhook
    changed = await webhook_env.webhooks.update(webhook_env.tenant, webhook.id, WebhookUpdate(enabled=False, events=[]))
    assert (changed.enabled, changed.events, changed.description) == (False, (), "test")
    assert [listed.id for listed in await webhook_env.webhooks.list(webhook_env.tenant)] == [webhook.id]
    await webhook_env.webhooks.delete(webhook_env.tenant, webhook.id)
    assert await webhook_env.webhooks.list(webhook_env.tenant) == []
    for call in (
        webhook_env.webhooks.get(webhook_env.tenant, webhook.id),
        webhook_env.webhooks.delete(webhook_env.tenant, webhook.id),
        webhook_env.webhooks.rotate_secret(webhook_env.tenant, webhook.id),
        webhook_env.webhooks.list_deliveries(webhook_env.tenant, webhook.id, None, None, 10),
        webhook_env.webhooks.redeliver(webhook_env.tenant, webhook.id, "d"),
        webhook_env.webhooks.update(webhook_env.tenant, webhook.id, WebhookUpdate(enabled=True)),
    ):
        with pytest.raises(WebhookNotFound):
            await call


async def test_invalid_webhooks_are_refused(webhook_env: WebhookEnv) -> None:
    with pytest.raises(InvalidWebhookEvents):
        await webhook_env.create(events=["file_added"])
    with pytest.raises(UrlRefused):
        await webhook_env.create("https://receiver.example/" + "x" * 3000)
    created = await webhook_env.create()
    with pytest.raises(UrlRefused):
        await webhook_env.webhooks.update(
            webhook_env.tenant, created.webhook.id, WebhookUpdate(url="https://a.example/ b")
        )
    with pytest.raises(EmptyWebhookUpdate):
        await webhook_env.webhooks.update(webhook_env.tenant, created.webhook.id, WebhookUpdate())


async def test_the_limit_is_exact(webhook_env: WebhookEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "WEBHOOK_LIMIT", 3)
    results = await asyncio.gather(*(webhook_env.create() for _ in range(6)), return_exceptions=True)
    assert sum(isinstance(result, WebhookLimitReached) for result in results) == 3
    webhooks = await webhook_env.webhooks.list(webhook_env.tenant)
    assert len(webhooks) == 3
    await webhook_env.webhooks.delete(webhook_env.tenant, webhooks[0].id)
    await webhook_env.create()


async def test_every_change_is_in_the_outbox(webhook_env: WebhookEnv) -> None:
    webhook = (await webhook_env.create()).webhook
    file = await webhook_env.add(metadata=FileMetadata("one"))
    await webhook_env.add()  # an unchanged value is not an event
    await webhook_env.files.change(webhook_env.tenant, PRIVATE, file.id, lambda _: FileMetadata("two"))
    await webhook_env.files.delete(webhook_env.tenant, PRIVATE, file.id)
    expiring = await webhook_env.add(
        b"expiring", FileMetadata("expiring", expires_at=clock.utc_now() - timedelta(seconds=1)), ContentNetwork.PUBLIC
    )
    assert await webhook_env.files.expire() == 1
    deliveries = await webhook_env.list_deliveries(webhook)
    assert [delivery.event_type for delivery in deliveries] == [
        *("ipfs.private.file_added", "ipfs.private.file_updated", "ipfs.private.file_deleted"),
        *("ipfs.public.file_added", "ipfs.public.file_deleted"),
    ]
    assert {delivery.state for delivery in deliveries} == {DeliveryState.PENDING}
    bodies = await webhook_env.db.read(_bodies)
    assert all(file.id in body or expiring.id in body for body in bodies)
    assert '"previous_attributes":{"name":"one"}' in bodies[1]


async def test_only_webhooks_that_accept_an_event_receive_it(webhook_env: WebhookEnv) -> None:
    private = (await webhook_env.create(events=["ipfs.private.file_added"])).webhook
    public = (await webhook_env.create(events=["ipfs.public.file_added"])).webhook
    disabled = (await webhook_env.create(enabled=False)).webhook
    deleted = (await webhook_env.create()).webhook
    await webhook_env.webhooks.delete(webhook_env.tenant, deleted.id)
    foreign, _ = await webhook_env.webhooks.create(webhook_env.env.other_id, "https://other.example/", WebhookUpdate())
    await webhook_env.add()
    assert len(await webhook_env.list_deliveries(private)) == 1
    assert await webhook_env.list_deliveries(public) == await webhook_env.list_deliveries(disabled) == []
    page, _ = await webhook_env.webhooks.list_deliveries(webhook_env.env.other_id, foreign.id, None, None, 10)
    assert page == []


async def test_a_rolled_back_change_adds_no_event(webhook_env: WebhookEnv) -> None:
    webhook = (await webhook_env.create()).webhook
    file = await webhook_env.add()

    def refuse(*_: Any) -> None:
        raise RuntimeError

    webhook_env.files.add_listener(refuse)
    with pytest.raises(RuntimeError):
        await webhook_env.files.delete(webhook_env.tenant, PRIVATE, file.id)
    assert [delivery.event_type for delivery in await webhook_env.list_deliveries(webhook)] == [
        "ipfs.private.file_added"
    ]


async def test_other_tenants_do_not_find_a_webhook(webhook_env: WebhookEnv) -> None:
    webhook, other = (await webhook_env.create()).webhook, webhook_env.env.other_id
    await webhook_env.add()
    delivery = (await webhook_env.list_deliveries(webhook))[0]
    assert await webhook_env.webhooks.list(other) == []
    for call in (
        webhook_env.webhooks.get(other, webhook.id),
        webhook_env.webhooks.update(other, webhook.id, WebhookUpdate(enabled=False)),
        webhook_env.webhooks.delete(other, webhook.id),
        webhook_env.webhooks.rotate_secret(other, webhook.id),
        webhook_env.webhooks.list_deliveries(other, webhook.id, None, None, 10),
        webhook_env.webhooks.redeliver(other, webhook.id, delivery.id),
    ):
        with pytest.raises(WebhookNotFound):
            await call
    another = (await webhook_env.create()).webhook
    with pytest.raises(DeliveryNotFound):
        await webhook_env.webhooks.redeliver(webhook_env.tenant, another.id, delivery.id)


async def test_pages_of_deliveries(webhook_env: WebhookEnv) -> None:
    webhook = (await webhook_env.create()).webhook
    for number in range(5):
        await webhook_env.add(str(number).encode())
    seen: list[str] = []
    token = None
    while True:
        page, token = await webhook_env.webhooks.list_deliveries(
            webhook_env.tenant, webhook.id, DeliveryState.PENDING, token, 2
        )
        seen += [delivery.id for delivery in page]
        if token is None:
            break
    assert seen == [delivery.id for delivery in reversed(await webhook_env.list_deliveries(webhook))]
    assert await webhook_env.list_deliveries(webhook, DeliveryState.DELIVERED) == []


async def test_secrets_are_sealed_and_can_be_resealed(webhook_env: WebhookEnv) -> None:
    created = await webhook_env.create()
    await webhook_env.webhooks.rotate_secret(webhook_env.tenant, created.webhook.id)
    rows = await webhook_env.db.read(lambda connection: connection.execute(store.webhook_secrets.select()).all())
    assert len(rows) == 2
    column = store.webhook_secrets.c.sealed
    assert column in sealed.sealed_columns()
    newer = Sealer(Sensitive(bytes(31) + b"1"), KEY)
    result = await webhook_env.db.write(lambda connection: sealed.reseal_page(connection, newer, column))
    assert (result.renewed, result.lost) == (2, 0)
    after = await webhook_env.db.read(lambda connection: connection.execute(store.webhook_secrets.select()).all())
    assert {row.sealed for row in after}.isdisjoint(row.sealed for row in rows)


async def test_a_replaced_secret_signs_for_a_day(webhook_env: WebhookEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook = (await webhook_env.create()).webhook
    start = clock.utc_now()

    async def count() -> int:
        return len(await webhook_env.db.read(lambda c: store.list_secrets(c, webhook.id, clock.utc_now())))

    await webhook_env.webhooks.rotate_secret(webhook_env.tenant, webhook.id)
    assert await count() == 2
    for _ in range(4):
        await webhook_env.webhooks.rotate_secret(webhook_env.tenant, webhook.id)
    assert await count() == 3
    monkeypatch.setattr(clock, "utc_now", lambda: start + SECRET_OVERLAP + timedelta(minutes=1))
    assert await count() == 1


async def test_enabling_a_webhook_resets_its_failures(webhook_env: WebhookEnv) -> None:
    webhook = (await webhook_env.create()).webhook
    failing = replace(webhook, enabled=False, disabled_reason=DisabledReason.FAILING, failing_since=clock.utc_now())
    await webhook_env.db.write(lambda connection: store.update_webhook(connection, failing))
    assert (await webhook_env.webhooks.get(webhook_env.tenant, webhook.id)).disabled_reason is DisabledReason.FAILING
    enabled = await webhook_env.webhooks.update(webhook_env.tenant, webhook.id, WebhookUpdate(enabled=True))
    assert (enabled.enabled, enabled.disabled_reason, enabled.failing_since) == (True, None, None)


@pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])
async def test_an_update_keeps_the_result_of_a_concurrent_attempt(webhook_env: WebhookEnv) -> None:
    """Run on PostgreSQL only: SQLite has one writer at a time."""
    webhook = (await webhook_env.create()).webhook
    failed = replace(webhook, enabled=False, disabled_reason=DisabledReason.GONE)

    def waits(connection: Connection) -> bool:
        return bool(connection.exec_driver_sql("SELECT count(*) FROM pg_locks WHERE NOT granted").scalar_one())

    with webhook_env.db.writer.begin() as attempt:
        store.update_webhook(attempt, failed)
        changing = asyncio.create_task(
            webhook_env.webhooks.update(webhook_env.tenant, webhook.id, WebhookUpdate(description="new"))
        )
        async with asyncio.timeout(20):
            while not await webhook_env.db.read(waits):
                await asyncio.sleep(0.005)
    changed = await changing
    assert (changed.description, changed.enabled, changed.disabled_reason) == ("new", False, DisabledReason.GONE)


def _bodies(connection: Connection) -> list[str]:
    return [row.body for row in connection.execute(store.events.select().order_by(store.events.c.created_at))]
