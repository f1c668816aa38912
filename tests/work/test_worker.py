import asyncio
from contextlib import closing
from datetime import timedelta
from functools import partial

import pytest
from sqlalchemy import event
from structlog.testing import capture_logs

from roost import work
from roost.core import clock
from roost.core.actor import SERVER, Actor, ActorKind, acting_as, current_actor
from roost.core.db import ChangeListener, Connection, Database
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
    done = await loop.wait(added.id, LONG)
    assert (done.state, done.result, done.error, done.attempts) == (OperationState.DONE, {"got": [1]}, None, 1)
    assert done.finished_at
    assert done.lease_owner is None


async def test_a_handler_acts_for_the_actor_who_added_the_operation(start: Start, add: Add, database: Database) -> None:
    ada = Actor(ActorKind.KEY, "t", "k", "ada")

    async def handler(claim: ClaimedOperation) -> list[str | None]:
        return [current_actor.get().name, await claim.guard(lambda _: current_actor.get().name)]

    loop = await start({"k": handler})
    with acting_as(ada):
        hers = await add(subject="x")
    nobodys = await add(subject="y")
    assert (hers.actor, nobodys.actor) == (ada, SERVER)
    assert (await loop.wait(hers.id, LONG)).result == ["ada", "ada"]
    assert (await loop.wait(nobodys.id, LONG)).result == [None, None]


async def test_operations_added_before_and_after_the_start_are_found(start: Start, add: Add) -> None:
    before = await add()
    loop = await start({"k": echo})
    assert (await loop.wait(before.id, LONG)).state is OperationState.DONE
    after = await add()
    assert (await loop.wait(after.id, LONG)).state is OperationState.DONE


async def test_a_subject_runs_in_order_one_at_a_time_and_subjects_run_in_parallel(start: Start, add: Add) -> None:
    running: set[str] = set()
    order: dict[str, list[int]] = {"x": [], "y": []}
    concurrent: list[int] = []

    async def handler(claim: ClaimedOperation) -> None:
        assert claim.subject not in running
        running.add(claim.subject)
        order[claim.subject].append(claim.payload)
        for _ in range(5):
            concurrent.append(len(running))
            await claim.guard(lambda _connection: None)
        running.remove(claim.subject)

    operations = [await add(subject=subject, payload=number) for number in range(10) for subject in ("x", "y")]
    loop = await start({"k": handler})
    assert {(await loop.wait(operation.id, LONG)).state for operation in operations} == {OperationState.DONE}
    assert order == {"x": list(range(10)), "y": list(range(10))}
    assert max(concurrent) == 2


async def test_concurrent_operations_have_a_limit(start: Start, add: Add) -> None:
    blocking = BlockingHandler()
    for number in range(5):
        await add(subject=str(number))
    loop = await start({"k": blocking}, limit=3)
    await until(lambda: len(blocking.entered) == 3)
    last = await add(subject="last")
    assert (await loop.wait(last.id, 0.2)).state is OperationState.PENDING
    assert len(blocking.entered) == 3
    blocking.go.set()
    assert (await loop.wait(last.id, LONG)).state is OperationState.DONE


async def test_slots_bound_a_kind_and_requests_come_before_the_servers_own(
    start: Start, add: Add, database: Database
) -> None:
    blocking, free = BlockingHandler(), 1
    own = [await add(subject=str(number)) for number in range(3)]
    with acting_as(Actor(ActorKind.KEY, "t", "k", "ada")):
        hers = await add(subject="hers")
    loop = OperationWorker(database, owner="a", limit=3)
    loop.handle("k", blocking, slots=lambda: free)
    loop.handle("other", echo)
    await loop.start()
    try:
        await until(lambda: [claim.id for claim in blocking.entered] == [hers.id])
        other = await add("other", subject="x")
        assert (await loop.wait(other.id, LONG)).state is OperationState.DONE
        assert len(blocking.entered) == 1
        free = 3
        await add("other", subject="y")  # wakes it
        await until(lambda: [claim.id for claim in blocking.entered] == [hers.id, own[0].id, own[1].id])
        blocking.go.set()
        assert (await loop.wait(own[2].id, LONG)).state is OperationState.DONE
    finally:
        await loop.stop(grace=0)


