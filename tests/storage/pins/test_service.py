"""The queue of pins: bounded for each tenant, filtered, let go of with the file."""

import asyncio
from collections.abc import AsyncIterator

import pytest
from sqlalchemy import Connection

from roost.core.db import Database
from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import File, FileEvent
from roost.storage.groups.errors import GroupNotFound
from roost.storage.pins import model, service, store
from roost.storage.pins.errors import PinNotFound, TooManyHostNodes, TooManyPins
from roost.storage.pins.model import NameMatch, PinQuery, PinRequest, PinState
from roost.storage.unixfs import car
from roost.storage.unixfs.cid import RAW, Cid
from roost.storage.unixfs.profile import V0, V1
from tests.storage.cars import blocks_of
from tests.storage.house import House
from tests.storage.pins.counter import Counter, Shelf, counter

TREE, BLOCKS = blocks_of(V1, b"content")
CAR = b"".join(car.write_car([TREE.cid], BLOCKS))
NOWHERE = [Cid.for_block(RAW, f"nobody has {number}".encode()) for number in range(4)]


@pytest.fixture
async def desk(place: House, database: Database) -> AsyncIterator[Counter]:
    async with counter(database, place, Shelf("a", {str(TREE.cid): CAR})) as made:
        yield made


async def test_beyond_the_queue_they_wait_for_a_place(desk: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "QUEUE_LIMIT", 2)
    pins = [await desk.pin(cid) for cid in NOWHERE]
    assert [pin.status for pin in pins[2:]] == [PinState.BACKFILLED] * 2
    await desk.pins.delete(pins[0].tenant_id, pins[0].id)
    await desk.until(pins[2], *model.ACTIVE)
    assert await desk.status(pins[3]) is PinState.BACKFILLED


async def test_there_are_so_many_and_no_more(desk: Counter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "WAITING_LIMIT", 2)
    for cid in NOWHERE[:2]:
        await desk.pin(cid)
    with pytest.raises(TooManyPins):
        await desk.pin(NOWHERE[2])
    assert (await desk.pins.add(desk.place.other_id, PinRequest(str(NOWHERE[2])))).status is PinState.PRECHECKING


async def test_what_is_refused(desk: Counter) -> None:
    with pytest.raises(TooManyHostNodes):
        await desk.pins.add(desk.place.tenant_id, PinRequest(str(TREE.cid), hosts=("/dns4/a",) * 21))
    with pytest.raises(GroupNotFound):
        await desk.pins.add(desk.place.tenant_id, PinRequest(str(TREE.cid), group_id="g"))
    assert await desk.pins.slice(desk.place.tenant_id, PinQuery(tuple(PinState)), 10) == ([], 0)


async def test_a_pin_goes_with_its_file(desk: Counter) -> None:
    pin = await desk.pin(TREE.cid)
    await desk.until(pin, PinState.PINNED)
    with pytest.raises(PinNotFound):  # it is out of the queue
        await desk.pins.delete(pin.tenant_id, pin.id)
    (file,) = await desk.all_files()
    await desk.files.delete(file.tenant_id, ContentNetwork.PUBLIC, file.id)
    with pytest.raises(PinNotFound):
        await desk.pins.get(pin.tenant_id, pin.id)


async def test_taken_back_with_its_file(desk: Counter) -> None:
    pin = await desk.pin(TREE.cid)
    await desk.until(pin, PinState.PINNED)
    await desk.pins.unpin(pin.tenant_id, pin.id)
    assert await desk.all_files() == []
    with pytest.raises(PinNotFound):
        await desk.pins.unpin(pin.tenant_id, pin.id)


async def test_the_file_stays_for_another_pin_of_it(desk: Counter) -> None:
    first, second = await desk.pin(TREE.cid), await desk.pin(TREE.cid)
    for pin in (first, second):
        await desk.until(pin, PinState.PINNED)
    await desk.pins.unpin(first.tenant_id, first.id)
    assert len(await desk.all_files()) == 1
    assert await desk.status(second) is PinState.PINNED


async def test_the_file_stays_that_was_there_before(desk: Counter) -> None:
    await desk.until(await desk.pin(TREE.cid), PinState.PINNED)
    (old,) = (await desk.pins.slice(desk.place.tenant_id, PinQuery((PinState.PINNED,)), 10))[0]
    later = await desk.pin(TREE.cid)
    await desk.until(later, PinState.PINNED)
    await desk.pins.unpin(old.tenant_id, old.id)
    await desk.pins.unpin(later.tenant_id, later.id)
    assert len(await desk.all_files()) == 1


async def test_a_page_holds_at_least_one(desk: Counter) -> None:
    pins = [await desk.pin(cid) for cid in NOWHERE[:2]]
    page, more = await desk.pins.list(desk.place.tenant_id, PinQuery(tuple(PinState)), None, 0)
    assert len(page) == 1
    rest, _ = await desk.pins.list(desk.place.tenant_id, PinQuery(tuple(PinState)), more, -1)
    assert {pin.id for pin in (*page, *rest)} == {pin.id for pin in pins}


