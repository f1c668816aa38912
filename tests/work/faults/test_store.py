from datetime import timedelta

import pytest

from roost.core.db import Database
from roost.core.problem import Problem
from roost.work import OperationLimits
from roost.work.faults import count_faults, find_fault, forget_faults, list_faults, sweep_faults
from tests.work.scenarios import LONG, Add, FailingHandler, Start, skip


async def test_a_fault_lasts_from_the_first_failure_to_a_success(start: Start, add: Add, database: Database) -> None:
    loop = await start({"k": FailingHandler(Problem("first"), Problem("second"))})
    for number, reason in enumerate(("first", "second"), 1):
        ended = await loop.wait((await add(subject="ada")).id, LONG)
        fault = await database.read(lambda c: find_fault(c, "ada", "k"))
        assert fault is not None
        assert (fault.failures, fault.reason) == (number, reason)
        assert ended.finished_at is not None
        assert fault.failed_at - ended.finished_at < timedelta(seconds=LONG)
    assert fault.failing_since < fault.failed_at
    await loop.wait((await add(subject="ada")).id, LONG)
    assert await database.read(lambda c: find_fault(c, "ada", "k")) is None


async def test_faults_of_a_subject_and_those_below_it(start: Start, add: Add, database: Database) -> None:
    loop = await start({kind: FailingHandler(*[Problem("no")] * 9) for kind in ("k", "other")})
    for subject in ("ada", "ada/git", "adam", "a%a", "ada_"):
        await loop.wait((await add(subject=subject)).id, LONG)
    await loop.wait((await add("other", "ada")).id, LONG)
    assert [fault.kind for fault in await database.read(lambda c: list_faults(c, "ada"))] == ["k", "k", "other"]
    assert len(await database.read(lambda c: list_faults(c, "a%a"))) == 1
    await database.write(lambda c: forget_faults(c, "ada"))
    assert await database.read(count_faults) == 3


async def test_an_operation_of_a_tenant_has_no_fault(start: Start, add: Add, database: Database) -> None:
    limits = {"limits": OperationLimits(total=1, per_tenant=1, per_subject=1)}
    loop = await start({"k": FailingHandler(Problem("no"))}, **limits)
    await loop.wait((await add(tenant_id="t")).id, LONG)
    assert await database.read(count_faults) == 0


async def test_a_fault_that_is_not_tried_again_is_swept(
    start: Start, add: Add, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = await start({"k": FailingHandler(*[Problem("no")] * 2)})
    old = await loop.wait((await add(subject="old")).id, LONG)
    skip(monkeypatch, timedelta(days=1))
    await loop.wait((await add(subject="new")).id, LONG)
    assert old.finished_at is not None
    before = old.finished_at + timedelta(seconds=1)
    await database.write(lambda c: sweep_faults(c, before))
    assert [len(await database.read(lambda c, one=one: list_faults(c, one))) for one in ("old", "new")] == [0, 1]