async def test_two_loops_share_the_work_and_do_each_operation_once(start: Start, add: Add) -> None:
    done: list[str] = []

    async def handler(claim: ClaimedOperation) -> None:
        done.append(claim.id)

    loops = [await start({"k": handler}, owner=owner) for owner in ("a", "b")]
    operations = await asyncio.gather(*(add(subject=str(number % 10)) for number in range(50)))
    ends = await asyncio.gather(*(loops[0].wait(operation.id, LONG) for operation in operations))
    assert {(end.state, end.attempts) for end in ends} == {(OperationState.DONE, 1)}
    assert sorted(done) == sorted(operation.id for operation in operations)


async def test_waiting_ends_after_its_timeout_or_for_a_missing_operation(start: Start, add: Add) -> None:
    loop = await start({"k": BlockingHandler()})
    added = await add()
    assert not (await loop.wait(added.id, 0.05)).is_finished
    with pytest.raises(OperationNotFound):
        await loop.wait("nowhere", LONG)


async def test_the_timeout_of_a_wait_begins_with_the_first_attempt(add: Add, database: Database) -> None:
    blocking, free = BlockingHandler(), 0
    added = await add()
    loop = OperationWorker(database, owner="a")
    loop.handle("k", blocking, slots=lambda: free)
    await loop.start()
    try:
        assert not (await loop.wait(added.id, 0.05, queue_timeout=0.05)).attempts
        waiting = asyncio.create_task(loop.wait(added.id, 0.05, queue_timeout=2 * LONG))
        assert not (await loop.wait(added.id, 0.2)).attempts
        assert not waiting.done()
        free = 1
        async with asyncio.timeout(LONG):
            begun = await waiting
        assert (begun.state, begun.attempts) == (OperationState.RUNNING, 1)
    finally:
        await loop.stop(grace=0)


async def test_waiting_for_a_retry_reads_rarely(start: Start, add: Add, database: Database) -> None:
    reads: list[object] = []
    event.listen(database._reader, "begin", reads.append)
    loop = await start({"k": FailingHandler(ServiceUnavailable(retry_after=3600))}, retries=1)
    added = await add()
    waiting = asyncio.create_task(loop.wait(added.id, 0.5))
    await until(lambda: bool(reads))
    assert (await waiting).failures == 1
    assert len(reads) < 6


async def test_another_loop_sees_the_end(start: Start, add: Add) -> None:
    other = await start({}, owner="other")
    await start({"k": echo})
    added = await add()
    assert (await other.wait(added.id, LONG)).state is OperationState.DONE


async def test_stopping_lets_handlers_finish_within_the_grace(start: Start, add: Add) -> None:
    blocking = BlockingHandler()
    loop = await start({"k": blocking})
    added = await add()
    await until(lambda: bool(blocking.entered))
    stopping = asyncio.create_task(loop.stop(grace=LONG))
    blocking.go.set()
    await stopping
    assert (await loop.wait(added.id, 0)).state is OperationState.DONE


async def test_a_stop_is_no_reason_for_a_warning(start: Start, add: Add) -> None:
    blocking = BlockingHandler()
    loop = await start({"k": blocking})
    await add()
    await until(lambda: bool(blocking.entered))
    with capture_logs() as lines:
        await loop.stop(grace=0)
    assert [(line["event"], line["log_level"]) for line in lines] == [("operation.cancelled", "info")]


async def test_a_stopped_loop_claims_nothing_and_stops_twice(start: Start, add: Add) -> None:
    loop = await start({"k": echo})
    await loop.stop()
    added = await add()
    await loop.stop()
    assert (await loop.wait(added.id, 0.1)).state is OperationState.PENDING


