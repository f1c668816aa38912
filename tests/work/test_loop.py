import asyncio
from collections.abc import Callable
from datetime import timedelta

import pytest
import sqlalchemy as sa

from roost.core import clock
from roost.core.db import Database
from roost.core.problem import Missing, Problem, Unavailable
from roost.work import Claim, LeaseLost, Operation, OperationMissing, State, Work, store
from tests.work.conftest import Add, Start

LONG = 20.0


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LONG):
        while not condition():
            await asyncio.sleep(0.005)


async def once_failed(loop: Work, operation_id: str) -> Operation:
    async with asyncio.timeout(LONG):
        while (operation := await loop.wait(operation_id, 0)).failures == 0:
            await asyncio.sleep(0.005)
    return operation


def skip(monkeypatch: pytest.MonkeyPatch, time: timedelta) -> None:
    now = clock.now
    monkeypatch.setattr(clock, "now", lambda: now() + time)


async def echo(claim: Claim) -> object:
    return {"got": claim.payload}


class Held:
    """A handler that tells that it was entered and goes on when it is let."""

    def __init__(self) -> None:
        self.entered: list[Claim] = []
        self.go = asyncio.Event()
        self.cancelled = 0

    async def __call__(self, claim: Claim) -> object:
        self.entered.append(claim)
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        return claim.attempts