async def test_replaced(desk: Counter) -> None:
    pin = await desk.pin(TREE.cid, "old")
    await desk.until(pin, PinState.PINNED)
    new = await desk.pins.replace(pin.tenant_id, pin.id, PinRequest(str(TREE.cid), "new"))
    assert (new.status, new.ask.name, new.id != pin.id) == (PinState.PINNED, "new", True)
    other = await desk.pins.replace(pin.tenant_id, new.id, PinRequest(str(NOWHERE[0])))
    assert await desk.status(other) in model.ACTIVE
    assert await desk.all_files() == []
    again = await desk.pins.replace(pin.tenant_id, other.id, PinRequest(str(NOWHERE[0]), "again"))
    async with asyncio.timeout(30):
        while await desk.status(again) is not PinState.SEARCHING:
            await asyncio.sleep(0.02)
    for gone in (pin, new, other):
        with pytest.raises(PinNotFound):
            await desk.pins.replace(pin.tenant_id, gone.id, PinRequest(str(TREE.cid)))


async def test_replaced_by_the_same_under_another_spelling(place: House, database: Database) -> None:
    """It is there: nobody else may have it any more."""
    tree, blocks = blocks_of(V0, b"content")
    shelf = Shelf("a", {str(tree.cid): b"".join(car.write_car([tree.cid], blocks))})
    async with counter(database, place, shelf) as desk:
        pin = await desk.pin(tree.cid)
        await desk.until(pin, PinState.PINNED)
        shelf.cars.clear()
        (file,) = await desk.all_files()
        new = await desk.pins.replace(pin.tenant_id, pin.id, PinRequest(str(tree.cid.v1()), "new"))
        assert (new.status, new.ask.cid, new.file_id) == (PinState.PINNED, str(tree.cid.v1()), file.id)
        assert await desk.all_files() == [file]


async def test_a_pin_is_replaced_or_stays_as_it_was(desk: Counter) -> None:
    pin = await desk.pin(TREE.cid)
    await desk.until(pin, PinState.PINNED)
    with pytest.raises(GroupNotFound):
        await desk.pins.replace(pin.tenant_id, pin.id, PinRequest(str(NOWHERE[0]), group_id="g"))

    def fail(_connection: Connection, change: FileEvent, _file: File, _before: File | None) -> None:
        if change is FileEvent.DELETED:
            raise ConnectionError

    desk.files.add_listener(fail)
    with pytest.raises(ConnectionError):
        await desk.pins.replace(pin.tenant_id, pin.id, PinRequest(str(NOWHERE[0])))
    there, _ = await desk.pins.slice(pin.tenant_id, PinQuery(tuple(PinState)), 10)
    assert [(one.id, one.status) for one in there] == [(pin.id, PinState.PINNED)]
    assert len(await desk.all_files()) == 1


async def test_where_there_is_no_room_for_more_a_pin_can_be_replaced(
    desk: Counter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "WAITING_LIMIT", 1)
    pin = await desk.pin(NOWHERE[0])
    new = await desk.pins.replace(pin.tenant_id, pin.id, PinRequest(str(NOWHERE[1])))
    assert new.status in model.ACTIVE


async def test_a_file_goes_with_the_last_of_its_pins_when_all_go_at_once(place: House, database: Database) -> None:
    shelf = Shelf("a", {str(TREE.cid): CAR}, is_open=False)
    async with counter(database, place, shelf) as desk:
        pins = [await desk.pin(TREE.cid) for _ in range(4)]
        shelf.open.set()
        for pin in pins:
            await desk.until(pin, PinState.PINNED)
        await asyncio.gather(*(desk.pins.unpin(pin.tenant_id, pin.id) for pin in pins))
        assert await desk.all_files() == []


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
async def test_filters(desk: Counter, wanted: PinQuery, found: list[str]) -> None:
    mine = desk.place.tenant_id
    await desk.pins.add(mine, PinRequest(str(NOWHERE[0]), "abc", meta={"ä": '"', "k": "v"}))
    await desk.pins.add(mine, PinRequest(str(NOWHERE[1]), "Ab%", meta={'a"k': "v", "x": '{"k":"v"'}))
    await desk.pins.add(desk.place.other_id, PinRequest(str(NOWHERE[0]), "abc", meta={"k": "v"}))
    page, count = await desk.pins.slice(mine, wanted, 10)
    assert (sorted(pin.ask.name or "" for pin in page), count) == (found, len(found))


async def test_the_times_of_pins_are_all_different_and_whole_milliseconds(desk: Counter) -> None:
    pins = await asyncio.gather(*(desk.pin(cid) for cid in NOWHERE * 5))
    moments = [pin.created_at for pin in pins]
    assert len(set(moments)) == len(pins)
    assert {moment.microsecond % 1000 for moment in moments} == {0}


async def test_by_time(desk: Counter) -> None:
    first, second = [await desk.pin(cid) for cid in NOWHERE[:2]]
    mine = first.tenant_id
    assert [one.id for one in (await desk.pins.slice(mine, PinQuery(after=first.created_at), 10))[0]] == [second.id]
    assert [one.id for one in (await desk.pins.slice(mine, PinQuery(before=second.created_at), 10))[0]] == [first.id]


async def test_one_that_came_to_nothing_begins_anew(desk: Counter, database: Database) -> None:
    pin = await desk.pin(NOWHERE[0])
    await database.write(lambda connection: store.set_status(connection, pin.id, PinState.EXPIRED, pin.updated_at))
    new = await desk.pins.replace(pin.tenant_id, pin.id, PinRequest(str(NOWHERE[0]), "again"))
    assert new.created_at > pin.created_at
    await desk.until(new, *model.ACTIVE)
