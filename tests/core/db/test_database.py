import asyncio
import gc
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError

from roost.core import clock
from roost.core.db import Connection, Database, publish_on_commit, read_database_time
from roost.core.db.database import LONG_READS, DatabaseUnavailable, DatabaseWriteFailed

_things = sa.Table(
    "things", sa.MetaData(), sa.Column("id", sa.Integer, primary_key=True), sa.Column("count", sa.Integer)
)
_parts = sa.Table(
    "parts",
    _things.metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("thing", sa.ForeignKey("things.id"), nullable=False),
)


@pytest.fixture
def db(bare_url: str) -> Iterator[Database]:
    database = Database(bare_url)
    database.run(_things.metadata.create_all)
    yield database
    database.close()


def _add(number: int, count: int = 0):
    return lambda connection: connection.execute(_things.insert().values(id=number, count=count))


def _count(connection: Connection) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(_things)).scalar_one()


async def test_a_write_returns_what_its_function_returns_and_can_be_read(db: Database) -> None:
    assert await db.write(lambda connection: (_add(1)(connection), "done")[1]) == "done"
    assert await db.read(_count) == 1


async def test_an_error_rolls_back_the_whole_write(db: Database) -> None:
    def fail(connection: Connection) -> None:
        _add(1)(connection)
        raise LookupError

    with pytest.raises(LookupError):
        await db.write(fail)
    assert await db.read(_count) == 0


async def test_foreign_keys_hold(db: Database) -> None:
    with pytest.raises(IntegrityError):
        await db.write(lambda connection: connection.execute(_parts.insert().values(id=1, thing=9)))


async def test_a_read_cannot_write(db: Database) -> None:
    with pytest.raises(DBAPIError):
        await db.read(_add(1))
    await db.write(_add(1))
    assert await db.read(_count) == 1


def _in_thread(work) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


async def test_a_read_sees_one_snapshot_and_does_not_block_the_writer(db: Database) -> None:
    began, written = threading.Event(), threading.Event()
    seen: list[int] = []

    def slow(connection: Connection) -> None:
        seen.append(_count(connection))
        began.set()
        assert written.wait(20)
        seen.append(_count(connection))

    reader = _in_thread(lambda: asyncio.run(db.read(slow)))
    assert await asyncio.to_thread(began.wait, 20)
    await db.write(_add(1))
    written.set()
    await asyncio.to_thread(reader.join, 20)
    assert seen == [0, 0]
    assert await db.read(_count) == 1


async def test_a_survey_reads_while_all_goes_on(db: Database) -> None:
    began, written = threading.Event(), threading.Event()

    def slow(connection: Connection) -> int:
        began.set()
        assert written.wait(20)
        return _count(connection)

    survey = asyncio.create_task(db.read_long(slow))
    assert await asyncio.to_thread(began.wait, 20)
    await db.write(_add(1))
    assert await db.read(_count) == 1
    written.set()
    assert await survey == 1
    with pytest.raises(DBAPIError):
        await db.read_long(_add(2))


async def test_a_short_read_is_answered_while_tenants_hold_all_turns_of_long_ones(db: Database) -> None:
    running, done = threading.Semaphore(0), threading.Event()

    def scan(connection: Connection) -> int:
        running.release()
        assert done.wait(20)
        return _count(connection)

    owners = [f"tenant {number}" for number in range(2 * LONG_READS)]
    scans = [asyncio.create_task(db.read_long(scan, owner)) for owner in owners for _ in range(2)]
    for _ in range(LONG_READS):
        assert await asyncio.to_thread(running.acquire, timeout=20)
    assert await asyncio.wait_for(db.read(_count), 20) == 0
    assert not running.acquire(blocking=False)  # the others wait for a turn
    done.set()
    assert await asyncio.gather(*scans) == [0] * len(scans)


