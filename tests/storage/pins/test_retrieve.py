"""Content by CID becomes a file when it is whole and what was asked for, and not otherwise."""

import asyncio
from collections.abc import Mapping
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
from roost.storage.content.unixfs.cid import DAG_CBOR, Cid
from roost.storage.content.unixfs.profile import V0, V1
from roost.storage.files.service import FileService
from roost.storage.pins import retrieve, store
from roost.storage.pins.model import FAILED, Pin, PinNotFound, PinRequest, PinState
from roost.storage.pins.service import PinService
from roost.work import OperationLimits
from tests.storage.cars import blocks_of, encode_car, folder_of_files
from tests.storage.meanwhile import ON_POSTGRESQL, waiting
from tests.storage.pins.pin_env import LIMIT, CarSource, PinEnv, open_pin_env
from tests.storage.storage_env import CONTENT, StorageEnv

FOLDER, BLOCKS = folder_of_files(V1)
FOLDER_CAR = encode_car([FOLDER], BLOCKS)
SMALL, SMALL_BLOCKS = blocks_of(V0, b"small")
SMALL_CAR = encode_car([SMALL.cid], SMALL_BLOCKS)
END = (PinState.PINNED, *FAILED)


def car_source(cars: Mapping[str, bytes] | None = None, *, is_open: bool = True) -> CarSource:
    return CarSource("/dns4/a.example", cars or {}, is_open=is_open)


async def test_a_folder_is_retrieved(env: StorageEnv, database: Database) -> None:
    async with open_pin_env(database, env, car_source({str(FOLDER): FOLDER_CAR})) as pin_env:
        pin = await pin_env.pin(FOLDER, "mine")
        assert await pin_env.until(pin, *END) is PinState.PINNED
        (file,) = await pin_env.all_files()
        assert (file.cid, file.metadata.name, file.mime_type, file.number_of_files) == (
            str(FOLDER),
            "mine",
            "directory",
            3,
        )
        assert (await pin_env.pins.get(pin.tenant_id, pin.id)).file_id == file.id
        assert await pin_env.read(file.cid, "in", "big") == CONTENT


async def test_a_cid_stays_as_it_was_written(env: StorageEnv, database: Database) -> None:
    async with open_pin_env(database, env, car_source({str(SMALL.cid): SMALL_CAR})) as pin_env:
        await pin_env.until(await pin_env.pin(SMALL.cid), PinState.PINNED)
        assert [(file.cid, file.size, file.metadata.name) for file in await pin_env.all_files()] == [
            (str(SMALL.cid), 5, None)
        ]


def _lies() -> dict[str, bytes]:
    middle = len(FOLDER_CAR) // 2
    return {
        "cut": FOLDER_CAR[:middle],
        "flipped": FOLDER_CAR[:middle] + bytes((FOLDER_CAR[middle] ^ 1,)) + FOLDER_CAR[middle + 1 :],
        "lacks a block": encode_car([FOLDER], BLOCKS[1:]),
        "another root": SMALL_CAR,
        "nothing": b"",
        "no CAR": b"<html>" * 1000,
    }


@pytest.mark.parametrize("lie", _lies().values(), ids=_lies())
async def test_a_source_that_lies_is_left_for_the_next(env: StorageEnv, database: Database, lie: bytes) -> None:
    liar, honest = car_source({str(FOLDER): lie}), car_source({str(FOLDER): FOLDER_CAR})
    async with open_pin_env(database, env, liar, honest) as pin_env:
        await pin_env.until(await pin_env.pin(FOLDER), PinState.PINNED)
        assert (liar.requested, honest.requested) == ([str(FOLDER)], [str(FOLDER)])
        assert await pin_env.read(str(FOLDER), "in", "big") == CONTENT


async def test_lies_alone_leave_nothing(env: StorageEnv, database: Database) -> None:
    liars = [car_source({str(FOLDER): lie}) for lie in _lies().values()]
    async with open_pin_env(database, env, *liars) as pin_env:
        pin = await pin_env.pin(FOLDER)
        await _until_requested(liars[-1])
        assert await pin_env.until(pin, PinState.SEARCHING) is PinState.SEARCHING
        assert await pin_env.all_files() == []
    assert [path for path in (env.folder / "blobs").rglob("*") if path.is_file()] == []


async def _until_requested(last: CarSource, times: int = 1) -> None:
    async with asyncio.timeout(30):
        while len(last.requested) < times:
            await asyncio.sleep(0.02)


async def test_content_without_a_source_is_looked_for_again(env: StorageEnv, database: Database) -> None:
    empty = car_source()
    async with open_pin_env(database, env, empty) as pin_env:
        pin = await pin_env.pin(FOLDER)
        await _until_requested(empty)
        empty.cars[str(FOLDER)] = FOLDER_CAR
        assert await pin_env.until(pin, *END) is PinState.PINNED