class Failing:
    """A handler that raises each of its errors once, and then succeeds."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.calls = 0

    async def __call__(self, claim: Claim) -> object:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return "done"


async def test_an_operation_is_done_and_its_result_kept(start: Start, add: Add) -> None:
    loop = await start({"k": echo})
    added = await add(payload=[1])
    loop.wake()
    done = await loop.wait(added.id, LONG)
    assert (done.state, done.result, done.error, done.attempts) == (State.DONE, {"got": [1]}, None, 1)
    assert done.finished_at
    assert done.lease_owner is None


async def test_what_was_added_before_the_start_or_without_a_wake_is_found(start: Start, add: Add) -> None:
    before = await add()
    loop = await start({"k": echo})
    assert (await loop.wait(before.id, LONG)).state is State.DONE
    silent = await add()
    assert (await loop.wait(silent.id, LONG)).state is State.DONE


async def test_one_subject_runs_in_order_one_at_a_time_and_others_beside_it(start: Start, add: Add) -> None:
    running: set[str] = set()
    order: dict[str, list[int]] = {"x": [], "y": []}
    together: list[int] = []

    async def handler(claim: Claim) -> None:
        assert claim.subject not in running
        running.add(claim.subject)
        order[claim.subject].append(claim.payload)
        for _ in range(5):
            together.append(len(running))
            await claim.guard(lambda _connection: None)
        running.remove(claim.subject)

    operations = [await add(subject=subject, payload=number) for number in range(10) for subject in ("x", "y")]
    loop = await start({"k": handler})
    assert {(await loop.wait(operation.id, LONG)).state for operation in operations} == {State.DONE}
    assert order == {"x": list(range(10)), "y": list(range(10))}
    assert max(together) == 2


async def test_no_more_run_at_once_than_the_limit(start: Start, add: Add) -> None:
    held = Held()
    for number in range(5):
        await add(subject=str(number))
    loop = await start({"k": held}, limit=3)
    await until(lambda: len(held.entered) == 3)
    last = await add(subject="last")
    loop.wake()
    assert (await loop.wait(last.id, 0.2)).state is State.PENDING
    assert len(held.entered) == 3
    held.go.set()
    assert (await loop.wait(last.id, LONG)).state is State.DONE


async def test_two_loops_share_the_work_and_do_each_operation_once(start: Start, add: Add) -> None:
    done: list[str] = []

    async def handler(claim: Claim) -> None:
        done.append(claim.id)

    loops = [await start({"k": handler}, owner=owner) for owner in ("a", "b")]
    operations = await asyncio.gather(*(add(subject=str(number % 10)) for number in range(50)))
    for loop in loops:
        loop.wake()
    ends = await asyncio.gather(*(loops[0].wait(operation.id, LONG) for operation in operations))
    assert {(end.state, end.attempts) for end in ends} == {(State.DONE, 1)}
    assert sorted(done) == sorted(operation.id for operation in operations)


class NoSuchThing(Missing):
    message = "No such thing"


@pytest.mark.parametrize(
    ("error", "recorded"),
    [
        (NoSuchThing(), {"kind": "missing", "message": "No such thing"}),
        (Unavailable(), {"kind": "unavailable", "message": "Service unavailable"}),
        (RuntimeError("password=hunter2"), {"kind": "failed", "message": "Internal error"}),
        (asyncio.CancelledError(), {"kind": "failed", "message": "Internal error"}),
    ],
    ids=repr,
)
async def test_an_error_is_recorded_without_its_inside(
    start: Start, add: Add, error: BaseException, recorded: object
) -> None:
    loop = await start({"k": Failing(error)})
    added = await add()
    loop.wake()
    end = await loop.wait(added.id, LONG)
    assert (end.state, end.error, end.result, end.failures) == (State.FAILED, recorded, None, 1)


@pytest.mark.parametrize("error", [Unavailable(), RuntimeError(), asyncio.CancelledError()], ids=repr)
async def test_what_may_pass_is_tried_again(
    start: Start, add: Add, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = Failing(error)
    loop = await start({"k": handler}, retries=1)
    added = await add()
    loop.wake()
    waiting = await once_failed(loop, added.id)
    assert waiting.state is State.PENDING
    assert waiting.run_after - added.created_at >= timedelta(seconds=1)
    skip(monkeypatch, timedelta(seconds=2))
    loop.wake()
    end = await loop.wait(added.id, LONG)
    assert (end.state, end.result, end.error, end.failures, end.attempts) == (State.DONE, "done", None, 1, 2)


async def test_retries_end(start: Start, add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = Failing(*[RuntimeError()] * 5)
    loop = await start({"k": handler}, retries=1)
    added = await add()
    loop.wake()
    await once_failed(loop, added.id)
    skip(monkeypatch, timedelta(seconds=2))
    loop.wake()
    end = await loop.wait(added.id, LONG)
    assert (end.state, end.failures, handler.calls) == (State.FAILED, 2, 2)


async def test_a_refusal_is_not_tried_again(start: Start, add: Add) -> None:
    handler = Failing(NoSuchThing())
    loop = await start({"k": handler}, retries=5)
    added = await add()
    loop.wake()
    assert (await loop.wait(added.id, LONG)).state is State.FAILED
    assert handler.calls == 1


async def test_a_retry_waits_as_long_as_the_problem_asks(start: Start, add: Add) -> None:
    loop = await start({"k": Failing(Unavailable(retry_after=3600))}, retries=1)
    added = await add()
    loop.wake()
    waiting = await once_failed(loop, added.id)
    assert waiting.state is State.PENDING
    assert waiting.run_after - added.created_at >= timedelta(hours=1)
    assert waiting.error == {"kind": "unavailable", "message": "Service unavailable"}


async def test_a_result_that_is_not_json_is_a_failure(start: Start, add: Add) -> None:
    async def handler(claim: Claim) -> object:
        return {1, 2}

    loop = await start({"k": handler})
    added = await add()
    loop.wake()
    end = await loop.wait(added.id, LONG)
    assert (end.state, end.error["message"]) == (State.FAILED, "Internal error")


async def test_waiting_ends_with_the_time_and_knows_what_is_missing(start: Start, add: Add) -> None:
    loop = await start({"k": Held()})
    added = await add()
    assert not (await loop.wait(added.id, 0.05)).finished
    with pytest.raises(OperationMissing):
        await loop.wait("nowhere", LONG)


async def test_waiting_for_a_retry_does_not_read_all_the_time(start: Start, add: Add, database: Database) -> None:
    reads: list[object] = []
    sa.event.listen(database._reader, "begin", reads.append)
    loop = await start({"k": Failing(Unavailable(retry_after=3600))}, retries=1)
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
    assert (await other.wait(added.id, LONG)).state is State.DONE


async def test_a_heartbeat_keeps_the_lease_while_the_handler_runs(start: Start, add: Add, database: Database) -> None:
    held = Held()
    loop = await start({"k": held}, lease=3)
    other = await start({"k": held}, owner="b", lease=3)
    added = await add()
    loop.wake()
    await until(lambda: bool(held.entered))
    first_end = held.entered[0].lease_until
    assert first_end
    await until(lambda: clock.now() > first_end)
    other.wake()
    still = await loop.wait(added.id, 0.1)
    assert (still.state, still.attempts) == (State.RUNNING, 1)
    assert still.lease_until
    assert still.lease_until > first_end
    held.go.set()
    assert (await loop.wait(added.id, LONG)).attempts == 1


async def test_a_lost_lease_cancels_the_handler_and_refuses_its_late_write(
    start: Start, add: Add, database: Database
) -> None:
    refused: list[bool] = []

    async def handler(claim: Claim) -> object:
        if claim.attempts > 1:
            return "second"
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            try:
                await claim.guard(lambda connection: store.add(connection, "late", "late"))
            except LeaseLost:
                refused.append(True)
            raise

    entered = asyncio.Event()
    loop = await start({"k": handler}, lease=1.5)
    added = await add()
    loop.wake()
    await asyncio.wait_for(entered.wait(), LONG)
    # As after a pause of this process: somebody else has taken the operation over.
    (taken,) = await database.write(
        lambda connection: _expire_and_claim(connection, added.id),
    )
    await until(lambda: bool(refused))
    await database.write(lambda connection: store.finish(connection, taken, "theirs"))
    end = await loop.wait(added.id, LONG)
    assert (end.state, end.result, end.attempts) == (State.DONE, "theirs", 2)
    count = sa.select(sa.func.count()).select_from(store.operations).where(store.operations.c.kind == "late")
    assert await database.read(lambda connection: connection.execute(count).scalar()) == 0


def _expire_and_claim(connection, operation_id: str):
    past = clock.now() - timedelta(minutes=1)
    connection.execute(store.operations.update().where(store.operations.c.id == operation_id).values(lease_until=past))
    until = clock.now() + timedelta(minutes=1)
    return store.claim(connection, ["k"], owner="elsewhere", until=until, limit=1)


async def test_a_guarded_write_is_one_transaction(start: Start, add: Add, database: Database) -> None:
    async def handler(claim: Claim) -> object:
        def write(connection) -> None:
            store.add(connection, "other", "other")
            raise Problem("no")

        await claim.guard(write)

    loop = await start({"k": handler})
    added = await add()
    loop.wake()
    assert (await loop.wait(added.id, LONG)).error["message"] == "no"
    count = sa.select(sa.func.count()).select_from(store.operations)
    assert await database.read(lambda connection: connection.execute(count).scalar()) == 1


async def test_stopping_lets_handlers_finish_within_the_grace(start: Start, add: Add) -> None:
    held = Held()
    loop = await start({"k": held})
    added = await add()
    loop.wake()
    await until(lambda: bool(held.entered))
    stopping = asyncio.create_task(loop.stop(grace=LONG))
    held.go.set()
    await stopping
    assert (await loop.wait(added.id, 0)).state is State.DONE


async def test_stopping_gives_back_what_did_not_finish(start: Start, add: Add) -> None:
    held = Held()
    loop = await start({"k": held})
    added = await add()
    loop.wake()
    await until(lambda: bool(held.entered))
    await loop.stop(grace=0)
    back = await loop.wait(added.id, 0)
    assert held.cancelled == 1
    assert (back.state, back.lease_owner, back.failures, back.error) == (State.PENDING, None, 0, None)
    held.go.set()
    again = await start({"k": held}, owner="b")
    assert (await again.wait(added.id, LONG)).result == 2


async def test_a_handler_that_breaks_while_it_is_cancelled_is_given_back_too(start: Start, add: Add) -> None:
    entered = asyncio.Event()

    async def handler(claim: Claim) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise Problem("half done") from None

    loop = await start({"k": handler})
    added = await add()
    loop.wake()
    await asyncio.wait_for(entered.wait(), LONG)
    await loop.stop(grace=0)
    assert (await loop.wait(added.id, 0)).state is State.PENDING


async def test_a_stopped_loop_takes_nothing_more_and_stops_twice(start: Start, add: Add) -> None:
    loop = await start({"k": echo})
    await loop.stop()
    added = await add()
    loop.wake()
    await loop.stop()
    assert (await loop.wait(added.id, 0.1)).state is State.PENDING


async def test_a_start_takes_up_what_its_name_left_behind(start: Start, add: Add, database: Database) -> None:
    added = await add()
    end = clock.now() + timedelta(hours=1)
    await database.write(lambda connection: store.claim(connection, ["k"], owner="a", until=end, limit=1))
    loop = await start({"k": echo})
    assert (await loop.wait(added.id, LONG)).attempts == 2


async def test_a_second_handler_of_a_kind_is_refused(database: Database) -> None:
    loop = Work(database, owner="a")
    loop.handle("k", echo)
    with pytest.raises(ValueError, match="k has a handler"):
        loop.handle("k", echo)


async def test_old_ends_are_swept(start: Start, add: Add, database: Database) -> None:
    await add()
    old = clock.now() - timedelta(days=8)
    values = {"state": State.DONE, "finished_at": old}
    await database.write(lambda connection: connection.execute(store.operations.update().values(**values)))
    await start({})
    async with asyncio.timeout(LONG):
        while await database.read(lambda connection: connection.execute(store.operations.select()).all()):
            await asyncio.sleep(0.01)
