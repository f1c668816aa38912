"""Content by CID becomes a file when it is whole and what was asked for, and not otherwise."""

import asyncio
from datetime import timedelta

import pytest
import sqlalchemy as sa

from roost import work
from roost.core import clock
from roost.core.db import Database
from roost.drivers.blob.folder_store import FolderStore
from roost.drivers.network.none import NoNetwork
from roost.identity import tenants
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import ContentNetwork
from roost.storage.files.service import FileService
from roost.storage.pins import retrieve, store
from roost.storage.pins.errors import PinNotFound
from roost.storage.pins.model import FAILED, Pin, PinRequest, PinState
from roost.storage.pins.service import PinService
from roost.storage.unixfs import car
from roost.storage.unixfs.cid import DAG_CBOR, Cid
from roost.storage.unixfs.profile import V0, V1
from roost.work import OperationLimits
from tests.storage.cars import blocks_of, house_of_files
from tests.storage.house import CONTENT, House
from tests.storage.meanwhile import ON_POSTGRESQL, waiting
from tests.storage.pins.counter import LIMIT, Counter, Shelf, counter

FOLDER, BLOCKS = house_of_files(V1)
FOLDER_CAR = b"".join(car.write_car([FOLDER], BLOCKS))
SMALL, SMALL_BLOCKS = blocks_of(V0, b"small")
SMALL_CAR = b"".join(car.write_car([SMALL.cid], SMALL_BLOCKS))
END = (PinState.PINNED, *FAILED)


def shelf(name: str = "/dns4/a.example", *, is_open: bool = True, **cars: bytes) -> Shelf:
    return Shelf(name, cars, is_open=is_open)


async def test_a_folder_is_retrieved(place: House, database: Database) -> None:
    async with counter(database, place, shelf(**{str(FOLDER): FOLDER_CAR})) as desk:
        pin = await desk.pin(FOLDER, "mine")
        assert await desk.until(pin, *END) is PinState.PINNED
        (file,) = await desk.all_files()
        assert (file.cid, file.note.name, file.mime_type, file.number_of_files) == (str(FOLDER), "mine", "directory", 3)
        assert (await desk.pins.get(pin.tenant_id, pin.id)).file_id == file.id
        assert await desk.read(file.cid, "in", "big") == CONTENT


async def test_a_cid_stays_as_it_was_written(place: House, database: Database) -> None:
    async with counter(database, place, shelf(**{str(SMALL.cid): SMALL_CAR})) as desk:
        await desk.until(await desk.pin(SMALL.cid), PinState.PINNED)
        assert [(file.cid, file.size, file.note.name) for file in await desk.all_files()] == [(str(SMALL.cid), 5, None)]


def _lies() -> dict[str, bytes]:
    middle = len(FOLDER_CAR) // 2
    return {
        "cut": FOLDER_CAR[:middle],
        "flipped": FOLDER_CAR[:middle] + bytes((FOLDER_CAR[middle] ^ 1,)) + FOLDER_CAR[middle + 1 :],
        "lacks a block": b"".join(car.write_car([FOLDER], BLOCKS[1:])),
        "another root": SMALL_CAR,
        "nothing": b"",
        "no CAR": b"<html>" * 1000,
    }


@pytest.mark.parametrize("lie", _lies().values(), ids=_lies())
async def test_a_source_that_lies_is_left_for_the_next(place: House, database: Database, lie: bytes) -> None:
    liar, honest = shelf(**{str(FOLDER): lie}), shelf(**{str(FOLDER): FOLDER_CAR})
    async with counter(database, place, liar, honest) as desk:
        await desk.until(await desk.pin(FOLDER), PinState.PINNED)
        assert (liar.asked, honest.asked) == ([str(FOLDER)], [str(FOLDER)])
        assert await desk.read(str(FOLDER), "in", "big") == CONTENT


async def test_lies_alone_leave_nothing(place: House, database: Database) -> None:
    liars = [shelf(**{str(FOLDER): lie}) for lie in _lies().values()]
    async with counter(database, place, *liars) as desk:
        pin = await desk.pin(FOLDER)
        await _asked(liars[-1])
        assert await desk.until(pin, PinState.SEARCHING) is PinState.SEARCHING
        assert await desk.all_files() == []
    assert [path for path in (place.folder / "blobs").rglob("*") if path.is_file()] == []


async def _asked(last: Shelf, times: int = 1) -> None:
    async with asyncio.timeout(30):
        while len(last.asked) < times:
            await asyncio.sleep(0.02)