async def test_it_expires_after_a_day(env: StorageEnv, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    empty, now = car_source(), clock.utc_now
    async with open_pin_env(database, env, empty) as pin_env:
        pin = await pin_env.pin(FOLDER)
        await _until_requested(empty)
        monkeypatch.setattr(clock, "utc_now", lambda: now() + timedelta(days=1))
        assert await pin_env.until(pin, *END) is PinState.EXPIRED


@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (PinRequest(str(Cid.for_block(DAG_CBOR, b"x"))), PinState.INVALID_OBJECT),
        (PinRequest(str(Cid(1, 0x55, 0, b"inline"))), PinState.INVALID_OBJECT),
        (PinRequest(str(FOLDER), hosts=("peer.example",)), PinState.BAD_HOST_NODE),
    ],
)
async def test_unusable_pins_end_without_a_request(
    env: StorageEnv, database: Database, ask: PinRequest, expected: PinState
) -> None:
    last = car_source({ask.cid: FOLDER_CAR})
    async with open_pin_env(database, env, last) as pin_env:
        pin = await pin_env.pins.add(env.tenant_id, ask)
        assert await pin_env.until(pin, *END) is expected
        assert last.requested == []


async def test_content_over_the_size_limit_is_not_kept(env: StorageEnv, database: Database) -> None:
    tree, blocks = blocks_of(V1, CONTENT * 2)
    async with open_pin_env(database, env, car_source({str(tree.cid): encode_car([tree.cid], blocks)})) as pin_env:
        assert tree.size > LIMIT
        assert await pin_env.until(await pin_env.pin(tree.cid), *END) is PinState.OVER_MAX_SIZE
        assert await pin_env.all_files() == []


async def test_content_over_the_free_limit_is_not_kept(env: StorageEnv, database: Database) -> None:
    tree, blocks = blocks_of(V1, CONTENT * 2)
    source = car_source({str(tree.cid): encode_car([tree.cid], blocks)})
    async with open_pin_env(database, env, source, most=LIMIT + 1) as pin_env:
        assert await pin_env.until(await pin_env.pin(tree.cid), *END) is PinState.OVER_FREE_LIMIT


async def test_when_the_storage_of_the_plan_is_full(env: StorageEnv, database: Database) -> None:
    async with open_pin_env(
        database, env, car_source({str(FOLDER): FOLDER_CAR}), capacity=len(FOLDER_CAR) - 1
    ) as pin_env:
        assert await pin_env.until(await pin_env.pin(FOLDER), *END) is PinState.OVER_FREE_LIMIT
        assert await pin_env.all_files() == []
        assert [blob async for blob in FolderStore(env.folder / "blobs").list()] == []


async def test_public_content_on_this_server_needs_no_network(env: StorageEnv, database: Database) -> None:
    _, (theirs,) = await env.keep(CONTENT, network=ContentNetwork.PUBLIC)
    async with open_pin_env(database, env) as pin_env:
        pin = await pin_env.pins.add(env.other_id, PinRequest(str(theirs.cid)))
        assert await pin_env.until(pin, *END) is PinState.PINNED
        assert [file.cid for file in await pin_env.all_files(env.other_id)] == [str(theirs.cid)]
        assert await pin_env.all_files() == []


async def test_private_content_on_this_server_is_not_found(env: StorageEnv, database: Database) -> None:
    _, (theirs,) = await env.keep(CONTENT)
    last = car_source()
    async with open_pin_env(database, env, last) as pin_env:
        pin = await pin_env.pins.add(env.other_id, PinRequest(str(theirs.cid)))
        await _until_requested(last, 2)
        assert await pin_env.status(pin) is PinState.SEARCHING


async def test_pin_of_own_content_is_that_file(env: StorageEnv, database: Database) -> None:
    first = car_source({str(SMALL.cid): SMALL_CAR})
    async with open_pin_env(database, env, first) as pin_env:
        pins = [await pin_env.pin(SMALL.cid, "one")]
        await pin_env.until(pins[0], PinState.PINNED)
        pins.append(await pin_env.pin(SMALL.cid, "two"))
        await pin_env.until(pins[1], PinState.PINNED)
        assert [file.metadata.name for file in await pin_env.all_files()] == ["one"]
        assert len(first.requested) == 1


