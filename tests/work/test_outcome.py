import asyncio
from datetime import timedelta

import pytest

from roost.core.db import Connection, Database
from roost.core.problem import NotFound, Problem, ServiceUnavailable, TooManyRequests
from roost.work import ClaimedOperation, Operation, OperationState, Settlement, SubjectElsewhere, store, worker
from roost.work.model import CRASH_RETRIES
from tests.work.scenarios import LONG, Add, BlockingHandler, FailingHandler, Start, once_failed, skip, until


class NoSuchThing(NotFound):
    message = "No such thing"


@pytest.mark.parametrize(
    ("error", "recorded"),
    [
        (NoSuchThing(), {"kind": "missing", "message": "No such thing"}),
        (ServiceUnavailable(), {"kind": "unavailable", "message": "Service unavailable"}),
        (RuntimeError("password=hunter2"), {"kind": "failed", "message": "Internal error"}),
        (asyncio.CancelledError(), {"kind": "failed", "message": "Internal error"}),
    ],
    ids=repr,
)
async def test_an_error_is_recorded_without_its_details(
    start: Start, add: Add, error: BaseException, recorded: object
) -> None:
    loop = await start({"k": FailingHandler(error)})
    added = await add()
    end = await loop.wait(added.id, LONG)
    assert (end.state, end.error, end.result, end.failures) == (OperationState.FAILED, recorded, None, 1)


@pytest.mark.parametrize(
    "error", [ServiceUnavailable(), TooManyRequests(), RuntimeError(), asyncio.CancelledError()], ids=repr
)
async def test_a_temporary_error_is_retried(
    start: Start, add: Add, error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "_POLL_SECONDS", 0.05)
    handler = FailingHandler(error)
    loop = await start({"k": handler}, retries=1)
    added = await add()
    waiting = await once_failed(loop, added.id)
    assert waiting.state is OperationState.PENDING
    assert waiting.run_after - added.created_at >= timedelta(seconds=1)
    skip(monkeypatch, timedelta(seconds=2))
    end = await loop.wait(added.id, LONG)
    assert (end.state, end.result, end.error, end.failures, end.attempts) == (OperationState.DONE, "done", None, 1, 2)


async def test_retries_end_in_failure(start: Start, add: Add, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker, "_POLL_SECONDS", 0.05)
    handler = FailingHandler(*[RuntimeError()] * 5)
    loop = await start({"k": handler}, retries=1)
    added = await add()
    await once_failed(loop, added.id)
    skip(monkeypatch, timedelta(seconds=2))
    end = await loop.wait(added.id, LONG)
    assert (end.state, end.failures, handler.calls) == (OperationState.FAILED, 2, 2)


async def test_a_problem_is_not_retried(start: Start, add: Add) -> None:
    handler = FailingHandler(NoSuchThing())
    loop = await start({"k": handler}, retries=5)
    added = await add()
    assert (await loop.wait(added.id, LONG)).state is OperationState.FAILED
    assert handler.calls == 1


async def test_a_retry_waits_as_long_as_the_problem_asks(start: Start, add: Add) -> None:
    loop = await start({"k": FailingHandler(ServiceUnavailable(retry_after=3600))}, retries=1)
    added = await add()
    waiting = await once_failed(loop, added.id)
    assert waiting.state is OperationState.PENDING
    assert waiting.run_after - added.created_at >= timedelta(hours=1)
    assert waiting.error == {"kind": "unavailable", "message": "Service unavailable"}


async def test_a_result_that_is_not_json_is_a_failure(start: Start, add: Add) -> None:
    async def handler(claim: ClaimedOperation) -> object:
        return {1, 2}

    loop = await start({"k": handler})
    added = await add()
    end = await loop.wait(added.id, LONG)
    assert (end.state, end.error["message"]) == (OperationState.FAILED, "Internal error")


