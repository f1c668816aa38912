"""Webhooks of tenants: created, changed, limited; events are stored in the transaction of the change."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from roost.core import clock
from roost.core.db import Connection, Database, sealed
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.http_sender.contract import UrlRefused
from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import FileMetadata
from roost.storage.webhooks import service, store
from roost.storage.webhooks.errors import (
    DeliveryNotFound,
    EmptyWebhookUpdate,
    InvalidWebhookEvents,
    WebhookLimitReached,
    WebhookNotFound,
)
from roost.storage.webhooks.model import EVENTS, OVERLAP, DeliveryState, DisabledReason
from roost.storage.webhooks.service import WebhookUpdate
from tests.storage.storage_env import StorageEnv
from tests.storage.webhooks.webhook_env import KEY, WebhookEnv

PRIVATE = ContentNetwork.PRIVATE


@pytest.fixture
def webhook_env(env: StorageEnv, database: Database) -> WebhookEnv:
    return WebhookEnv(env, database)


async def test_one_comes_and_goes(webhook_env: WebhookEnv) -> None:
    made = await webhook_env.create(events=[EVENTS[0]], description="mine")
    assert made.secret.reveal().startswith("whsec_")
    webhook = made.webhook
    assert (webhook.url, webhook.description, webhook.enabled) == ("https://receiver.example/hook", "mine", True)
    assert await webhook_env.webhooks.get(webhook_env.tenant, webhook.id) == webhook
    changed = await webhook_env.webhooks.update(webhook_env.tenant, webhook.id, WebhookUpdate(enabled=False, events=[]))
    assert (changed.enabled, changed.events, changed.description) == (False, (), "mine")
    assert [one.id for one in await webhook_env.webhooks.list(webhook_env.tenant)] == [webhook.id]
    await webhook_env.webhooks.delete(webhook_env.tenant, webhook.id)
    assert await webhook_env.webhooks.list(webhook_env.tenant) == []
    for gone in (
        webhook_env.webhooks.get(webhook_env.tenant, webhook.id),
        webhook_env.webhooks.delete(webhook_env.tenant, webhook.id),
        webhook_env.webhooks.rotate_secret(webhook_env.tenant, webhook.id),
        webhook_env.webhooks.deliveries(webhook_env.tenant, webhook.id, None, None, 10),
        webhook_env.webhooks.redeliver(webhook_env.tenant, webhook.id, "d"),
        webhook_env.webhooks.update(webhook_env.tenant, webhook.id, WebhookUpdate(enabled=True)),
    ):
        with pytest.raises(WebhookNotFound):
            await gone


async def test_what_is_no_webhook(webhook_env: WebhookEnv) -> None:
    with pytest.raises(InvalidWebhookEvents):
        await webhook_env.create(events=["file_added"])
    with pytest.raises(UrlRefused):
        await webhook_env.create("https://receiver.example/" + "x" * 3000)
    made = await webhook_env.create()
    with pytest.raises(UrlRefused):
        await webhook_env.webhooks.update(
            webhook_env.tenant, made.webhook.id, WebhookUpdate(url="https://a.example/ b")
        )
    with pytest.raises(EmptyWebhookUpdate):
        await webhook_env.webhooks.update(webhook_env.tenant, made.webhook.id, WebhookUpdate())


async def test_the_limit_is_exact(webhook_env: WebhookEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "WEBHOOK_LIMIT", 3)
    answers = await asyncio.gather(*(webhook_env.create() for _ in range(6)), return_exceptions=True)
    assert sum(isinstance(answer, WebhookLimitReached) for answer in answers) == 3
    made = await webhook_env.webhooks.list(webhook_env.tenant)
    assert len(made) == 3
    await webhook_env.webhooks.delete(webhook_env.tenant, made[0].id)
    await webhook_env.create()


async def test_every_change_is_in_the_outbox(webhook_env: WebhookEnv) -> None:
    webhook = (await webhook_env.create()).webhook
    file = await webhook_env.add(note=FileMetadata("one"))
    await webhook_env.add()  # an unchanged value is not an event
    await webhook_env.files.set_metadata(webhook_env.tenant, PRIVATE, file.id, FileMetadata("two"))
    await webhook_env.files.delete(webhook_env.tenant, PRIVATE, file.id)
    brief = await webhook_env.add(
        b"brief", FileMetadata("brief", expires_at=clock.utc_now() - timedelta(seconds=1)), ContentNetwork.PUBLIC
    )
    assert await webhook_env.files.expire() == 1
    told = await webhook_env.list_deliveries(webhook)
    assert [one.event_type for one in told] == [
        *("ipfs.private.file_added", "ipfs.private.file_updated", "ipfs.private.file_deleted"),
        *("ipfs.public.file_added", "ipfs.public.file_deleted"),
    ]
    assert {one.state for one in told} == {DeliveryState.PENDING}
    bodies = await webhook_env.db.read(_bodies)
    assert all(file.id in body or brief.id in body for body in bodies)
    assert '"previous_attributes":{"name":"one"}' in bodies[1]


async def test_only_those_that_want_it_are_told(webhook_env: WebhookEnv) -> None:
    wants = (await webhook_env.create(events=["ipfs.private.file_added"])).webhook
    public = (await webhook_env.create(events=["ipfs.public.file_added"])).webhook
    off = (await webhook_env.create(enabled=False)).webhook
    gone = (await webhook_env.create()).webhook
    await webhook_env.webhooks.delete(webhook_env.tenant, gone.id)
    theirs = await webhook_env.webhooks.create(webhook_env.env.other_id, "https://other.example/", WebhookUpdate())
    await webhook_env.add()
    assert len(await webhook_env.list_deliveries(wants)) == 1
    assert await webhook_env.list_deliveries(public) == await webhook_env.list_deliveries(off) == []
    page, _ = await webhook_env.webhooks.deliveries(webhook_env.env.other_id, theirs.webhook.id, None, None, 10)
    assert page == []


async def test_a_change_that_is_undone_is_not_told(webhook_env: WebhookEnv) -> None:
    webhook = (await webhook_env.create()).webhook
    file = await webhook_env.add()

    def refuse(*_: Any) -> None:
        raise RuntimeError

    webhook_env.files.add_listener(refuse)
    with pytest.raises(RuntimeError):
        await webhook_env.files.delete(webhook_env.tenant, PRIVATE, file.id)
    assert [one.event_type for one in await webhook_env.list_deliveries(webhook)] == ["ipfs.private.file_added"]


async def test_nobody_else_finds_it(webhook_env: WebhookEnv) -> None:
    webhook, other = (await webhook_env.create()).webhook, webhook_env.env.other_id
    await webhook_env.add()
    delivery = (await webhook_env.list_deliveries(webhook))[0]
    assert await webhook_env.webhooks.list(other) == []
    for foreign in (
        webhook_env.webhooks.get(other, webhook.id),
        webhook_env.webhooks.update(other, webhook.id, WebhookUpdate(enabled=False)),
        webhook_env.webhooks.delete(other, webhook.id),
        webhook_env.webhooks.rotate_secret(other, webhook.id),
        webhook_env.webhooks.deliveries(other, webhook.id, None, None, 10),
        webhook_env.webhooks.redeliver(other, webhook.id, delivery.id),
    ):
        with pytest.raises(WebhookNotFound):
            await foreign
    mine = (await webhook_env.create()).webhook
    with pytest.raises(DeliveryNotFound):
        await webhook_env.webhooks.redeliver(webhook_env.tenant, mine.id, delivery.id)


async def test_pages_of_deliveries(webhook_env: WebhookEnv) -> None:
    webhook = (await webhook_env.create()).webhook
    for number in range(5):
        await webhook_env.add(str(number).encode())
    seen: list[str] = []
    token = None
    while True:
        page, token = await webhook_env.webhooks.deliveries(
            webhook_env.tenant, webhook.id, DeliveryState.PENDING, token, 2
        )
        seen += [one.id for one in page]
        if token is None:
            break
    assert seen == [one.id for one in reversed(await webhook_env.list_deliveries(webhook))]
    assert await webhook_env.list_deliveries(webhook, DeliveryState.DELIVERED) == []


async def test_secrets_are_sealed_and_can_be_sealed_anew(webhook_env: WebhookEnv) -> None:
    made = await webhook_env.create()
    await webhook_env.webhooks.rotate_secret(webhook_env.tenant, made.webhook.id)
    rows = await webhook_env.db.read(lambda connection: connection.execute(store.webhook_secrets.select()).all())
    assert len(rows) == 2
    column = store.webhook_secrets.c.sealed
    assert column in sealed.sealed_columns()
    newer = Sealer(Sensitive(bytes(31) + b"1"), KEY)
    done = await webhook_env.db.write(lambda connection: sealed.reseal_page(connection, newer, column))
    assert (done.renewed, done.lost) == (2, 0)
    after = await webhook_env.db.read(lambda connection: connection.execute(store.webhook_secrets.select()).all())
    assert {row.sealed for row in after}.isdisjoint(row.sealed for row in rows)


async def test_the_secret_before_goes_on_for_a_day(webhook_env: WebhookEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook = (await webhook_env.create()).webhook
    start = clock.utc_now()

    async def count() -> int:
        return len(await webhook_env.db.read(lambda c: store.list_secrets(c, webhook.id, clock.utc_now())))

    await webhook_env.webhooks.rotate_secret(webhook_env.tenant, webhook.id)
    assert await count() == 2
    for _ in range(4):
        await webhook_env.webhooks.rotate_secret(webhook_env.tenant, webhook.id)
    assert await count() == 3
    monkeypatch.setattr(clock, "utc_now", lambda: start + OVERLAP + timedelta(minutes=1))
    assert await count() == 1


async def test_to_enable_one_forgives_it(webhook_env: WebhookEnv) -> None:
    webhook = (await webhook_env.create()).webhook
    failing = replace(webhook, enabled=False, disabled_reason=DisabledReason.FAILING, failing_since=clock.utc_now())
    await webhook_env.db.write(lambda connection: store.update_webhook(connection, failing))
    assert (await webhook_env.webhooks.get(webhook_env.tenant, webhook.id)).disabled_reason is DisabledReason.FAILING
    again = await webhook_env.webhooks.update(webhook_env.tenant, webhook.id, WebhookUpdate(enabled=True))
    assert (again.enabled, again.disabled_reason, again.failing_since) == (True, None, None)


@pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])
async def test_a_change_forgets_nothing_that_an_attempt_found_out_meanwhile(webhook_env: WebhookEnv) -> None:
    """SQLite has one writer at a time."""
    webhook = (await webhook_env.create()).webhook
    gone = replace(webhook, enabled=False, disabled_reason=DisabledReason.GONE)

    def waits(connection: Connection) -> bool:
        return bool(connection.exec_driver_sql("SELECT count(*) FROM pg_locks WHERE NOT granted").scalar_one())

    with webhook_env.db.writer.begin() as attempt:
        store.update_webhook(attempt, gone)
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
