import asyncio
from datetime import timedelta

import pytest
import sqlalchemy as sa

from roost import work
from roost.core import clock
from roost.core.db import Connection, Database
from roost.core.problem import ServiceUnavailable
from roost.work import (
    ClaimedOperation,
    OperationLimits,
    OperationNotFound,
    OperationState,
    OperationWorker,
    Settlement,
    store,
    worker,
)
from tests.work.scenarios import LONG, Add, BlockingHandler, FailingHandler, Start, echo, until


async def test_an_operation_is_done_and_its_result_kept(start: Start, add: Add) -> None:
    loop = await start({"k": echo})
    added = await add(payload=[1])
    loop.wake()
    done = await loop.wait(added.id, LONG)
    assert (done.state, done.result, done.error, done.attempts) == (OperationState.DONE, {"got": [1]}, None, 1)
    assert done.finished_at
    assert done.lease_owner is None


async def test_what_was_added_before_the_start_or_without_a_wake_is_found(start: Start, add: Add) -> None:
    before = await add()
    loop = await start({"k": echo})
    assert (await loop.wait(before.id, LONG)).state is OperationState.DONE
    silent = await add()
    assert (await loop.wait(silent.id, LONG)).state is OperationState.DONE


async def test_one_subject_runs_in_order_one_at_a_time_and_others_beside_it(start: Start, add: Add) -> None:
    running: set[str] = set()
    order: dict[str, list[int]] = {"x": [], "y": []}
    together: list[int] = []

    async def handler(claim: ClaimedOperation) -> None:
        assert claim.subject not in running
        running.add(claim.subject)
        order[claim.subject].append(claim.payload)
        for _ in range(5):
            together.append(len(running))
            await claim.guard(lambda _connection: None)
        running.remove(claim.subject)

    operations = [await add(subject=subject, payload=number) for number in range(10) for subject in ("x", "y")]
    loop = await start({"k": handler})
    assert {(await loop.wait(operation.id, LONG)).state for operation in operations} == {OperationState.DONE}
    assert order == {"x": list(range(10)), "y": list(range(10))}
    assert max(together) == 2


async def test_no_more_run_at_once_than_the_limit(start: Start, add: Add) -> None:
    held = BlockingHandler()
    for number in range(5):
        await add(subject=str(number))
    loop = await start({"k": held}, limit=3)
    await until(lambda: len(held.entered) == 3)
    last = await add(subject="last")
    loop.wake()
    assert (await loop.wait(last.id, 0.2)).state is OperationState.PENDING
    assert len(held.entered) == 3
    held.go.set()
    assert (await loop.wait(last.id, LONG)).state is OperationState.DONE


async def test_two_loops_share_the_work_and_do_each_operation_once(start: Start, add: Add) -> None:
    done: list[str] = []

    async def handler(claim: ClaimedOperation) -> None:
        done.append(claim.id)

    loops = [await start({"k": handler}, owner=owner) for owner in ("a", "b")]
    operations = await asyncio.gather(*(add(subject=str(number % 10)) for number in range(50)))
    for loop in loops:
        loop.wake()
    ends = await asyncio.gather(*(loops[0].wait(operation.id, LONG) for operation in operations))
    assert {(end.state, end.attempts) for end in ends} == {(OperationState.DONE, 1)}
    assert sorted(done) == sorted(operation.id for operation in operations)


async def test_waiting_ends_with_the_time_and_knows_what_is_missing(start: Start, add: Add) -> None:
    loop = await start({"k": BlockingHandler()})
    added = await add()
    assert not (await loop.wait(added.id, 0.05)).finished
    with pytest.raises(OperationNotFound):
        await loop.wait("nowhere", LONG)


async def test_waiting_for_a_retry_does_not_read_all_the_time(start: Start, add: Add, database: Database) -> None:
    reads: list[object] = []
    sa.event.listen(database._reader, "begin", reads.append)
    loop = await start({"k": FailingHandler(ServiceUnavailable(retry_after=3600))}, retries=1)
    added = await add()
    waiting = asyncio.create_task(loop.wait(added.id, 0.5))
    await until(lambda: bool(reads))
    loop.wake()
    assert (await waiting).failures == 1
    assert len(reads) < 6


async def test_another_loop_sees_the_end(start: Start, add: Add) -> None:
    other = await start({}, owner="other")
    loop = await start({"k": echo})
    added = await add()
    loop.wake()
    assert (await other.wait(added.id, LONG)).state is OperationState.DONE