async def test_what_nobody_has_is_looked_for_again(place: House, database: Database) -> None:
    empty = shelf()
    async with counter(database, place, empty) as desk:
        pin = await desk.pin(FOLDER)
        await _asked(empty)
        empty.cars[str(FOLDER)] = FOLDER_CAR
        assert await desk.until(pin, *END) is PinState.PINNED


async def test_it_expires_after_a_day(place: House, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    empty, now = shelf(), clock.utc_now
    async with counter(database, place, empty) as desk:
        pin = await desk.pin(FOLDER)
        await _asked(empty)
        monkeypatch.setattr(clock, "utc_now", lambda: now() + timedelta(days=1))
        assert await desk.until(pin, *END) is PinState.EXPIRED


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (PinRequest(str(Cid.for_block(DAG_CBOR, b"x"))), PinState.INVALID_OBJECT),
        (PinRequest(str(Cid(1, 0x55, 0, b"inline"))), PinState.INVALID_OBJECT),
        (PinRequest(str(FOLDER), hosts=("peer.example",)), PinState.BAD_HOST_NODE),
    ],
)
async def test_what_cannot_be_pinned(place: House, database: Database, ask: PinRequest, expected: PinState) -> None:
    last = shelf(**{ask.cid: FOLDER_CAR})
    async with counter(database, place, last) as desk:
        pin = await desk.pins.add(place.tenant_id, ask)
        assert await desk.until(pin, *END) is expected
        assert last.asked == []


async def test_what_is_too_large(place: House, database: Database) -> None:
    tree, blocks = blocks_of(V1, CONTENT * 2)
    async with counter(database, place, shelf(**{str(tree.cid): b"".join(car.write_car([tree.cid], blocks))})) as desk:
        assert tree.size > LIMIT
        assert await desk.until(await desk.pin(tree.cid), *END) is PinState.OVER_MAX_SIZE
        assert await desk.all_files() == []


async def test_what_is_too_large_for_the_free_plan(place: House, database: Database) -> None:
    tree, blocks = blocks_of(V1, CONTENT * 2)
    source = shelf(**{str(tree.cid): b"".join(car.write_car([tree.cid], blocks))})
    async with counter(database, place, source, most=LIMIT + 1) as desk:
        assert await desk.until(await desk.pin(tree.cid), *END) is PinState.OVER_FREE_LIMIT


async def test_when_the_storage_of_the_plan_is_full(place: House, database: Database) -> None:
    async with counter(database, place, shelf(**{str(FOLDER): FOLDER_CAR}), capacity=len(FOLDER_CAR) - 1) as desk:
        assert await desk.until(await desk.pin(FOLDER), *END) is PinState.OVER_FREE_LIMIT
        assert await desk.all_files() == []
        assert [blob async for blob in FolderStore(place.folder / "blobs").list()] == []


async def test_what_is_public_here_needs_no_network(place: House, database: Database) -> None:
    _, (theirs,) = await place.keep(CONTENT, network=ContentNetwork.PUBLIC)
    async with counter(database, place) as desk:
        pin = await desk.pins.add(place.other_id, PinRequest(str(theirs.cid)))
        assert await desk.until(pin, *END) is PinState.PINNED
        assert [file.cid for file in await desk.all_files(place.other_id)] == [str(theirs.cid)]
        assert await desk.all_files() == []


async def test_what_is_private_here_is_not_found(place: House, database: Database) -> None:
    _, (theirs,) = await place.keep(CONTENT)
    last = shelf()
    async with counter(database, place, last) as desk:
        pin = await desk.pins.add(place.other_id, PinRequest(str(theirs.cid)))
        await _asked(last, 2)
        assert await desk.status(pin) is PinState.SEARCHING


async def test_what_the_tenant_has_is_that_file(place: House, database: Database) -> None:
    first = shelf(**{str(SMALL.cid): SMALL_CAR})
    async with counter(database, place, first) as desk:
        pins = [await desk.pin(SMALL.cid, "one")]
        await desk.until(pins[0], PinState.PINNED)
        pins.append(await desk.pin(SMALL.cid, "two"))
        await desk.until(pins[1], PinState.PINNED)
        assert [file.note.name for file in await desk.all_files()] == ["one"]
        assert len(first.asked) == 1


async def test_taken_back_while_it_comes(place: House, database: Database) -> None:
    half = shelf(is_open=False, **{str(FOLDER): FOLDER_CAR})
    async with counter(database, place, half) as desk:
        pin = await desk.pin(FOLDER)
        await desk.until(pin, PinState.RETRIEVING)
        await desk.pins.delete(pin.tenant_id, pin.id)
        half.open.set()
        await _idle(desk, database, pin.id)
        assert await desk.all_files() == []
    with pytest.raises(ContentNotFound):
        await place.reader.stat(place.scope, FOLDER)


