"""The queue of pins: bounded for each tenant, filtered, let go of with the file."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import Connection

from roost.core.db import Database
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import RAW, Cid
from roost.storage.content.unixfs.profile import V0, V1
from roost.storage.files.groups.model import GroupNotFound
from roost.storage.files.model import File, FileEvent
from roost.storage.pins import model, service, store
from roost.storage.pins.model import (
    NameMatch,
    PinNotFound,
    PinQuery,
    PinRequest,
    PinState,
    TooManyHostNodes,
    TooManyPins,
)
from tests.storage.cars import blocks_of, encode_car
from tests.storage.pins.pin_env import CarSource, PinEnv, open_pin_env
from tests.storage.storage_env import StorageEnv

TREE, BLOCKS = blocks_of(V1, b"content")
CAR = encode_car([TREE.cid], BLOCKS)
NOWHERE = [Cid.for_block(RAW, f"nobody has {number}".encode()) for number in range(4)]


@pytest.fixture
async def pin_env(env: StorageEnv, database: Database) -> AsyncIterator[PinEnv]:
    async with open_pin_env(database, env, CarSource("a", {str(TREE.cid): CAR})) as made:
        yield made


async def test_beyond_the_queue_they_wait_for_a_place(pin_env: PinEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "QUEUE_LIMIT", 2)
    pins = [await pin_env.pin(cid) for cid in NOWHERE]
    assert [pin.status for pin in pins[2:]] == [PinState.BACKFILLED] * 2
    await pin_env.pins.delete(pins[0].tenant_id, pins[0].id)
    await pin_env.until(pins[2], *model.ACTIVE)
    assert await pin_env.status(pins[3]) is PinState.BACKFILLED


async def test_there_are_so_many_and_no_more(pin_env: PinEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "WAITING_LIMIT", 2)
    for cid in NOWHERE[:2]:
        await pin_env.pin(cid)
    with pytest.raises(TooManyPins):
        await pin_env.pin(NOWHERE[2])
    assert (await pin_env.pins.add(pin_env.env.other_id, PinRequest(str(NOWHERE[2])))).status is PinState.PRECHECKING


async def test_malformed_pins_are_refused(pin_env: PinEnv) -> None:
    with pytest.raises(TooManyHostNodes):
        await pin_env.pins.add(pin_env.env.tenant_id, PinRequest(str(TREE.cid), hosts=("/dns4/a",) * 21))
    with pytest.raises(GroupNotFound):
        await pin_env.pins.add(pin_env.env.tenant_id, PinRequest(str(TREE.cid), group_id="g"))
    assert await pin_env.pins.list_slice(pin_env.env.tenant_id, PinQuery(tuple(PinState)), 10) == ([], 0)


async def test_a_pin_goes_with_its_file(pin_env: PinEnv) -> None:
    pin = await pin_env.pin(TREE.cid)
    await pin_env.until(pin, PinState.PINNED)
    with pytest.raises(PinNotFound):  # it is out of the queue
        await pin_env.pins.delete(pin.tenant_id, pin.id)
    (file,) = await pin_env.all_files()
    await pin_env.files.delete(file.tenant_id, ContentNetwork.PUBLIC, file.id)
    with pytest.raises(PinNotFound):
        await pin_env.pins.get(pin.tenant_id, pin.id)


async def test_taken_back_with_its_file(pin_env: PinEnv) -> None:
    pin = await pin_env.pin(TREE.cid)
    await pin_env.until(pin, PinState.PINNED)
    await pin_env.pins.unpin(pin.tenant_id, pin.id)
    assert await pin_env.all_files() == []
    with pytest.raises(PinNotFound):
        await pin_env.pins.unpin(pin.tenant_id, pin.id)


async def test_the_file_stays_for_another_pin_of_it(pin_env: PinEnv) -> None:
    first, second = await pin_env.pin(TREE.cid), await pin_env.pin(TREE.cid)
    for pin in (first, second):
        await pin_env.until(pin, PinState.PINNED)
    await pin_env.pins.unpin(first.tenant_id, first.id)
    assert len(await pin_env.all_files()) == 1
    assert await pin_env.status(second) is PinState.PINNED


async def test_the_file_stays_that_was_there_before(pin_env: PinEnv) -> None:
    await pin_env.until(await pin_env.pin(TREE.cid), PinState.PINNED)
    (old,) = (await pin_env.pins.list_slice(pin_env.env.tenant_id, PinQuery((PinState.PINNED,)), 10))[0]
    later = await pin_env.pin(TREE.cid)
    await pin_env.until(later, PinState.PINNED)
    await pin_env.pins.unpin(old.tenant_id, old.id)
    await pin_env.pins.unpin(later.tenant_id, later.id)
    assert len(await pin_env.all_files()) == 1


async def test_a_page_holds_at_least_one(pin_env: PinEnv) -> None:
    pins = [await pin_env.pin(cid) for cid in NOWHERE[:2]]
    page, more = await pin_env.pins.list(pin_env.env.tenant_id, PinQuery(tuple(PinState)), None, 0)
    assert len(page) == 1
    rest, _ = await pin_env.pins.list(pin_env.env.tenant_id, PinQuery(tuple(PinState)), more, -1)
    assert {pin.id for pin in (*page, *rest)} == {pin.id for pin in pins}


async def test_replaced_pin_has_a_new_id_and_the_old_is_gone(pin_env: PinEnv) -> None:
    pin = await pin_env.pin(TREE.cid, "old")
    await pin_env.until(pin, PinState.PINNED)
    new = await pin_env.pins.replace(pin.tenant_id, pin.id, PinRequest(str(TREE.cid), "new"))
    assert (new.status, new.request.name, new.id != pin.id) == (PinState.PINNED, "new", True)
    other = await pin_env.pins.replace(pin.tenant_id, new.id, PinRequest(str(NOWHERE[0])))
    assert await pin_env.status(other) in model.ACTIVE
    assert await pin_env.all_files() == []
    again = await pin_env.pins.replace(pin.tenant_id, other.id, PinRequest(str(NOWHERE[0]), "again"))
    async with asyncio.timeout(30):
        while await pin_env.status(again) is not PinState.SEARCHING:
            await asyncio.sleep(0.02)
    for gone in (pin, new, other):
        with pytest.raises(PinNotFound):
            await pin_env.pins.replace(pin.tenant_id, gone.id, PinRequest(str(TREE.cid)))


async def test_replaced_by_the_same_under_another_spelling(env: StorageEnv, database: Database) -> None:
    """It is there: nobody else may have it any more."""
    tree, blocks = blocks_of(V0, b"content")
    car_source = CarSource("a", {str(tree.cid): encode_car([tree.cid], blocks)})
    async with open_pin_env(database, env, car_source) as pin_env:
        pin = await pin_env.pin(tree.cid)
        await pin_env.until(pin, PinState.PINNED)
        car_source.cars.clear()
        (file,) = await pin_env.all_files()
        new = await pin_env.pins.replace(pin.tenant_id, pin.id, PinRequest(str(tree.cid.v1()), "new"))
        assert (new.status, new.request.cid, new.file_id) == (PinState.PINNED, str(tree.cid.v1()), file.id)
        assert await pin_env.all_files() == [file]


async def test_a_pin_is_replaced_or_stays_as_it_was(pin_env: PinEnv) -> None:
    pin = await pin_env.pin(TREE.cid)
    await pin_env.until(pin, PinState.PINNED)
    with pytest.raises(GroupNotFound):
        await pin_env.pins.replace(pin.tenant_id, pin.id, PinRequest(str(NOWHERE[0]), group_id="g"))

    def fail(_connection: Connection, change: FileEvent, _file: File, _before: File | None) -> None:
        if change is FileEvent.DELETED:
            raise ConnectionError

    pin_env.files.add_listener(fail)
    with pytest.raises(ConnectionError):
        await pin_env.pins.replace(pin.tenant_id, pin.id, PinRequest(str(NOWHERE[0])))
    there, _ = await pin_env.pins.list_slice(pin.tenant_id, PinQuery(tuple(PinState)), 10)
    assert [(one.id, one.status) for one in there] == [(pin.id, PinState.PINNED)]
    assert len(await pin_env.all_files()) == 1


async def test_a_pin_can_be_replaced_when_the_queue_is_full(pin_env: PinEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "WAITING_LIMIT", 1)
    pin = await pin_env.pin(NOWHERE[0])
    new = await pin_env.pins.replace(pin.tenant_id, pin.id, PinRequest(str(NOWHERE[1])))
    assert new.status in model.ACTIVE


async def test_a_file_goes_with_the_last_of_its_pins_when_all_go_at_once(env: StorageEnv, database: Database) -> None:
    car_source = CarSource("a", {str(TREE.cid): CAR}, is_open=False)
    async with open_pin_env(database, env, car_source) as pin_env:
        pins = [await pin_env.pin(TREE.cid) for _ in range(4)]
        car_source.open.set()
        for pin in pins:
            await pin_env.until(pin, PinState.PINNED)
        await asyncio.gather(*(pin_env.pins.unpin(pin.tenant_id, pin.id) for pin in pins))
        assert await pin_env.all_files() == []


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (PinQuery(name="Ab%"), ["Ab%"]),
        (PinQuery(name="ab%"), []),
        (PinQuery(name="ab%", match=NameMatch.IEXACT), ["Ab%"]),
        (PinQuery(name="b", match=NameMatch.PARTIAL), ["Ab%", "abc"]),
        (PinQuery(name="A", match=NameMatch.PARTIAL), ["Ab%"]),
        (PinQuery(name="A", match=NameMatch.IPARTIAL), ["Ab%", "abc"]),
        (PinQuery(name="%", match=NameMatch.IPARTIAL), ["Ab%"]),
        (PinQuery(meta={"k": "v"}), ["abc"]),
        (PinQuery(meta={"k": "v", "ä": '"'}), ["abc"]),
        (PinQuery(meta={"k": "V"}), []),
        (PinQuery(meta={"k": "v", "none": ""}), []),
    ],
)
async def test_filters_select_pins(pin_env: PinEnv, wanted: PinQuery, found: list[str]) -> None:
    mine = pin_env.env.tenant_id
    await pin_env.pins.add(mine, PinRequest(str(NOWHERE[0]), "abc", meta={"ä": '"', "k": "v"}))
    await pin_env.pins.add(mine, PinRequest(str(NOWHERE[1]), "Ab%", meta={'a"k': "v", "x": '{"k":"v"'}))
    await pin_env.pins.add(pin_env.env.other_id, PinRequest(str(NOWHERE[0]), "abc", meta={"k": "v"}))
    page, count = await pin_env.pins.list_slice(mine, wanted, 10)
    assert (sorted(pin.request.name or "" for pin in page), count) == (found, len(found))


async def test_the_times_of_pins_are_all_different_and_whole_milliseconds(pin_env: PinEnv) -> None:
    pins = await asyncio.gather(*(pin_env.pin(cid) for cid in NOWHERE * 5))
    moments = [pin.created_at for pin in pins]
    assert len(set(moments)) == len(pins)
    assert {moment.microsecond % 1000 for moment in moments} == {0}


async def test_lists_are_bounded_by_time(pin_env: PinEnv) -> None:
    first, second = [await pin_env.pin(cid) for cid in NOWHERE[:2]]
    mine = first.tenant_id
    assert [one.id for one in (await pin_env.pins.list_slice(mine, PinQuery(after=first.created_at), 10))[0]] == [
        second.id
    ]
    assert [one.id for one in (await pin_env.pins.list_slice(mine, PinQuery(before=second.created_at), 10))[0]] == [
        first.id
    ]


async def test_a_failed_pin_is_queued_again(pin_env: PinEnv, database: Database) -> None:
    pin = await pin_env.pin(NOWHERE[0])
    await database.write(lambda connection: store.set_status(connection, pin.id, PinState.EXPIRED, pin.updated_at))
    new = await pin_env.pins.replace(pin.tenant_id, pin.id, PinRequest(str(NOWHERE[0]), "again"))
    assert new.created_at > pin.created_at
    await pin_env.until(new, *model.ACTIVE)