async def test_a_start_resumes_the_operations_of_the_same_name(start: Start, add: Add, database: Database) -> None:
    added = await add()
    end = clock.utc_now() + timedelta(hours=1)
    await database.write(lambda connection: store.claim_operations(connection, ["k"], owner="a", until=end, limit=1))
    loop = await start({"k": echo})
    assert (await loop.wait(added.id, LONG)).attempts == 2


async def test_a_second_handler_of_a_kind_is_refused(database: Database) -> None:
    loop = OperationWorker(database, owner="a")
    loop.handle("k", echo)
    with pytest.raises(ValueError, match="k already has a handler"):
        loop.handle("k", echo)


async def test_operations_that_finished_long_ago_are_swept(start: Start, add: Add, database: Database) -> None:
    await add()
    old = clock.utc_now() - timedelta(days=8)
    values = {"state": OperationState.DONE, "finished_at": old}
    await database.write(lambda connection: connection.execute(store.operations.update().values(**values)))
    await start({})
    async with asyncio.timeout(LONG):
        while await database.read(lambda connection: connection.execute(store.operations.select()).all()):
            await asyncio.sleep(0.01)


async def test_a_slow_tenant_delays_no_other_tenant(start: Start, add: Add) -> None:
    blocking = BlockingHandler()

    async def handler(claim: ClaimedOperation) -> object:
        return await blocking(claim) if claim.tenant_id == "slow" else "done"

    for number in range(10):
        await add(subject=f"slow/{number}", tenant_id="slow")
    loop = await start({"k": handler}, limits=OperationLimits(total=8, per_tenant=4, per_subject=2))
    await until(lambda: len(blocking.entered) == 4)
    others = [await add(subject=f"other/{number}", tenant_id=f"other{number}") for number in range(20)]
    ends = [await loop.wait(other.id, LONG) for other in others]
    assert {end.state for end in ends} == {OperationState.DONE}
    assert len(blocking.entered) == 4
    blocking.go.set()
    await until(lambda: len(blocking.entered) == 10)


async def test_an_added_operation_is_claimed_without_the_poll(
    start: Start, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_POLL_SECONDS", 600.0)
    ordered = await start({"k": echo})
    unordered = await start({"u": echo}, owner="b", limits=OperationLimits(1, 1, 1))
    for _ in range(3):
        first, second = await add("k"), await add("u", tenant_id="x")
        async with asyncio.timeout(LONG):
            assert (await ordered.wait(first.id, LONG)).is_finished
            assert (await unordered.wait(second.id, LONG)).is_finished


@pytest.mark.parametrize("dialect", [pytest.param("postgresql", marks=pytest.mark.postgres)])
async def test_an_operation_of_another_server_is_claimed_without_the_poll(
    start: Start, database: Database, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_POLL_SECONDS", 600.0)
    ended, listener = list[str](), ChangeListener(database)

    async def handler(claim: ClaimedOperation) -> None:
        ended.append(claim.subject)

    await start({"k": handler}, owner="b")
    listener.start()
    await until(lambda: listener.is_listening)
    with closing(Database(database_url)) as other:
        for host in ("b", None):
            await other.write(partial(work.add_operation, kind="k", subject=f"of {host}", host=host))
            await until(lambda host=host: f"of {host}" in ended)
    await listener.stop()


async def test_a_settlement_writes_rows_with_the_end_of_the_attempt(start: Start, add: Add) -> None:
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
        await database.write(lambda connection: store.release_operation(connection, claim))
        return Settlement(lambda connection: work.add_operation(connection, "other", "too late") and None)

    await start({"k": handler}, limits=OperationLimits(1, 1, 1))
    added = await add(tenant_id="x")

    async def attempts() -> int:
        return (await database.read(lambda connection: store.get_operation(connection, added.id))).attempts

    async with asyncio.timeout(LONG):
        while await attempts() < 3:
            await asyncio.sleep(0.01)
    assert not await database.read(lambda connection: work.is_subject_busy(connection, "too late"))