async def _idle(desk: Counter, database: Database, pin_id: str) -> None:
    async with asyncio.timeout(30):
        while not (await database.read(lambda connection: work.get(connection, pin_id))).finished:
            await asyncio.sleep(0.02)
    with pytest.raises(PinNotFound):
        await desk.pins.get(desk.place.tenant_id, pin_id)


async def test_a_restart_begins_anew(place: House, database: Database) -> None:
    half = shelf(is_open=False, **{str(FOLDER): FOLDER_CAR})
    async with counter(database, place, half) as desk:
        pin = await desk.pin(FOLDER)
        await desk.until(pin, PinState.RETRIEVING)
    async with counter(database, place, shelf(**{str(FOLDER): FOLDER_CAR})) as desk:
        assert await desk.until(pin, *END) is PinState.PINNED
        assert await desk.read(str(FOLDER), "in", "big") == CONTENT


async def test_many_at_once_all_come(place: House, database: Database) -> None:
    trees = [blocks_of(V1, f"file {number}".encode()) for number in range(5)]
    cars = {str(tree.cid): b"".join(car.write_car([tree.cid], blocks)) for tree, blocks in trees}
    async with counter(database, place, shelf(**cars)) as desk:
        pins = [await desk.pin(tree.cid) for tree, _ in trees]
        for pin in pins:
            await desk.until(pin, PinState.PINNED)
        assert len(await desk.all_files()) == len(trees)


async def test_a_slow_source_of_one_tenant_delays_no_other(
    place: House, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieve, "LIMITS", OperationLimits(total=4, per_tenant=1, per_subject=1))
    source = shelf(is_open=False, **{str(FOLDER): FOLDER_CAR, str(SMALL.cid): SMALL_CAR})
    async with counter(database, place, source) as desk:
        first = await desk.pin(FOLDER)
        await desk.until(first, PinState.RETRIEVING)
        second = await desk.pin(SMALL.cid)
        theirs = await desk.pins.add(place.other_id, PinRequest(str(SMALL.cid)))
        await desk.until(theirs, PinState.RETRIEVING)
        assert await desk.status(second) is PinState.PRECHECKING
        assert source.asked == [str(FOLDER), str(SMALL.cid)]
        source.open.set()
        for pin in (first, second, theirs):
            assert await desk.until(pin, *END) is PinState.PINNED


async def _asked_for(place: House, cid: Cid) -> Pin:
    """A pin that nobody has begun with."""
    service = PinService(place.db, FileService(place.db), NoNetwork())
    return await service.add(place.tenant_id, PinRequest(str(cid)))


async def _until_locked(db: Database) -> None:
    async with asyncio.timeout(30):
        while not await db.read(waiting):
            await asyncio.sleep(0.005)


@ON_POSTGRESQL
@pytest.mark.parametrize(
    ("cid", "end"),
    [(FOLDER, PinState.PINNED), (Cid.for_block(DAG_CBOR, b""), PinState.INVALID_OBJECT)],
    ids=["pinned", "failed"],
)
async def test_it_ends_when_the_tenant_is_free(place: House, database: Database, cid: Cid, end: PinState) -> None:
    """And whoever has the tenant finds the pin free: two that wait for each other would be one too many."""
    pin = await _asked_for(place, cid)
    with database.writer.begin() as held:
        tenants.lock_tenant(held, place.tenant_id)
        async with counter(database, place, shelf(**{str(FOLDER): FOLDER_CAR})) as desk:
            await _until_locked(database)
            assert await desk.status(pin) not in END
            assert held.execute(sa.text("SELECT id FROM pins FOR UPDATE NOWAIT")).scalar_one() == pin.id
            held.commit()
            assert await desk.until(pin, *END) is end


@ON_POSTGRESQL
async def test_what_ends_meanwhile_is_not_looked_for_any_more(place: House, database: Database) -> None:
    pin, source = await _asked_for(place, FOLDER), shelf(**{str(FOLDER): FOLDER_CAR})
    with database.writer.begin() as held:
        store.set_status(held, pin.id, PinState.OVER_MAX_SIZE, clock.utc_now())
        async with counter(database, place, source) as desk:
            await _until_locked(database)
            held.commit()
            async with asyncio.timeout(30):
                while not (await database.read(lambda connection: work.get(connection, pin.id))).finished:
                    await asyncio.sleep(0.02)
            assert (await desk.status(pin), source.asked) == (PinState.OVER_MAX_SIZE, [])
