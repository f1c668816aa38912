"""The contract of tasks, over every engine, each in a container with a gateway that runs."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest

from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.tasks import (
    CronSchedule,
    EngineTaskNotFound,
    EngineTaskRefused,
    IntervalSchedule,
    OneTimeSchedule,
    Task,
    TaskAbility,
    TaskChange,
    TaskPayload,
    TaskRun,
    TaskSpec,
)
from roost.drivers.engine.contract import EngineFailed
from tests.conformance.engines import CASES, TOKEN, Place, place
from tests.conformance.model_server import ANSWER

YEARLY = CronSchedule("30 2 1 1 *", "Europe/Berlin")
T = TypeVar("T")
ASK = TaskPayload("agentTurn", "ping")


@pytest.fixture(scope="module", params=CASES)
async def at(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    """One gateway for all: a start takes seconds."""
    async with place(request.param, tmp_path_factory.mktemp("box")) as made:
        await made.start()
        yield made


class TaskEnv:
    """The ability with its way inside."""

    def __init__(self, where: Place) -> None:
        assert where.engine.tasks is not None
        self.tasks: TaskAbility = where.engine.tasks
        self.inside = AgentContext(where.warden, TOKEN, where.engine.default_version)

    async def make(self, name: str = "one", **fields: Any) -> Task:
        asked: dict[str, Any] = {"schedule": YEARLY, "payload": ASK, **fields}
        return await self.tasks.create(self.inside, TaskSpec(name, **asked))

    async def get(self, task: Task) -> Task:
        return await self.tasks.get(self.inside, task.id)

    async def change(self, task: Task, **fields: Any) -> Task:
        return await self.tasks.update(self.inside, task.id, TaskChange(**fields))

    async def runs(self, task: Task, limit: int = 20) -> list[TaskRun]:
        return list(await self.tasks.runs(self.inside, task.id, limit))

    async def ended(self, task: Task, count: int = 1) -> list[TaskRun]:
        """The runs when so many are over and none is under way."""

        async def over() -> list[TaskRun]:
            found = await self.runs(task)
            return found if len(found) >= count and all(run.status != "running" for run in found) else []

        return await until(over)


@pytest.fixture
async def tasks_env(at: Place) -> AsyncIterator[TaskEnv]:
    tasks_env = TaskEnv(at)
    yield tasks_env
    for task in await tasks_env.tasks.list(tasks_env.inside):
        await tasks_env.tasks.delete(tasks_env.inside, task.id)


async def until(condition: Callable[[], Awaitable[T]], seconds: float = 60) -> T:
    end = time.monotonic() + seconds
    while not (value := await condition()):
        assert time.monotonic() < end, "it did not come true"
        await asyncio.sleep(0.1)
    return value


def soon(seconds: float) -> OneTimeSchedule:
    return OneTimeSchedule(datetime.now(UTC) + timedelta(seconds=seconds))


async def test_a_new_engine_has_no_tasks_of_its_own_to_show(tasks_env: TaskEnv) -> None:
    assert await tasks_env.tasks.list(tasks_env.inside) == []


@pytest.mark.parametrize(
    "schedule",
    [YEARLY, IntervalSchedule(90_000), CronSchedule("*/5 9-17 * * MON-FRI", "America/New_York"), soon(86_400)],
    ids=["yearly", "every", "weekdays", "at"],
)
async def test_what_is_asked_for_is_kept(tasks_env: TaskEnv, schedule: Any) -> None:
    made = await tasks_env.make("Report: Größe", schedule=schedule, description="twice")
    assert (made.name, made.description, made.enabled) == ("Report: Größe", "twice", True)
    assert made.payload == ASK
    assert made.delivery.mode == "none"
    if isinstance(schedule, OneTimeSchedule):
        assert isinstance(made.schedule, OneTimeSchedule)
        assert abs(made.schedule.at - schedule.at) < timedelta(seconds=1)
    else:
        assert made.schedule == schedule
    assert made.created_at is not None
    assert (made.last_run_at, made.last_status, made.running) == (None, None, False)
    (listed,) = await tasks_env.tasks.list(tasks_env.inside)
    assert listed.id == made.id
    assert (await tasks_env.get(made)).schedule == made.schedule


async def test_the_next_time_is_by_the_zones_clock(tasks_env: TaskEnv) -> None:
    made = await tasks_env.make(schedule=YEARLY)

    async def told() -> datetime | None:
        planned = (await tasks_env.get(made)).next_run_at
        return planned if planned and planned.hour == 1 else None

    planned = await until(told, 10)
    assert planned is not None
    assert (planned.month, planned.day, planned.hour, planned.minute) == (1, 1, 1, 30)


async def test_a_change_leaves_the_rest(tasks_env: TaskEnv) -> None:
    made = await tasks_env.make(description="kept")
    changed = await tasks_env.change(made, name="two", payload=TaskPayload("agentTurn", "pong?"))
    assert (changed.name, changed.description, changed.schedule) == ("two", "kept", YEARLY)
    assert changed.payload == TaskPayload("agentTurn", "pong?")
    assert (await tasks_env.change(made, schedule=IntervalSchedule(120_000))).schedule == IntervalSchedule(120_000)


async def test_off_and_on(tasks_env: TaskEnv) -> None:
    made = await tasks_env.make()
    off = await tasks_env.change(made, enabled=False)
    assert (off.enabled, off.next_run_at) == (False, None)
    assert [task.enabled for task in await tasks_env.tasks.list(tasks_env.inside)] == [False]
    on = await tasks_env.change(made, enabled=True)
    assert on.enabled
    assert on.next_run_at is not None
    made_off = await tasks_env.make("off", enabled=False)
    assert (made_off.enabled, made_off.next_run_at) == (False, None)


async def test_a_task_that_is_due_runs_once_and_its_outcome_stays(tasks_env: TaskEnv) -> None:
    schedule = soon(3)
    made = await tasks_env.make(schedule=schedule)
    (run,) = await tasks_env.ended(made)
    assert (run.status, run.error) == ("ok", None)
    assert run.started_at is not None
    assert timedelta(0) <= run.started_at - schedule.at < timedelta(seconds=5)
    assert run.summary is not None
    assert ANSWER in run.summary
    assert run.duration_ms is not None

    async def settled() -> Task | None:
        found = await tasks_env.get(made)
        return found if found.last_status else None

    after = await until(settled, 10)
    assert after is not None
    assert (after.last_status, after.enabled, after.next_run_at, after.running) == ("ok", False, None, False)
    assert len(await tasks_env.runs(made)) == 1
    with pytest.raises(EngineTaskRefused):
        await tasks_env.change(made, enabled=True)


async def test_run_now_stands_beside_the_schedule(tasks_env: TaskEnv) -> None:
    planned = await tasks_env.make(schedule=soon(86_400))
    off = await tasks_env.make("off", enabled=False)
    for task in (planned, off):
        await tasks_env.tasks.run(tasks_env.inside, task.id)
    assert [run.status for run in await tasks_env.ended(planned)] == ["ok"]
    assert [run.status for run in await tasks_env.ended(off)] == ["ok"]

    async def settled() -> bool:
        kept, still_off = await tasks_env.get(planned), await tasks_env.get(off)
        return kept.enabled and kept.next_run_at is not None and not still_off.enabled

    assert await until(settled, 10)


async def test_a_task_runs_again_and_the_newest_is_first(tasks_env: TaskEnv) -> None:
    made = await tasks_env.make()
    for count in (1, 2):
        await tasks_env.tasks.run(tasks_env.inside, made.id)
        await tasks_env.ended(made, count)
    newest, oldest = await tasks_env.runs(made)
    assert newest.started_at is not None
    assert oldest.started_at is not None
    assert newest.started_at > oldest.started_at
    assert await tasks_env.runs(made, 1) == [newest]


async def test_what_is_not_there_is_said_so(tasks_env: TaskEnv) -> None:
    made = await tasks_env.make()
    await tasks_env.tasks.delete(tasks_env.inside, made.id)
    for task_id in (made.id, "0" * 12, "nothing"):
        with pytest.raises(EngineTaskNotFound):
            await tasks_env.tasks.get(tasks_env.inside, task_id)
        with pytest.raises(EngineTaskNotFound):
            await tasks_env.tasks.update(tasks_env.inside, task_id, TaskChange(name="x"))
        with pytest.raises(EngineTaskNotFound):
            await tasks_env.tasks.run(tasks_env.inside, task_id)
        with pytest.raises(EngineTaskNotFound):
            await tasks_env.tasks.runs(tasks_env.inside, task_id, 10)
        with pytest.raises(EngineTaskNotFound):
            await tasks_env.tasks.delete(tasks_env.inside, task_id)


async def test_a_time_that_is_over_is_refused_or_known_to_be(tasks_env: TaskEnv) -> None:
    made = await tasks_env.make(schedule=soon(86_400), enabled=False)
    with pytest.raises((EngineTaskRefused, EngineFailed)):
        await tasks_env.change(made, schedule=soon(-86_400), enabled=True)
