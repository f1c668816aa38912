import asyncio
from datetime import timedelta

import sqlalchemy as sa

from roost.core import clock
from roost.core.db import Database
from roost.core.problem import Problem
from roost.work import ClaimedOperation, LeaseLost, OperationState, store
from tests.work.scenarios import LONG, Add, BlockingHandler, Start, until


async def test_a_heartbeat_keeps_the_lease_while_the_handler_runs(start: Start, add: Add, database: Database) -> None:
    handler = BlockingHandler()
    loop = await start({"k": handler}, lease=3)
    await start({"k": handler}, owner="b", lease=3)
    added = await add()
    await until(lambda: bool(handler.entered))
    first_end = handler.entered[0].lease_until
    assert first_end
    await until(lambda: clock.utc_now() > first_end)
    await add(subject="another")  # wakes both workers
    running = await loop.wait(added.id, 0.1)
    assert (running.state, running.attempts) == (OperationState.RUNNING, 1)
    assert running.lease_until
    assert running.lease_until > first_end
    handler.go.set()
    assert (await loop.wait(added.id, LONG)).attempts == 1


async def test_a_lost_lease_cancels_the_handler_and_refuses_its_late_write(
    start: Start, add: Add, database: Database
) -> None:
    refused: list[bool] = []

    async def handler(claim: ClaimedOperation) -> object:
        if claim.attempts > 1:
            return "second"
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            try:
                await claim.guard(lambda connection: store.add_operation(connection, "late", "late"))
            except LeaseLost:
                refused.append(True)
            raise

    entered = asyncio.Event()
    loop = await start({"k": handler}, lease=1.5)
    added = await add()
    await asyncio.wait_for(entered.wait(), LONG)
    # As after a pause of this process: another one has claimed the operation.
    (taken,) = await database.write(
        lambda connection: _expire_and_claim(connection, added.id),
    )
    await until(lambda: bool(refused))
    await database.write(lambda connection: store.finish_operation(connection, taken, "theirs"))
    end = await loop.wait(added.id, LONG)
    assert (end.state, end.result, end.attempts) == (OperationState.DONE, "theirs", 2)
    count = sa.select(sa.func.count()).select_from(store.operations).where(store.operations.c.kind == "late")
    assert await database.read(lambda connection: connection.execute(count).scalar()) == 0


def _expire_and_claim(connection, operation_id: str):
    past = clock.utc_now() - timedelta(minutes=1)
    connection.execute(store.operations.update().where(store.operations.c.id == operation_id).values(lease_until=past))
    until = clock.utc_now() + timedelta(minutes=1)
    return store.claim_operations(connection, ["k"], owner="elsewhere", until=until, limit=1)


async def test_a_guarded_write_is_one_transaction(start: Start, add: Add, database: Database) -> None:
    async def handler(claim: ClaimedOperation) -> object:
        def write(connection) -> None:
            store.add_operation(connection, "other", "other")
            raise Problem("no")

        await claim.guard(write)

    loop = await start({"k": handler})
    added = await add()
    assert (await loop.wait(added.id, LONG)).error["message"] == "no"
    count = sa.select(sa.func.count()).select_from(store.operations)
    assert await database.read(lambda connection: connection.execute(count).scalar()) == 1
