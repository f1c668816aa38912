"""Periodic work runs on one server at a time, and one that lost its lease writes nothing more."""

import asyncio
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

import pytest
import sqlalchemy as sa
from sqlalchemy import Connection
from structlog.testing import capture_logs

from roost.core import clock
from roost.core.db import Database, LeasedTask

ON_POSTGRESQL = pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])
LONG = 3600.0


class Job:
    """Work of one server: it writes its name when it begins and when it may go on."""

    def __init__(self, db: Database, name: str, lease: float = LONG) -> None:
        self.db, self.name = db, name
        self.goes_on, self.writes, self.outcome = asyncio.Event(), 0, ""
        self.task = LeasedTask(db, "job", self.work, LONG, lease)

    async def work(self) -> None:
        try:
            await self.write()
            await self.goes_on.wait()
            await self.write()
            self.outcome = "done"
        except BaseException as error:
            self.outcome = type(error).__name__
            raise

    async def write(self) -> None:
        insert = sa.text("INSERT INTO job_rows VALUES (:name)").bindparams(name=self.name)
        await self.db.write(lambda connection: connection.execute(insert))
        self.writes += 1


@pytest.fixture
async def jobs(database: Database, database_url: str) -> AsyncIterator[list[Job]]:
    """Return the job of three servers, or of one on SQLite."""
    await database.write(lambda connection: connection.execute(sa.text("CREATE TABLE job_rows (name TEXT)")))
    databases = [database] if database.is_sqlite else [database, Database(database_url), Database(database_url)]
    made = [Job(db, f"{number}") for number, db in enumerate(databases)]
    yield made
    for job in made:
        await job.task.stop()
    for db in databases[1:]:
        db.close()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not condition():
            await asyncio.sleep(0.01)


async def rows(job: Job) -> list[str]:
    query = sa.text("SELECT name FROM job_rows")
    return await job.db.read(lambda connection: list(connection.execute(query).scalars()))


async def change_lease(job: Job, change: str) -> None:
    def run(connection: Connection) -> None:
        connection.execute(sa.text(f"UPDATE leases SET {change}"))

    await job.db.write(run)


@ON_POSTGRESQL
async def test_one_server_runs_it_and_the_others_not_even_after_it(jobs: list[Job]) -> None:
    runs = [asyncio.create_task(job.task.run_once()) for job in jobs]
    await until(lambda: sum(run.done() for run in runs) == 2)
    (holder,) = [job for job in jobs if job.writes]
    holder.goes_on.set()
    await asyncio.gather(*runs)
    for job in jobs:
        await job.task.run_once()
    assert await rows(holder) == [holder.name] * 2
    await change_lease(holder, "expires_at = 0")  # the interval is over
    jobs[2].goes_on.set()
    await jobs[2].task.run_once()
    assert len(await rows(holder)) == 4


@ON_POSTGRESQL
async def test_a_server_that_was_replaced_writes_nothing_more(jobs: list[Job]) -> None:
    old, new, _ = jobs
    run = asyncio.create_task(old.task.run_once())
    await until(lambda: old.writes == 1)
    await change_lease(new, "expires_at = 0")  # the old server hung for longer than its lease
    new.goes_on.set()
    await new.task.run_once()
    old.goes_on.set()
    with capture_logs() as logs:
        await run
    assert (old.outcome, new.outcome) == ("TaskLeaseLost", "done")
    assert await rows(old) == [old.name, new.name, new.name]
    assert [one["event"] for one in logs] == ["lease.lost"]
    await old.write()  # what is no part of the run
    await old.task.run_once()  # the new server's pause was not taken away
    assert old.writes == 2


@ON_POSTGRESQL
async def test_a_run_ends_when_its_lease_is_lost_or_cannot_be_extended(database: Database) -> None:
    await database.write(lambda connection: connection.execute(sa.text("CREATE TABLE job_rows (name TEXT)")))
    job = Job(database, "a", lease=3.0)
    run = asyncio.create_task(job.task.run_once())
    await until(lambda: job.writes == 1)
    await change_lease(job, "token = token + 1")
    await asyncio.wait_for(run, 60)
    assert job.outcome == "CancelledError"


@ON_POSTGRESQL
async def test_a_lease_is_extended_while_the_run_lasts(database: Database) -> None:
    await database.write(lambda connection: connection.execute(sa.text("CREATE TABLE job_rows (name TEXT)")))
    job, other = Job(database, "a", lease=6.0), Job(database, "b")
    run = asyncio.create_task(job.task.run_once())
    await until(lambda: job.writes == 1)
    query = sa.text("SELECT expires_at FROM leases")
    ends = [await database.read(lambda connection: connection.execute(query).scalar_one())]
    async with asyncio.timeout(60):
        while len({*ends}) < 4:  # longer than the lease was at first
            await asyncio.sleep(0.05)
            ends.append(await database.read(lambda connection: connection.execute(query).scalar_one()))
    await other.task.run_once()
    job.goes_on.set()
    await run
    assert (job.outcome, other.writes) == ("done", 0)


@ON_POSTGRESQL
async def test_a_run_that_fails_or_is_stopped_leaves_the_work_to_any_server(jobs: list[Job]) -> None:
    first, second, third = jobs
    await first.db.write(lambda connection: connection.execute(sa.text("ALTER TABLE job_rows RENAME TO hidden")))
    await first.task.run_once()
    assert first.outcome == "ProgrammingError"
    await first.db.write(lambda connection: connection.execute(sa.text("ALTER TABLE hidden RENAME TO job_rows")))
    second.task.start()
    await until(lambda: second.writes == 1)
    await second.task.stop()
    third.goes_on.set()
    await third.task.run_once()
    assert (second.outcome, third.outcome) == ("CancelledError", "done")


@ON_POSTGRESQL
async def test_the_clock_of_a_server_makes_no_difference(jobs: list[Job], monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, _ = jobs
    first.goes_on.set()
    second.goes_on.set()
    await first.task.run_once()
    for hours in (100, -100):
        there = clock.utc_now() + timedelta(hours=hours)
        monkeypatch.setattr(clock, "utc_now", lambda there=there: there)
        await second.task.run_once()
        assert second.writes == 0
        await change_lease(first, "expires_at = 0")
        await first.task.run_once()
        monkeypatch.undo()
    assert first.writes == 6
    await second.task.run_once()
    assert second.writes == 0


@ON_POSTGRESQL
async def test_an_extension_that_arrives_after_the_run_leaves_the_pause_as_it_is(jobs: list[Job]) -> None:
    first, second, _ = jobs
    first.goes_on.set()
    second.goes_on.set()
    await first.task.run_once()
    await first.db.write(lambda connection: first.task._extend(connection, 1, 0.0))
    await second.task.run_once()
    assert (first.writes, second.writes) == (2, 0)


@pytest.mark.parametrize("dialect", ["sqlite"])
async def test_the_one_server_of_sqlite_runs_it_without_a_lease(jobs: list[Job]) -> None:
    jobs[0].goes_on.set()
    await jobs[0].task.run_once()
    await jobs[0].task.run_once()
    assert jobs[0].writes == 4
    count = sa.text("SELECT count(*) FROM leases")
    assert await jobs[0].db.read(lambda connection: connection.execute(count).scalar_one()) == 0
