"""Webhooks of tenants: made, changed, limited; and the outbox in the transaction of the change that it tells of."""

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
from tests.storage.house import House
from tests.storage.webhooks.office import KEY, Office

PRIVATE = ContentNetwork.PRIVATE


@pytest.fixture
def office(place: House, database: Database) -> Office:
    return Office(place, database)


async def test_one_comes_and_goes(office: Office) -> None:
    made = await office.make(events=[EVENTS[0]], description="mine")
    assert made.secret.reveal().startswith("whsec_")
    webhook = made.webhook
    assert (webhook.url, webhook.description, webhook.enabled) == ("https://receiver.example/hook", "mine", True)
    assert await office.webhooks.get(office.tenant, webhook.id) == webhook
    changed = await office.webhooks.update(office.tenant, webhook.id, WebhookUpdate(enabled=False, events=[]))
    assert (changed.enabled, changed.events, changed.description) == (False, (), "mine")
    assert [one.id for one in await office.webhooks.list(office.tenant)] == [webhook.id]
    await office.webhooks.delete(office.tenant, webhook.id)
    assert await office.webhooks.list(office.tenant) == []
    for gone in (
        office.webhooks.get(office.tenant, webhook.id),
        office.webhooks.delete(office.tenant, webhook.id),
        office.webhooks.rotate_secret(office.tenant, webhook.id),
        office.webhooks.deliveries(office.tenant, webhook.id, None, None, 10),
        office.webhooks.redeliver(office.tenant, webhook.id, "d"),
        office.webhooks.update(office.tenant, webhook.id, WebhookUpdate(enabled=True)),
    ):
        with pytest.raises(WebhookNotFound):
            await gone


async def test_what_is_no_webhook(office: Office) -> None:
    with pytest.raises(InvalidWebhookEvents):
        await office.make(events=["file_added"])
    with pytest.raises(UrlRefused):
        await office.make("https://receiver.example/" + "x" * 3000)
    made = await office.make()
    with pytest.raises(UrlRefused):
        await office.webhooks.update(office.tenant, made.webhook.id, WebhookUpdate(url="https://a.example/ b"))
    with pytest.raises(EmptyWebhookUpdate):
        await office.webhooks.update(office.tenant, made.webhook.id, WebhookUpdate())


async def test_the_limit_is_exact(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "WEBHOOK_LIMIT", 3)
    answers = await asyncio.gather(*(office.make() for _ in range(6)), return_exceptions=True)
    assert sum(isinstance(answer, WebhookLimitReached) for answer in answers) == 3
    made = await office.webhooks.list(office.tenant)
    assert len(made) == 3
    await office.webhooks.delete(office.tenant, made[0].id)
    await office.make()


async def test_every_change_is_in_the_outbox(office: Office) -> None:
    webhook = (await office.make()).webhook
    file = await office.add(note=FileMetadata("one"))
    await office.add()  # the same again is no event
    await office.files.set_metadata(office.tenant, PRIVATE, file.id, FileMetadata("two"))
    await office.files.delete(office.tenant, PRIVATE, file.id)
    brief = await office.add(
        b"brief", FileMetadata("brief", expires_at=clock.utc_now() - timedelta(seconds=1)), ContentNetwork.PUBLIC
    )
    assert await office.files.expire() == 1
    told = await office.told(webhook)
    assert [one.event_type for one in told] == [
        *("ipfs.private.file_added", "ipfs.private.file_updated", "ipfs.private.file_deleted"),
        *("ipfs.public.file_added", "ipfs.public.file_deleted"),
    ]
    assert {one.state for one in told} == {DeliveryState.PENDING}
    bodies = await office.db.read(_bodies)
    assert all(file.id in body or brief.id in body for body in bodies)
    assert '"previous_attributes":{"name":"one"}' in bodies[1]


async def test_only_those_that_want_it_are_told(office: Office) -> None:
    wants = (await office.make(events=["ipfs.private.file_added"])).webhook
    public = (await office.make(events=["ipfs.public.file_added"])).webhook
    off = (await office.make(enabled=False)).webhook
    gone = (await office.make()).webhook
    await office.webhooks.delete(office.tenant, gone.id)
    theirs = await office.webhooks.create(office.place.other_id, "https://other.example/", WebhookUpdate())
    await office.add()
    assert len(await office.told(wants)) == 1
    assert await office.told(public) == await office.told(off) == []
    page, _ = await office.webhooks.deliveries(office.place.other_id, theirs.webhook.id, None, None, 10)
    assert page == []


async def test_a_change_that_is_undone_is_not_told(office: Office) -> None:
    webhook = (await office.make()).webhook
    file = await office.add()

    def refuse(*_: Any) -> None:
        raise RuntimeError

    office.files.add_listener(refuse)
    with pytest.raises(RuntimeError):
        await office.files.delete(office.tenant, PRIVATE, file.id)
    assert [one.event_type for one in await office.told(webhook)] == ["ipfs.private.file_added"]