async def test_increments_of_two_processes_are_not_lost(db: Database, bare_url: str) -> None:
    """Two databases act as two processes; a read before a write must not fail for the other's lock."""
    other = Database(bare_url)
    await db.write(_add(1))

    def increment(connection: Connection) -> None:
        count = connection.execute(sa.select(_things.c.count).with_for_update()).scalar_one()
        connection.execute(_things.update().values(count=count + 1))

    await asyncio.gather(*(database.write(increment) for database in [db, other] * 25))
    other.close()
    assert await db.read(lambda connection: connection.execute(sa.select(_things.c.count)).scalar_one()) == 50


async def test_a_cancelled_caller_does_not_stop_its_write(db: Database) -> None:
    entered, go = threading.Event(), threading.Event()

    def slow(connection: Connection) -> None:
        entered.set()
        assert go.wait(20)
        _add(1)(connection)

    caller = asyncio.create_task(db.write(slow))
    assert await asyncio.to_thread(entered.wait, 20)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    go.set()
    await db.write(_add(2))
    async with asyncio.timeout(20):
        while await db.read(_count) != 2:
            await asyncio.sleep(0.01)


async def test_a_write_that_fails_after_its_caller_was_cancelled_is_reported_to_nobody(db: Database) -> None:
    loop, begun, goes_on = asyncio.get_running_loop(), threading.Event(), threading.Event()
    reported: list[object] = []
    loop.set_exception_handler(lambda _, context: reported.append(context))

    def fail(_: Connection) -> None:
        begun.set()
        goes_on.wait(60)
        raise ValueError

    caller = asyncio.create_task(db.write(fail))
    await asyncio.to_thread(begun.wait, 60)
    caller.cancel()
    await asyncio.wait({caller})
    del caller  # whose traceback has what is reported when it is collected
    goes_on.set()
    await asyncio.to_thread(db.close)  # waits for the write
    await asyncio.sleep(0)
    gc.collect()
    assert reported == []


async def test_run_writes_without_an_event_loop(db: Database) -> None:
    db.run(_add(1))
    await db.ping()
    assert await db.read(_count) == 1


_WRITER = """
import sys
import sqlalchemy as sa
from roost.core.db import Database
db = Database(sys.argv[1])
number = 0
while True:
    number += 1
    db.run(lambda connection: connection.execute(sa.text("INSERT INTO things VALUES (:n, 0)"), {"n": number}))
    print(number, flush=True)
"""


async def test_an_acknowledged_write_survives_kill_9(db: Database, bare_url: str) -> None:
    with subprocess.Popen([sys.executable, "-c", _WRITER, bare_url], stdout=subprocess.PIPE) as writer:
        assert writer.stdout
        lines = [writer.stdout.readline() for _ in range(25)]
        os.kill(writer.pid, signal.SIGKILL)
        lines += writer.stdout.readlines()
    acknowledged = int(lines[-1])
    stored = await db.read(lambda connection: connection.execute(sa.select(_things.c.id)).scalars().all())
    assert set(range(1, acknowledged + 1)) <= set(stored)


async def test_sqlite_writes_reach_the_disk_before_they_return(tmp_path) -> None:
    db = Database(f"sqlite:///{tmp_path / 'x.db'}")
    pragmas = {
        name: await db.write(lambda connection, name=name: connection.exec_driver_sql(f"PRAGMA {name}").scalar())
        for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
    }
    db.close()
    assert pragmas == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 30000}


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:"])
def test_sqlite_needs_a_file(url: str) -> None:
    with pytest.raises(ValueError, match="needs a file"):
        Database(url)


@pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True)
async def test_a_deadlock_is_tried_again(db: Database) -> None:
    await db.write(_add(1))
    await db.write(_add(2))
    both_hold_one = threading.Barrier(2)
    runs: list[int] = []

    def cross(first: int, second: int):
        def work(connection: Connection) -> None:
            runs.append(first)
            update = _things.update().values(count=_things.c.count + 1)
            connection.execute(update.where(_things.c.id == first))
            if runs.count(first) == 1:
                both_hold_one.wait(20)
            connection.execute(update.where(_things.c.id == second))

        return work

    await asyncio.gather(db.write(cross(1, 2)), db.write(cross(2, 1)))
    assert 3 <= len(runs) <= 4  # the retry may conflict with the other again
    counts = await db.read(lambda connection: connection.execute(sa.select(_things.c.count)).scalars().all())
    assert counts == [2, 2]


@pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
async def test_a_full_disk_is_told_and_nothing_is_half_written(db: Database) -> None:
    await db.write(lambda connection: connection.exec_driver_sql("PRAGMA max_page_count=10"))

    def fill(connection: Connection) -> None:
        for number in range(10_000):
            _add(number)(connection)

    with pytest.raises(DatabaseWriteFailed):
        await db.write(fill)
    assert await db.read(_count) == 0
    await db.write(_add(1))
    assert await db.read(_count) == 1


async def test_subscribers_are_told_after_a_commit_and_of_no_rollback(db: Database) -> None:
    told: list[frozenset[str]] = []
    unsubscribe = db.subscribe(told.append)

    def write(connection: Connection) -> None:
        publish_on_commit(connection, "a")
        publish_on_commit(connection, "b")

    def fail(connection: Connection) -> None:
        publish_on_commit(connection, "c")
        raise LookupError

    await db.write(write)
    with pytest.raises(LookupError):
        await db.write(fail)
    await db.write(lambda _: None)
    assert told == [frozenset("ab")]
    unsubscribe()
    await db.write(write)
    assert len(told) == 1


@pytest.mark.postgres
async def test_a_cut_connection_is_a_problem_and_the_next_one_works(postgres_url: str) -> None:
    database = Database(postgres_url)

    def cut(connection: Connection) -> None:
        connection.exec_driver_sql("SELECT pg_terminate_backend(pg_backend_pid())")

    for run in (database.read, database.write):
        with pytest.raises(DatabaseUnavailable) as raised:
            await run(cut)
        assert raised.value.retry_after
        await database.ping()
    database.close()


@pytest.mark.parametrize("address", ["127.0.0.1:1", "/nowhere"])
async def test_a_server_that_is_away_is_a_problem(address: str) -> None:
    host, _, port = address.partition(":")
    database = Database(f"postgresql://postgres@/postgres?host={host}&port={port or 5432}")
    with pytest.raises(DatabaseUnavailable):
        await database.ping()
    database.close()


@pytest.mark.postgres
async def test_an_error_of_a_statement_is_none_of_these(postgres_url: str) -> None:
    database = Database(postgres_url)
    with pytest.raises(DBAPIError):
        await database.read(lambda connection: connection.exec_driver_sql("SELECT 1/0"))
    database.close()


def test_servers_read_the_time_of_the_database(bare_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    database, before = Database(bare_url), clock.utc_now() - timedelta(seconds=1)
    found = database.run(lambda c: (read_database_time(c), read_database_time(c)))
    assert before < found[0] <= found[1] < clock.utc_now() + timedelta(seconds=1)
    assert found[0] < found[1] or database.is_sqlite  # not the time at which the transaction began
    monkeypatch.setattr(clock, "utc_now", lambda: before)
    assert (database.run(read_database_time) == before) == database.is_sqlite
    database.close()


def test_the_files_are_for_their_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "new" / "roost.db"
    before = os.umask(0)
    try:
        for _ in range(2):  # new, and with modes that others may read
            database = Database(f"sqlite:///{path}")
            database.run(_things.metadata.create_all)
            files = list(path.parent.iterdir())
            assert {file.name for file in files} >= {"roost.db", "roost.db-wal"}
            assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
            _things.drop(database.writer)
            for file in files:
                file.chmod(0o644)
            database.close()
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR | (3 << 8)])
async def test_a_full_disk_at_the_begin_is_a_problem(tmp_path: Path, code: int) -> None:
    database = Database(f"sqlite:///{tmp_path / 'roost.db'}")

    def fail(_: Connection) -> None:
        error = sqlite3.OperationalError("disk I/O error")
        error.sqlite_errorcode = code
        raise error

    with pytest.raises(DatabaseWriteFailed):
        await database.write(fail)
    database.close()
