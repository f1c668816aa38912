import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta

import pytest
import sqlalchemy as sa

from roost.core import clock
from roost.core.db import Connection, Database
from roost.work import LeaseLost, Operation, OperationLimits, OperationNotFound, OperationState, store
from roost.work.model import FreeSlots
from tests.work.scenarios import Add

MINUTE = timedelta(minutes=1)


async def claim(
    database: Database, owner: str = "a", *, limit: int = 10, until: datetime | None = None, **more
) -> Sequence[Operation]:
    end = until or clock.utc_now() + MINUTE
    return await database.write(
        lambda connection: store.claim_operations(connection, ["k"], owner=owner, until=end, limit=limit, **more)
    )


async def get(database: Database, operation: Operation) -> Operation:
    return await database.read(lambda connection: store.get_operation(connection, operation.id))


async def test_an_added_operation_can_be_read(database: Database, add: Add) -> None:
    before = clock.utc_now()
    added = await add("k", "agent/1", {"a": [1]})
    assert added == await get(database, added)
    assert (added.kind, added.subject, added.payload) == ("k", "agent/1", {"a": [1]})
    assert (added.state, added.attempts, added.failures, added.is_finished) == (OperationState.PENDING, 0, 0, False)
    assert before <= added.created_at == added.run_after <= clock.utc_now()


async def test_an_operation_is_added_in_the_callers_transaction(database: Database) -> None:
    added: list[Operation] = []

    def write(connection: Connection) -> None:
        added.append(store.add_operation(connection, "k", "s"))
        raise LookupError

    with pytest.raises(LookupError):
        await database.write(write)
    with pytest.raises(OperationNotFound):
        await get(database, added[0])


async def test_a_claim_takes_the_lease_and_counts_the_attempt(database: Database, add: Add) -> None:
    added, end = await add(), clock.utc_now() + MINUTE
    (taken,) = await claim(database, until=end)
    assert taken == await get(database, added)
    assert (taken.state, taken.attempts, taken.lease_owner, taken.lease_until) == (OperationState.RUNNING, 1, "a", end)
    assert await claim(database, "b") == []


async def test_a_claim_takes_the_oldest_of_each_subject_up_to_the_limit(database: Database, add: Add) -> None:
    first = [await add(subject=subject) for subject in ("x", "y", "z")]
    for subject in ("x", "y", "z"):
        await add(subject=subject)
    taken = [*await claim(database, limit=2), *await claim(database, "b")]
    assert [operation.id for operation in taken] == [operation.id for operation in first]


async def test_a_kind_without_a_handler_is_not_claimed_and_blocks_its_subject(database: Database, add: Add) -> None:
    await add(kind="other", subject="s")
    await add(kind="k", subject="s")
    assert await claim(database) == []


async def test_an_operation_that_is_not_due_blocks_its_subject(database: Database, add: Add) -> None:
    await add(subject="s", run_after=clock.utc_now() + MINUTE)
    await add(subject="s")
    due = await add(subject="t", run_after=clock.utc_now() - MINUTE)
    assert [operation.id for operation in await claim(database)] == [due.id]


async def test_the_end_of_an_operation_unblocks_its_subject(database: Database, add: Add) -> None:
    await add()
    second = await add()
    (taken,) = await claim(database)
    await database.write(lambda connection: store.fail_operation(connection, taken, {"message": "no"}))
    assert [operation.id for operation in await claim(database)] == [second.id]


async def test_an_expired_lease_is_claimed_but_not_by_its_own_worker(database: Database, add: Add) -> None:
    added = await add()
    await claim(database, until=clock.utc_now() - MINUTE)
    assert await claim(database, exclude=[added.id]) == []
    (taken,) = await claim(database, "b")
    assert (taken.attempts, taken.lease_owner) == (2, "b")


ENDS = {
    "finish": lambda connection, operation: store.finish_operation(connection, operation, None),
    "fail": lambda connection, operation: store.fail_operation(connection, operation, {}),
    "retry": lambda connection, operation: store.retry_operation(connection, operation, {}, clock.utc_now()),
    "release": store.release_operation,
    "lock": store.lock_attempt,
}