async def test_stopping_gives_back_what_did_not_finish(start: Start, add: Add) -> None:
    handler = BlockingHandler()
    loop = await start({"k": handler})
    added = await add()
    await until(lambda: bool(handler.entered))
    await loop.stop(grace=0)
    ended = await loop.wait(added.id, 0)
    assert handler.cancelled == 1
    assert (ended.state, ended.lease_owner, ended.failures, ended.error) == (
        OperationState.PENDING,
        None,
        0,
        None,
    )
    handler.go.set()
    again = await start({"k": handler}, owner="b")
    assert (await again.wait(added.id, LONG)).result == 2


async def test_a_handler_that_fails_while_it_is_cancelled_is_released_too(start: Start, add: Add) -> None:
    entered = asyncio.Event()

    async def handler(claim: ClaimedOperation) -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise Problem("half done") from None

    loop = await start({"k": handler})
    added = await add()
    await asyncio.wait_for(entered.wait(), LONG)
    await loop.stop(grace=0)
    assert (await loop.wait(added.id, 0)).state is OperationState.PENDING


async def test_unexpected_errors_end_sooner_than_temporary_ones(
    start: Start, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.work.model._FIRST_RETRY", timedelta(0))
    for error, calls in ((RuntimeError, CRASH_RETRIES + 1), (ServiceUnavailable, 13)):
        handler = FailingHandler(*[error() for _ in range(20)])
        loop = await start({error.__name__: handler}, retries=12)
        end = await loop.wait((await add(error.__name__)).id, LONG)
        assert (end.state, end.failures, handler.calls) == (OperationState.FAILED, calls, calls)


async def test_an_outcome_that_the_database_refuses_is_a_failure(
    start: Start, add: Add, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("roost.work.model._FIRST_RETRY", timedelta(0))
    attempts: list[int] = []

    def refuse(_connection: Connection) -> None:
        raise ValueError("as an error of the database, whose traceback takes long to log")

    async def handler(claim: ClaimedOperation) -> Settlement:
        attempts.append(claim.attempts)
        return Settlement(refuse)

    loop = await start({"k": handler}, retries=1)
    end = await loop.wait((await add()).id, LONG)
    assert (end.state, end.error["message"], attempts) == (OperationState.FAILED, "Internal error", [1, 2])


@pytest.mark.parametrize("tells", [True, False])
async def test_the_owner_of_a_failed_operation_is_told_in_its_transaction(start: Start, add: Add, tells: bool) -> None:
    told: list[tuple[str, str, OperationState]] = []

    def tell(connection: Connection, operation: Operation, reason: str) -> None:
        told.append((operation.id, reason, store.get_operation(connection, operation.id).state))
        if not tells:
            raise RuntimeError("the owner cannot be told")

    loop = await start({"k": FailingHandler(NoSuchThing())}, on_failure=tell)
    added = await add()
    assert (await loop.wait(added.id, LONG)).state is OperationState.FAILED
    assert told == [(added.id, "No such thing", OperationState.FAILED)]


async def test_retries_of_a_subject_are_brought_forward(start: Start, add: Add, database: Database) -> None:
    loop = await start({"k": FailingHandler(ServiceUnavailable(retry_after=3600))}, retries=1)
    added = await add()
    await once_failed(loop, added.id)
    await database.write(lambda connection: store.hasten_operations(connection, added.subject))
    assert (await loop.wait(added.id, LONG)).state is OperationState.DONE


@pytest.mark.parametrize("host", ["elsewhere", None])
async def test_an_operation_whose_subject_another_server_has_is_passed_on(
    start: Start, add: Add, database: Database, host: str | None
) -> None:
    loop = await start({"k": FailingHandler(SubjectElsewhere("gone", host=host))})
    added = await add()
    if host is None:
        assert (await loop.wait(added.id, LONG)).state is OperationState.FAILED
        return

    async with asyncio.timeout(LONG):
        while await database.read(lambda c: store.list_host_subjects(c, "elsewhere")) != [added.subject]:
            await asyncio.sleep(0.005)
    passed = await loop.wait(added.id, 0)
    assert (passed.state, passed.attempts, passed.failures) == (OperationState.PENDING, 1, 0)