async def test_taken_back_while_it_comes(env: StorageEnv, database: Database) -> None:
    half = car_source({str(FOLDER): FOLDER_CAR}, is_open=False)
    async with open_pin_env(database, env, half) as pin_env:
        pin = await pin_env.pin(FOLDER)
        await pin_env.until(pin, PinState.RETRIEVING)
        await pin_env.pins.delete(pin.tenant_id, pin.id)
        half.open.set()
        await _idle(pin_env, database, pin.id)
        assert await pin_env.all_files() == []
    with pytest.raises(ContentNotFound):
        await env.reader.stat(env.scope, FOLDER)


async def _idle(pin_env: PinEnv, database: Database, pin_id: str) -> None:
    async with asyncio.timeout(30):
        while not (await database.read(lambda connection: work.get_operation(connection, pin_id))).is_finished:
            await asyncio.sleep(0.02)
    with pytest.raises(PinNotFound):
        await pin_env.pins.get(pin_env.env.tenant_id, pin_id)


async def test_a_restart_repeats_the_retrieval(env: StorageEnv, database: Database) -> None:
    half = car_source({str(FOLDER): FOLDER_CAR}, is_open=False)
    async with open_pin_env(database, env, half) as pin_env:
        pin = await pin_env.pin(FOLDER)
        await pin_env.until(pin, PinState.RETRIEVING)
    async with open_pin_env(database, env, car_source({str(FOLDER): FOLDER_CAR})) as pin_env:
        assert await pin_env.until(pin, *END) is PinState.PINNED
        assert await pin_env.read(str(FOLDER), "in", "big") == CONTENT


async def test_many_at_once_all_come(env: StorageEnv, database: Database) -> None:
    trees = [blocks_of(V1, f"file {number}".encode()) for number in range(5)]
    cars = {str(tree.cid): encode_car([tree.cid], blocks) for tree, blocks in trees}
    async with open_pin_env(database, env, car_source(cars)) as pin_env:
        pins = [await pin_env.pin(tree.cid) for tree, _ in trees]
        for pin in pins:
            await pin_env.until(pin, PinState.PINNED)
        assert len(await pin_env.all_files()) == len(trees)


async def test_a_slow_source_of_one_tenant_delays_no_other(
    env: StorageEnv, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrieve, "LIMITS", OperationLimits(total=4, per_tenant=1, per_subject=1))
    source = car_source({str(FOLDER): FOLDER_CAR, str(SMALL.cid): SMALL_CAR}, is_open=False)
    async with open_pin_env(database, env, source) as pin_env:
        first = await pin_env.pin(FOLDER)
        await pin_env.until(first, PinState.RETRIEVING)
        second = await pin_env.pin(SMALL.cid)
        theirs = await pin_env.pins.add(env.other_id, PinRequest(str(SMALL.cid)))
        await pin_env.until(theirs, PinState.RETRIEVING)
        assert await pin_env.status(second) is PinState.PRECHECKING
        assert source.requested == [str(FOLDER), str(SMALL.cid)]
        source.open.set()
        for pin in (first, second, theirs):
            assert await pin_env.until(pin, *END) is PinState.PINNED


async def _add_pin(env: StorageEnv, cid: Cid) -> Pin:
    """A pin that nobody has begun with."""
    service = PinService(env.db, FileService(env.db), NoNetwork())
    return await service.add(env.tenant_id, PinRequest(str(cid)))


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
async def test_it_ends_when_the_tenant_is_free(env: StorageEnv, database: Database, cid: Cid, end: PinState) -> None:
    """The holder of the tenant's lock finds the pin unlocked, so the two cannot deadlock."""
    pin = await _add_pin(env, cid)
    with database.writer.begin() as held:
        tenants.lock_tenant(held, env.tenant_id)
        async with open_pin_env(database, env, car_source({str(FOLDER): FOLDER_CAR})) as pin_env:
            await _until_locked(database)
            assert await pin_env.status(pin) not in END
            assert held.execute(sa.text("SELECT id FROM pins FOR UPDATE NOWAIT")).scalar_one() == pin.id
            held.commit()
            assert await pin_env.until(pin, *END) is end


@ON_POSTGRESQL
async def test_pin_that_ends_meanwhile_is_not_looked_for(env: StorageEnv, database: Database) -> None:
    pin, source = await _add_pin(env, FOLDER), car_source({str(FOLDER): FOLDER_CAR})
    with database.writer.begin() as held:
        store.set_status(held, pin.id, PinState.OVER_MAX_SIZE, clock.utc_now())
        async with open_pin_env(database, env, source) as pin_env:
            await _until_locked(database)
            held.commit()
            async with asyncio.timeout(30):
                while not (await database.read(lambda connection: work.get_operation(connection, pin.id))).is_finished:
                    await asyncio.sleep(0.02)
            assert (await pin_env.status(pin), source.requested) == (PinState.OVER_MAX_SIZE, [])