async def test_nobody_else_finds_it(office: Office) -> None:
    webhook, other = (await office.make()).webhook, office.place.other_id
    await office.add()
    delivery = (await office.told(webhook))[0]
    assert await office.webhooks.list(other) == []
    for foreign in (
        office.webhooks.get(other, webhook.id),
        office.webhooks.update(other, webhook.id, WebhookUpdate(enabled=False)),
        office.webhooks.delete(other, webhook.id),
        office.webhooks.rotate_secret(other, webhook.id),
        office.webhooks.deliveries(other, webhook.id, None, None, 10),
        office.webhooks.redeliver(other, webhook.id, delivery.id),
    ):
        with pytest.raises(WebhookNotFound):
            await foreign
    mine = (await office.make()).webhook
    with pytest.raises(DeliveryNotFound):
        await office.webhooks.redeliver(office.tenant, mine.id, delivery.id)


async def test_pages_of_deliveries(office: Office) -> None:
    webhook = (await office.make()).webhook
    for number in range(5):
        await office.add(str(number).encode())
    seen: list[str] = []
    token = None
    while True:
        page, token = await office.webhooks.deliveries(office.tenant, webhook.id, DeliveryState.PENDING, token, 2)
        seen += [one.id for one in page]
        if token is None:
            break
    assert seen == [one.id for one in reversed(await office.told(webhook))]
    assert await office.told(webhook, DeliveryState.DELIVERED) == []


async def test_secrets_are_sealed_and_can_be_sealed_anew(office: Office) -> None:
    made = await office.make()
    await office.webhooks.rotate_secret(office.tenant, made.webhook.id)
    rows = await office.db.read(lambda connection: connection.execute(store.webhook_secrets.select()).all())
    assert len(rows) == 2
    column = store.webhook_secrets.c.sealed
    assert column in sealed.sealed_columns()
    newer = Sealer(Sensitive(bytes(31) + b"1"), KEY)
    done = await office.db.write(lambda connection: sealed.reseal_page(connection, newer, column))
    assert (done.renewed, done.lost) == (2, 0)
    after = await office.db.read(lambda connection: connection.execute(store.webhook_secrets.select()).all())
    assert {row.sealed for row in after}.isdisjoint(row.sealed for row in rows)


async def test_the_secret_before_goes_on_for_a_day(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    webhook = (await office.make()).webhook
    start = clock.utc_now()

    async def count() -> int:
        return len(await office.db.read(lambda c: store.secrets(c, webhook.id, clock.utc_now())))

    await office.webhooks.rotate_secret(office.tenant, webhook.id)
    assert await count() == 2
    for _ in range(4):
        await office.webhooks.rotate_secret(office.tenant, webhook.id)
    assert await count() == 3
    monkeypatch.setattr(clock, "utc_now", lambda: start + OVERLAP + timedelta(minutes=1))
    assert await count() == 1


async def test_to_enable_one_forgives_it(office: Office) -> None:
    webhook = (await office.make()).webhook
    failing = replace(webhook, enabled=False, disabled_reason=DisabledReason.FAILING, failing_since=clock.utc_now())
    await office.db.write(lambda connection: store.update(connection, failing))
    assert (await office.webhooks.get(office.tenant, webhook.id)).disabled_reason is DisabledReason.FAILING
    again = await office.webhooks.update(office.tenant, webhook.id, WebhookUpdate(enabled=True))
    assert (again.enabled, again.disabled_reason, again.failing_since) == (True, None, None)


@pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])
async def test_a_change_forgets_nothing_that_an_attempt_found_out_meanwhile(office: Office) -> None:
    """SQLite has one writer at a time."""
    webhook = (await office.make()).webhook
    gone = replace(webhook, enabled=False, disabled_reason=DisabledReason.GONE)

    def waits(connection: Connection) -> bool:
        return bool(connection.exec_driver_sql("SELECT count(*) FROM pg_locks WHERE NOT granted").scalar_one())

    with office.db.writer.begin() as attempt:
        store.update(attempt, gone)
        changing = asyncio.create_task(
            office.webhooks.update(office.tenant, webhook.id, WebhookUpdate(description="new"))
        )
        async with asyncio.timeout(20):
            while not await office.db.read(waits):
                await asyncio.sleep(0.005)
    changed = await changing
    assert (changed.description, changed.enabled, changed.disabled_reason) == ("new", False, DisabledReason.GONE)


def _bodies(connection: Connection) -> list[str]:
    return [row.body for row in connection.execute(store.events.select().order_by(store.events.c.created_at))]