@pytest.mark.parametrize("end", ENDS)
async def test_an_earlier_attempt_writes_nothing(database: Database, add: Add, end: str) -> None:
    await add()
    (stale,) = await claim(database, until=clock.utc_now() - MINUTE)
    (current,) = await claim(database, "b")
    with pytest.raises(LeaseLost):
        await database.write(lambda connection: ENDS[end](connection, stale))
    assert await get(database, current) == current


@pytest.mark.parametrize("end", ENDS)
async def test_a_finished_attempt_writes_nothing(database: Database, add: Add, end: str) -> None:
    await add()
    (taken,) = await claim(database)
    await database.write(lambda connection: store.finish_operation(connection, taken, 1))
    ended = await get(database, taken)
    with pytest.raises(LeaseLost):
        await database.write(lambda connection: ENDS[end](connection, taken))
    assert await get(database, taken) == ended


async def test_each_outcome_is_recorded(database: Database, add: Add) -> None:
    for subject in ("done", "failed", "retried", "released"):
        await add(subject=subject)
    done, failed, retried, released = await claim(database)
    later = clock.utc_now() + MINUTE

    def write(connection: Connection) -> None:
        store.finish_operation(connection, done, {"ok": True})
        store.fail_operation(connection, failed, {"message": "no"})
        store.retry_operation(connection, retried, {"message": "not yet"}, later)
        store.release_operation(connection, released)

    await database.write(write)
    ended = [await get(database, operation) for operation in (done, failed, retried, released)]
    assert [operation.state for operation in ended] == [
        OperationState.DONE,
        OperationState.FAILED,
        OperationState.PENDING,
        OperationState.PENDING,
    ]
    assert [operation.failures for operation in ended] == [0, 1, 1, 0]
    assert [operation.is_finished for operation in ended] == [True, True, False, False]
    assert [operation.finished_at is not None for operation in ended] == [True, True, False, False]
    assert {(operation.lease_owner, operation.lease_until) for operation in ended} == {(None, None)}
    assert (ended[0].result, ended[1].error, ended[2].error) == (
        {"ok": True},
        {"message": "no"},
        {"message": "not yet"},
    )
    assert ended[2].run_after == later


async def test_extending_returns_the_current_leases(database: Database, add: Add) -> None:
    await add(subject="x")
    await add(subject="y")
    claims = await claim(database)
    await database.write(lambda connection: store.release_operation(connection, claims[0]))
    end = clock.utc_now() + 2 * MINUTE
    assert await database.write(lambda connection: store.extend_leases(connection, claims, end)) == {claims[1].id}
    assert (await get(database, claims[1])).lease_until == end


async def test_releasing_the_operations_of_an_owner(database: Database, add: Add) -> None:
    for subject in ("x", "y", "z"):
        await add(subject=subject)
    (own,) = await claim(database, "a", limit=1)
    others = await claim(database, "b")
    assert await database.write(lambda connection: store.release_operations(connection, "a")) == 1
    assert [(await get(database, own)).state, (await get(database, others[0])).state] == ["pending", "running"]
    assert await database.write(store.release_operations) == 2
    assert len(await claim(database)) == 3


async def test_sweeping_deletes_only_old_finished_operations(database: Database, add: Add) -> None:
    for subject in ("x", "y", "z"):
        await add(subject=subject)
    old, running = await claim(database, limit=2)
    await database.write(lambda connection: store.finish_operation(connection, old, None))
    assert (
        await database.write(lambda connection: store.sweep_operations(connection, clock.utc_now() - MINUTE, 10)) == 0
    )
    assert await database.write(lambda connection: store.sweep_operations(connection, clock.utc_now() + MINUTE, 0)) == 0
    assert (
        await database.write(lambda connection: store.sweep_operations(connection, clock.utc_now() + MINUTE, 10)) == 1
    )
    with pytest.raises(OperationNotFound):
        await get(database, old)
    assert await get(database, running) == running


@pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)], indirect=True)
async def test_a_later_operation_does_not_overtake_a_late_commit(database: Database, add: Add) -> None:
    waiting = sa.text("SELECT count(*) FROM pg_locks WHERE NOT granted")
    with database.writer.begin() as connection:
        first = store.add_operation(connection, "k", "s")
        later = asyncio.create_task(add())
        async with asyncio.timeout(20):
            while not (later.done() or await database.read(lambda c: c.execute(waiting).scalar())):
                await asyncio.sleep(0.01)
        assert await claim(database) == []
    second = await later
    (taken,) = await claim(database)
    assert taken.id == first.id
    await database.write(lambda connection: store.finish_operation(connection, taken, None))
    assert [operation.id for operation in await claim(database)] == [second.id]


async def test_parallel_adders_and_claimers_never_run_two_of_a_subject(database: Database, database_url: str) -> None:
    """Two databases act as two processes. Each claimed operation is finished once, by the one that claimed it."""
    other = Database(database_url)
    subjects, total = ["x", "y", "z"], 50
    added: dict[str, list[str]] = {subject: [] for subject in subjects}
    begun: dict[str, list[str]] = {subject: [] for subject in subjects}
    running: set[str] = set()

    async def add_one(number: int, db: Database) -> None:
        subject = subjects[number % 3]
        await db.write(lambda connection: store.add_operation(connection, "k", subject, number))

    async def drain(name: str, db: Database) -> None:
        while sum(map(len, begun.values())) < total:
            for operation in await claim(db, name, limit=2):
                assert operation.subject not in running
                assert operation.attempts == 1
                running.add(operation.subject)
                begun[operation.subject].append(operation.id)
                await db.write(lambda connection, operation=operation: store.lock_attempt(connection, operation))
                running.remove(operation.subject)
                await db.write(
                    lambda connection, operation=operation: store.finish_operation(connection, operation, None)
                )

    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        for number in range(total):
            group.create_task(add_one(number, [database, other][number % 2]))
        for number in range(8):
            group.create_task(drain(f"worker{number}", [database, other][number % 2]))
    other.close()
    query = store.operations.select().order_by(store.operations.c.number)
    for row in await database.read(lambda connection: connection.execute(query).all()):
        assert row.state == "done"
        added[row.subject].append(row.id)
    assert begun == added


async def test_waiting_operations_never_began(database: Database, add: Add) -> None:
    first, second = await add("k", "x"), await add("k", "x")
    await add("k", "y")
    await add("other", "x")

    async def waiting() -> list[str]:
        found = await database.write(lambda connection: store.list_waiting_operations(connection, "k", "x"))
        return [operation.id for operation in found]

    assert await waiting() == [first.id, second.id]
    (taken, _) = await claim(database)
    assert taken.id == first.id
    assert await waiting() == [second.id]
    await database.write(lambda connection: store.retry_operation(connection, taken, {}, clock.utc_now()))
    assert await waiting() == [second.id]  # once begun, it may be half done


LIMITS = OperationLimits(total=6, per_tenant=4, per_subject=3)


async def claim_unordered(
    database: Database, running: Sequence[Operation] = (), *, until: datetime | None = None
) -> Sequence[Operation]:
    end = until or clock.utc_now() + MINUTE
    return await database.write(
        lambda connection: store.claim_unordered(connection, "k", FreeSlots(LIMITS, running), owner="a", until=end)
    )


async def test_unordered_operations_run_within_the_limits_of_each_tenant(database: Database, add: Add) -> None:
    for number in range(20):
        await add(subject=f"x{number % 2}", tenant_id="x")
    await add(subject="y", tenant_id="y")
    taken = await claim_unordered(database)
    counts = Counter(operation.subject for operation in taken)
    assert counts["x0"] + counts["x1"] == 4
    assert max(counts.values()) <= 3
    assert counts["y"] == 1
    assert await claim_unordered(database, taken) == []


async def test_operations_of_full_tenants_are_skipped(database: Database, add: Add) -> None:
    for number in range(20):
        await add(subject=f"x{number}", tenant_id="x")
    taken = await claim_unordered(database)
    assert len(taken) == 4
    await add(subject="y", tenant_id="y")
    assert [operation.subject for operation in await claim_unordered(database, taken)] == ["y"]


async def test_unordered_operations_of_a_subject_begin_with_the_most_overdue(database: Database, add: Add) -> None:
    now = clock.utc_now()
    for number in (-1, 1, -2, -4, -3):
        await add(tenant_id="x", run_after=now + number * MINUTE, operation_id=f"o{number}")
    assert {operation.id for operation in await claim_unordered(database)} == {"o-4", "o-3", "o-2"}
    assert await claim(database) == []  # ordered operations have another query


