"""A killed process: another one finishes its operation, and late writes of the first are refused."""

import asyncio
import os
import signal
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

import sqlalchemy as sa

from roost.core.db import Database
from roost.work import ClaimedOperation, OperationState
from tests.work.scenarios import Add, Start

_WORKER = """
import asyncio, sys
from roost.core.db import Database
from roost.work import LeaseLost, OperationWorker, add_operation

async def work():
    database = Database(sys.argv[1])
    loop = OperationWorker(database, owner="doomed", lease=1.5)

    async def handler(claim):
        if claim.payload == "quick":
            return "by the doomed"
        await claim.guard(lambda connection: add_operation(connection, "note", claim.subject))
        print("in the middle", flush=True)
        try:
            await asyncio.Event().wait()
        finally:
            try:
                await claim.guard(lambda connection: add_operation(connection, "late", claim.subject))
            except LeaseLost:
                print("refused", flush=True)

    loop.handle("k", handler)
    await loop.start()
    await asyncio.Event().wait()

asyncio.run(work())
"""


@asynccontextmanager
async def start_operation(database_url: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Start a process that has begun the operation; kill it at the end of the test."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", _WORKER, database_url, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout
    try:
        assert await asyncio.wait_for(process.stdout.readline(), 30) == b"in the middle\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.communicate()


def stop_between_writes(process: asyncio.subprocess.Process, database_url: str) -> None:
    """Stop the process, on SQLite at a moment when it has no write lock: stopped with it, it would stop all others."""
    os.kill(process.pid, signal.SIGSTOP)
    url = sa.make_url(database_url)
    if url.get_backend_name() == "sqlite" and (file := url.database):
        while not _lock_for_writing(file, 0):
            os.kill(process.pid, signal.SIGCONT)
            assert _lock_for_writing(file, 30)
            os.kill(process.pid, signal.SIGSTOP)


def _lock_for_writing(file: str, seconds: float) -> bool:
    with closing(sqlite3.connect(file, timeout=seconds, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN IMMEDIATE")
        except sqlite3.OperationalError:
            return False
    return True


async def test_another_process_finishes_the_operation_of_a_killed_one(
    start: Start, add: Add, database: Database, database_url: str
) -> None:
    runs: list[tuple[str, int]] = []

    async def handler(claim: ClaimedOperation) -> str:
        runs.append((claim.id, claim.attempts))
        return "by the survivor"

    quick = await add(subject="s", payload="quick")
    begun = await add(subject="s")
    next_one = await add(subject="s")
    async with start_operation(database_url) as process:
        process.kill()
        await process.wait()
        loop = await start({"k": handler, "note": handler})
        ends = [await loop.wait(operation.id, 30) for operation in (quick, begun, next_one)]
        async with asyncio.timeout(30):
            while len(runs) < 3:
                await asyncio.sleep(0.01)
    assert [end.result for end in ends] == ["by the doomed", "by the survivor", "by the survivor"]
    assert [end.attempts for end in ends] == [1, 2, 1]
    assert {end.state for end in ends} == {OperationState.DONE}
    noted = runs.pop()[0]
    assert runs == [(begun.id, 2), (next_one.id, 1)]
    assert (await loop.wait(noted, 0)).kind == "note", "the write before the kill is stored, once"


async def test_a_process_that_slept_through_its_lease_cannot_write(
    start: Start, add: Add, database: Database, database_url: str
) -> None:
    """Stop the process for longer than its lease and continue it, like a suspended machine."""

    async def handler(claim: ClaimedOperation) -> str:
        return "by the survivor"

    if database.is_sqlite:  # on SQLite a starting server releases all leases, so it starts before the other
        loop = await start({"note": handler})
    added = await add()
    async with start_operation(database_url) as process:
        stop_between_writes(process, database_url)
        if database.is_sqlite:
            loop.handle("k", handler)
        else:
            loop = await start({"k": handler, "note": handler})
        end = await loop.wait(added.id, 30)
        os.kill(process.pid, signal.SIGCONT)
        assert process.stdout
        assert await asyncio.wait_for(process.stdout.readline(), 30) == b"refused\n"
        assert (end.result, end.attempts) == ("by the survivor", 2)
        again = await add(payload="quick")
        assert (await loop.wait(again.id, 30)).state is OperationState.DONE, "both processes go on"
        assert await loop.wait(added.id, 0) == end
