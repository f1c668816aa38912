"""Counting in memory and in the database: servers add up, failures lose nothing, memory and rows are bounded."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import cast

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError

from roost.core import clock
from roost.core.db import Connection, Database
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.profile import V0, V1
from roost.storage.files.model import FileMetadata
from roost.storage.files.service import FileService, NewFile
from roost.storage.gateways.analytics import model, service
from roost.storage.gateways.analytics.model import OTHER, UNKNOWN
from roost.storage.gateways.analytics.service import GatewayHitCounter
from roost.storage.gateways.analytics.store import hits
from tests.storage.storage_env import StorageEnv

CID = Cid.for_block(0x55, b"content")
HEADERS: Mapping[str, str] = {"user-agent": "curl", "referer": "https://a.example/page?token=secret"}


def count(
    counter: GatewayHitCounter, tenant: str = "t", cid: Cid = CID, name: str = "n", sent: int = 10, agent: str = "curl"
) -> None:
    counter.record_response(tenant, "g", ContentNetwork.PUBLIC, cid, name, 200, {**HEADERS, "user-agent": agent}, sent)


async def rows(database: Database, *columns: str) -> list[tuple[object, ...]]:
    def read(connection: Connection) -> list[tuple[object, ...]]:
        query = sa.select(*(hits.c[name] for name in columns)).order_by(*(hits.c[name] for name in columns))
        return [tuple(row) for row in connection.execute(query)]

    return await database.read(read)


async def test_equal_responses_are_one_row(database: Database) -> None:
    counter = GatewayHitCounter(database, 90)
    for sent in (1, 2, 0):
        count(counter, sent=sent)
    await counter.flush()
    count(counter, sent=100)
    await counter.flush()
    await counter.flush()
    columns = ("tenant_id", "gateway_id", "cid", "file_name", "status", "user_agent", "referer")
    assert await rows(database, *columns, "requests", "bandwidth") == [
        ("t", "g", str(CID), "n", 200, "curl", "https://a.example", 4, 103)
    ]


async def test_servers_of_one_database_add_up(database: Database) -> None:
    servers = [GatewayHitCounter(database, 90) for _ in range(3)]

    async def serve(counter: GatewayHitCounter) -> None:
        for _ in range(10):
            for name in ("a", "b", "c"):
                count(counter, name=name)
            await counter.flush()

    await asyncio.gather(*map(serve, servers))
    assert await rows(database, "file_name", "requests") == [("a", 30), ("b", 30), ("c", 30)]


async def test_a_stop_loses_nothing(database: Database) -> None:
    counter = GatewayHitCounter(database, 90)
    counter.start()
    count(counter)
    await counter.stop()
    assert await rows(database, "requests") == [(1,)]


async def test_counts_survive_a_failed_write(database: Database) -> None:
    counter = GatewayHitCounter(database, 90)
    count(counter)
    await database.write(lambda connection: connection.execute(sa.text(f"ALTER TABLE {hits.name} RENAME TO renamed")))
    with pytest.raises(DBAPIError):
        await counter.flush()
    count(counter)
    await database.write(lambda connection: connection.execute(sa.text(f"ALTER TABLE renamed RENAME TO {hits.name}")))
    await counter.flush()
    assert await rows(database, "requests", "bandwidth") == [(2, 20)]


async def test_memory_is_bounded_for_each_tenant_and_for_all(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_PENDING_OF_TENANT", 3)
    monkeypatch.setattr(service, "MAX_PENDING", 6)
    counter = GatewayHitCounter(database, 90)
    for number in range(20):
        count(counter, "hostile", agent=f"agent {number}")
    for number in range(4):
        count(counter, "t", agent=f"agent {number}")
    for number in range(4):
        count(counter, "late", agent=f"agent {number}")
    await counter.flush()
    kept = {
        (tenant, agent): requests
        for tenant, agent, requests in await rows(database, "tenant_id", "user_agent", "requests")
    }
    assert kept == {
        **{("hostile", f"agent {number}"): 1 for number in range(3)},
        ("hostile", OTHER): 17,
        ("late", OTHER): 4,
        ("t", OTHER): 2,
        **{("t", f"agent {number}"): 1 for number in range(2)},
    }


async def test_rows_of_a_day_are_bounded(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model, "DETAILED_ROWS", 4)
    monkeypatch.setattr(model, "CID_ROWS", 2)
    counter = GatewayHitCounter(database, 90)
    for flush in range(10):
        for number in range(5):
            count(counter, agent=f"{flush} {number}", cid=Cid.for_block(0x55, bytes([flush])))
        count(counter, "other")
        await counter.flush()
    found = await rows(database, "tenant_id", "requests")
    assert sum(cast("int", requests) for tenant, requests in found if tenant == "t") == 50
    assert len([tenant for tenant, _ in found if tenant == "t"]) == 7
    assert ("other", 10) in found


async def test_hostile_texts_are_cleaned(database: Database) -> None:
    counter = GatewayHitCounter(database, 90)
    headers = {"user-agent": "\x00\x1b[2J" + "\xff" * 100_000, "referer": "https://" + "\x00" * 100_000}
    counter.record_response("t", "g", ContentNetwork.PUBLIC, CID, "\x00\ud800" + "n" * 100_000, 200, headers, 1)
    counter.record_response("t", "g", ContentNetwork.PUBLIC, Cid(1, 0x55, 0x13, b"x" * 128), "", 200, {}, 1)
    await counter.flush()
    found = await rows(database, "file_name", "user_agent", "referer")
    assert found == [("n" * 253, "[2J" + "\xff" * 195, UNKNOWN), (UNKNOWN, UNKNOWN, UNKNOWN)]


async def test_a_file_has_the_name_that_its_tenant_gave_it(env: StorageEnv, database: Database) -> None:
    async with env.content.receive(V0) as pack:
        await pack.write(b"named")
        cid = (await pack.end_file()).cid
        new_file = NewFile(env.tenant_id, ContentNetwork.PUBLIC, str(cid), 5, "text/plain", FileMetadata("mine.txt"))
        await pack.commit(lambda connection: FileService(database).add(connection, new_file, pack.pack_id))
    assert cid.version == 0
    counter = GatewayHitCounter(database, 90)
    for tenant, network in (
        (env.tenant_id, ContentNetwork.PUBLIC),
        (env.tenant_id, ContentNetwork.PRIVATE),
        (env.other_id, ContentNetwork.PUBLIC),
    ):
        for spelling in (cid, cid.v1()):
            counter.record_response(tenant, "g", network, spelling, "", 200, {}, 1)
    counter.record_response(env.tenant_id, "g", ContentNetwork.PUBLIC, cid, "asked.txt", 200, {}, 1)
    await counter.flush()
    found = await rows(database, "tenant_id", "file_name", "requests")
    mine = [(name, requests) for tenant, name, requests in found if tenant == env.tenant_id]
    assert mine == [("asked.txt", 1), ("mine.txt", 1), ("mine.txt", 1), (UNKNOWN, 1), (UNKNOWN, 1)]
    assert {name for tenant, name, _ in found if tenant == env.other_id} == {UNKNOWN}


async def test_names_of_many_files_are_found(env: StorageEnv, database: Database) -> None:
    cids: list[Cid] = []
    for number in range(3):
        async with env.content.receive(V1) as pack:
            await pack.write(b"%d" % number)
            cid = (await pack.end_file()).cid
            new_file = NewFile(
                env.tenant_id, ContentNetwork.PUBLIC, str(cid), 1, "text/plain", FileMetadata(f"{number}.txt")
            )
            await pack.commit(
                lambda connection, a=new_file, p=pack.pack_id: FileService(database).add(connection, a, p)
            )
        cids.append(cid)
    counter = GatewayHitCounter(database, 90)
    for cid in (*cids, *(Cid.for_block(0x55, b"not here %d" % number) for number in range(1200))):
        counter.record_response(env.tenant_id, "g", ContentNetwork.PUBLIC, cid, "", 200, {}, 1)
    await counter.flush()
    names = [name for (name,) in await rows(database, "file_name") if name != UNKNOWN]
    assert names == ["0.txt", "1.txt", "2.txt"]


async def test_midnight_begins_another_day(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    counter = GatewayHitCounter(database, 90)
    for moment in (datetime(2026, 1, 1, 23, 59, 59, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)):
        monkeypatch.setattr(clock, "utc_now", lambda moment=moment: moment)
        count(counter)
    await counter.flush()
    assert await rows(database, "day") == [(date(2026, 1, 1).isoformat(),), (date(2026, 1, 2).isoformat(),)]


async def test_nothing_is_counted_without_retention(database: Database) -> None:
    counter = GatewayHitCounter(database, 0)
    count(counter)
    await counter.flush()
    assert await rows(database, "requests") == []