async def test_an_expired_unordered_lease_is_claimed_but_not_by_its_own_worker(database: Database, add: Add) -> None:
    added = await add(tenant_id="x")
    (stale,) = await claim_unordered(database, until=clock.utc_now() - MINUTE)
    await database.write(lambda connection: store.release_expired(connection, ["k"], [added.id]))
    assert await claim_unordered(database) == []
    await database.write(lambda connection: store.release_expired(connection, ["k"]))
    (taken,) = await claim_unordered(database)
    assert taken.attempts == 2
    with pytest.raises(LeaseLost):
        await database.write(lambda connection: store.lock_attempt(connection, stale))


async def test_paused_operations_wait_until_they_are_resumed(database: Database, add: Add) -> None:
    for _ in range(2):
        await add(tenant_id="x")
    other = await add(subject="t", tenant_id="x")
    await database.write(lambda connection: store.pause_operations(connection, "k", "s"))
    assert [operation.id for operation in await claim_unordered(database)] == [other.id]
    count = await database.read(lambda connection: store.count_operations(connection, "k", "s", OperationState.PAUSED))
    assert count == 2
    counts = await database.read(store.count_unfinished)
    assert counts == {OperationState.PENDING: 0, OperationState.PAUSED: 2, OperationState.RUNNING: 1}
    await database.write(lambda connection: store.resume_operations(connection, "k", "s"))
    assert len(await claim_unordered(database)) == 2


async def test_a_postponed_operation_has_not_failed(database: Database, add: Add) -> None:
    added = await add(tenant_id="x")
    (taken,) = await claim_unordered(database)
    later = clock.utc_now() + MINUTE
    await database.write(lambda connection: store.postpone_operation(connection, taken, later))
    ended = await get(database, added)
    assert (ended.state, ended.failures, ended.run_after, ended.lease_owner) == (OperationState.PENDING, 0, later, None)
    assert await claim_unordered(database) == []


async def test_only_unordered_operations_that_do_not_run_are_discarded(database: Database, add: Add) -> None:
    ordered, running = await add(subject="o"), await add(tenant_id="x")
    await claim_unordered(database)
    waiting, paused = await add(tenant_id="x"), await add(subject="p", tenant_id="x")
    await database.write(lambda connection: store.pause_operations(connection, "k", "p"))
    for operation, done in ((running, False), (waiting, True)):
        assert await database.write(lambda c, id_=operation.id: store.discard_operation(c, id_)) is done
    await database.write(lambda connection: store.discard_operation(connection, ordered.id))
    await add(tenant_id="x")
    for subject in ("s", "p", "o"):
        await database.write(lambda connection, subject=subject: store.discard_waiting(connection, subject))
    rows = await database.read(lambda connection: connection.execute(store.operations.select()).all())
    assert {row.id for row in rows} == {ordered.id, running.id}
    with pytest.raises(OperationNotFound):
        await get(database, paused)


async def test_parallel_claims_are_disjoint(database: Database, add: Add) -> None:
    for number in range(20):
        await add(subject=f"s{number % 4}", tenant_id=f"t{number % 3}")
    taken = await asyncio.gather(*(claim_unordered(database) for _ in range(6)))
    ids = [operation.id for claimed in taken for operation in claimed]
    assert ids
    assert len(ids) == len(set(ids))


async def test_waiting_operations_follow_their_subject(database: Database) -> None:
    subjects = ("agent", "agent", "agent/git", "agents", "agent%")
    added = await database.write(lambda c: [store.add_operation(c, "k", one, host="a") for one in subjects])
    (running,) = await claim(database, limit=1)
    await database.write(lambda connection: store.transfer_operations(connection, "agent", "b"))
    await database.write(lambda connection: store.postpone_operation(connection, running, clock.utc_now(), "b"))
    assert [taken.id for taken in await claim(database, "b")] == [added[0].id, added[2].id]
    assert [taken.id for taken in await claim(database, "a")] == [added[3].id, added[4].id]