async def test_stopping_lets_handlers_finish_within_the_grace(start: Start, add: Add) -> None:
    held = BlockingHandler()
    loop = await start({"k": held})
    added = await add()
    loop.wake()
    await until(lambda: bool(held.entered))
    stopping = asyncio.create_task(loop.stop(grace=LONG))
    held.go.set()
    await stopping
    assert (await loop.wait(added.id, 0)).state is OperationState.DONE


async def test_a_stopped_loop_takes_nothing_more_and_stops_twice(start: Start, add: Add) -> None:
    loop = await start({"k": echo})
    await loop.stop()
    added = await add()
    loop.wake()
    await loop.stop()
    assert (await loop.wait(added.id, 0.1)).state is OperationState.PENDING


async def test_a_start_takes_up_what_its_name_left_behind(start: Start, add: Add, database: Database) -> None:
    added = await add()
    end = clock.utc_now() + timedelta(hours=1)
    await database.write(lambda connection: store.claim_operations(connection, ["k"], owner="a", until=end, limit=1))
    loop = await start({"k": echo})
    assert (await loop.wait(added.id, LONG)).attempts == 2


async def test_a_second_handler_of_a_kind_is_refused(database: Database) -> None:
    loop = OperationWorker(database, owner="a")
    loop.handle("k", echo)
    with pytest.raises(ValueError, match="k has a handler"):
        loop.handle("k", echo)


async def test_old_ends_are_swept(start: Start, add: Add, database: Database) -> None:
    await add()
    old = clock.utc_now() - timedelta(days=8)
    values = {"state": OperationState.DONE, "finished_at": old}
    await database.write(lambda connection: connection.execute(store.operations.update().values(**values)))
    await start({})
    async with asyncio.timeout(LONG):
        while await database.read(lambda connection: connection.execute(store.operations.select()).all()):
            await asyncio.sleep(0.01)


async def test_a_tenant_whose_work_hangs_delays_no_other_tenant(start: Start, add: Add) -> None:
    held = BlockingHandler()

    async def handler(claim: ClaimedOperation) -> object:
        return await held(claim) if claim.tenant_id == "slow" else "done"

    for number in range(10):
        await add(subject=f"slow/{number}", tenant_id="slow")
    loop = await start({"k": handler}, limits=OperationLimits(total=8, per_tenant=4, per_subject=2))
    await until(lambda: len(held.entered) == 4)
    others = [await add(subject=f"other/{number}", tenant_id=f"other{number}") for number in range(20)]
    ends = [await loop.wait(other.id, LONG) for other in others]
    assert {end.state for end in ends} == {OperationState.DONE}
    assert len(held.entered) == 4
    held.go.set()
    await until(lambda: len(held.entered) == 10)


async def test_an_added_operation_is_claimed_without_the_poll(
    start: Start, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_POLL", 600.0)
    ordered = await start({"k": echo})
    unordered = await start({"u": echo}, owner="b", limits=OperationLimits(1, 1, 1))
    for _ in range(3):
        first, second = await add("k"), await add("u", tenant_id="x")
        async with asyncio.timeout(LONG):
            assert (await ordered.wait(first.id, LONG)).finished
            assert (await unordered.wait(second.id, LONG)).finished


async def test_a_handler_ends_its_operation_with_rows_of_its_own(start: Start, add: Add) -> None:
    attempts: list[int] = []

    async def handler(claim: ClaimedOperation) -> Settlement:
        def write(connection: Connection) -> None:
            attempts.append(claim.attempts)
            if claim.attempts < 3:
                work.postpone_operation(connection, claim, clock.utc_now())
            else:
                work.finish_operation(connection, claim, "settled")

        return Settlement(write)

    loop = await start({"k": handler}, limits=OperationLimits(1, 1, 1))
    added = await add(tenant_id="x")
    end = await loop.wait(added.id, LONG)
    assert (end.state, end.result, end.attempts, end.failures) == (OperationState.DONE, "settled", 3, 0)
    assert attempts == [1, 2, 3]


async def test_a_settlement_that_lost_its_lease_writes_nothing(start: Start, add: Add, database: Database) -> None:
    async def handler(claim: ClaimedOperation) -> Settlement:
        await database.write(lambda connection: store.give_back(connection, claim))
        return Settlement(lambda connection: work.add_operation(connection, "other", "too late") and None)

    await start({"k": handler}, limits=OperationLimits(1, 1, 1))
    added = await add(tenant_id="x")

    async def attempts() -> int:
        return (await database.read(lambda connection: store.get_operation(connection, added.id))).attempts

    async with asyncio.timeout(LONG):
        while await attempts() < 3:
            await asyncio.sleep(0.01)
    assert not await database.read(lambda connection: work.is_subject_busy(connection, "too late"))
