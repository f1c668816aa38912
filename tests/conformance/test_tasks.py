"""The contract of tasks, over every engine, each in a container with a running gateway."""

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
from tests.conformance.engines import CASES, TOKEN, EngineEnv, open_engine_env
from tests.conformance.model_server import ANSWER

YEARLY = CronSchedule("30 2 1 1 *", "Europe/Berlin")
T = TypeVar("T")
ASK = TaskPayload("agentTurn", "ping")


@pytest.fixture(scope="module", params=CASES)
async def engine_env(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[EngineEnv]:
    """One gateway for all tests, because a start takes seconds."""
    async with open_engine_env(request.param, tmp_path_factory.mktemp("data")) as env:
        await env.start()
        yield env


class TaskEnv:
    """The ability with a running agent."""

    def __init__(self, env: EngineEnv) -> None:
        assert env.engine.tasks is not None
        self.tasks: TaskAbility = env.engine.tasks
        self.agent = AgentContext(env.warden, TOKEN, env.engine.default_version)

    async def make(self, name: str = "one", **fields: Any) -> Task:
        options: dict[str, Any] = {"schedule": YEARLY, "payload": ASK, **fields}
        return await self.tasks.create(self.agent, TaskSpec(name, **options))

    async def get(self, task: Task) -> Task:
        return await self.tasks.get(self.agent, task.id)

    async def change(self, task: Task, **fields: Any) -> Task:
        return await self.tasks.update(self.agent, task.id, TaskChange(**fields))

    async def runs(self, task: Task, limit: int = 20) -> list[TaskRun]:
        return list(await self.tasks.runs(self.agent, task.id, limit))

    async def ended(self, task: Task, count: int = 1) -> list[TaskRun]:
        """Wait until at least `count` runs have ended and none is running, and return them."""

        async def find_ended() -> list[TaskRun]:
            found = await self.runs(task)
            return found if len(found) >= count and all(run.status != "running" for run in found) else []

        return await until(find_ended)


@pytest.fixture
async def tasks_env(engine_env: EngineEnv) -> AsyncIterator[TaskEnv]:
    tasks_env = TaskEnv(engine_env)
    yield tasks_env
    for task in await tasks_env.tasks.list(tasks_env.agent):
        await tasks_env.tasks.delete(tasks_env.agent, task.id)


async def until(condition: Callable[[], Awaitable[T]], seconds: float = 60) -> T:
    end = time.monotonic() + seconds
    while not (value := await condition()):
        assert time.monotonic() < end, "the condition did not become true in time"
        await asyncio.sleep(0.1)
    return value


def soon(seconds: float) -> OneTimeSchedule:
    return OneTimeSchedule(datetime.now(UTC) + timedelta(seconds=seconds))


async def test_a_new_engine_lists_no_tasks(tasks_env: TaskEnv) -> None:
    assert await tasks_env.tasks.list(tasks_env.agent) == []


@pytest.mark.parametrize(
    "schedule",
    [YEARLY, IntervalSchedule(90_000), CronSchedule("*/5 9-17 * * MON-FRI", "America/New_York"), soon(86_400)],
    ids=["yearly", "every", "weekdays", "at"],
)
async def test_the_fields_of_a_task_are_kept(tasks_env: TaskEnv, schedule: Any) -> None:
    task = await tasks_env.make("Report: Größe", schedule=schedule, description="twice")
    assert (task.name, task.description, task.enabled) == ("Report: Größe", "twice", True)
    assert task.payload == ASK
    assert task.delivery.mode == "none"
    if isinstance(schedule, OneTimeSchedule):
        assert isinstance(task.schedule, OneTimeSchedule)
        assert abs(task.schedule.at - schedule.at) < timedelta(seconds=1)
    else:
        assert task.schedule == schedule
    assert task.created_at is not None
    assert (task.last_run_at, task.last_status, task.running) == (None, None, False)
    (listed,) = await tasks_env.tasks.list(tasks_env.agent)
    assert listed.id == task.id
    assert (await tasks_env.get(task)).schedule == task.schedule


async def test_the_longest_text_of_a_task(engine_env: EngineEnv, tasks_env: TaskEnv) -> None:
    """The guide of tasks names the limit of each engine."""
    longest = 5_000 if engine_env.engine.id == "hermes" else 16_000
    task = await tasks_env.make(payload=TaskPayload("agentTurn", "x" * longest))
    assert (await tasks_env.get(task)).payload == TaskPayload("agentTurn", "x" * longest)
    if longest < 16_000:  # the limit of the API
        with pytest.raises(EngineTaskRefused):
            await tasks_env.make(payload=TaskPayload("agentTurn", "x" * (longest + 1)))


async def test_the_next_time_is_in_the_zone(tasks_env: TaskEnv) -> None:
    task = await tasks_env.make(schedule=YEARLY)

    async def next_run() -> datetime | None:
        planned = (await tasks_env.get(task)).next_run_at
        return planned if planned and planned.hour == 1 else None

    planned = await until(next_run, 10)
    assert planned is not None
    assert (planned.month, planned.day, planned.hour, planned.minute) == (1, 1, 1, 30)


async def test_a_change_preserves_other_fields(tasks_env: TaskEnv) -> None:
    task = await tasks_env.make(description="kept")
    changed = await tasks_env.change(task, name="two", payload=TaskPayload("agentTurn", "pong?"))
    assert (changed.name, changed.description, changed.schedule) == ("two", "kept", YEARLY)
    assert changed.payload == TaskPayload("agentTurn", "pong?")
    assert (await tasks_env.change(task, schedule=IntervalSchedule(120_000))).schedule == IntervalSchedule(120_000)


async def test_disabling_and_enabling(tasks_env: TaskEnv) -> None:
    task = await tasks_env.make()
    off = await tasks_env.change(task, enabled=False)
    assert (off.enabled, off.next_run_at) == (False, None)
    assert [task.enabled for task in await tasks_env.tasks.list(tasks_env.agent)] == [False]
    on = await tasks_env.change(task, enabled=True)
    assert on.enabled
    assert on.next_run_at is not None
    made_off = await tasks_env.make("off", enabled=False)
    assert (made_off.enabled, made_off.next_run_at) == (False, None)


async def test_a_due_task_runs_once_and_its_outcome_is_kept(tasks_env: TaskEnv) -> None:
    schedule = soon(3)
    task = await tasks_env.make(schedule=schedule)
    (run,) = await tasks_env.ended(task)
    assert (run.status, run.error) == ("ok", None)
    assert run.started_at is not None
    assert timedelta(milliseconds=-1) < run.started_at - schedule.at < timedelta(seconds=5)  # in whole milliseconds
    assert run.summary is not None
    assert ANSWER in run.summary
    assert run.duration_ms is not None

    async def settled() -> Task | None:
        found = await tasks_env.get(task)
        return found if found.last_status else None

    after = await until(settled, 10)
    assert after is not None
    assert (after.last_status, after.enabled, after.next_run_at, after.running) == ("ok", False, None, False)
    assert len(await tasks_env.runs(task)) == 1
    with pytest.raises(EngineTaskRefused):
        await tasks_env.change(task, enabled=True)


async def test_a_manual_run_does_not_change_the_schedule(tasks_env: TaskEnv) -> None:
    planned = await tasks_env.make(schedule=soon(86_400))
    off = await tasks_env.make("off", enabled=False)
    for task in (planned, off):
        await tasks_env.tasks.run(tasks_env.agent, task.id)
    assert [run.status for run in await tasks_env.ended(planned)] == ["ok"]
    assert [run.status for run in await tasks_env.ended(off)] == ["ok"]

    async def settled() -> bool:
        kept, still_off = await tasks_env.get(planned), await tasks_env.get(off)
        return kept.enabled and kept.next_run_at is not None and not still_off.enabled

    assert await until(settled, 10)


async def test_runs_are_listed_newest_first(tasks_env: TaskEnv) -> None:
    task = await tasks_env.make()
    for count in (1, 2):
        await tasks_env.tasks.run(tasks_env.agent, task.id)
        await tasks_env.ended(task, count)
    newest, oldest = await tasks_env.runs(task)
    assert newest.started_at is not None
    assert oldest.started_at is not None
    assert newest.started_at > oldest.started_at
    assert await tasks_env.runs(task, 1) == [newest]


async def test_a_missing_task_is_not_found(tasks_env: TaskEnv) -> None:
    task = await tasks_env.make()
    await tasks_env.tasks.delete(tasks_env.agent, task.id)
    for task_id in (task.id, "0" * 12, "nothing"):
        with pytest.raises(EngineTaskNotFound):
            await tasks_env.tasks.get(tasks_env.agent, task_id)
        with pytest.raises(EngineTaskNotFound):
            await tasks_env.tasks.update(tasks_env.agent, task_id, TaskChange(name="x"))
        with pytest.raises(EngineTaskNotFound):
            await tasks_env.tasks.run(tasks_env.agent, task_id)
        with pytest.raises(EngineTaskNotFound):
            await tasks_env.tasks.runs(tasks_env.agent, task_id, 10)
        with pytest.raises(EngineTaskNotFound):
            await tasks_env.tasks.delete(tasks_env.agent, task_id)


async def test_a_time_in_the_past_is_refused(tasks_env: TaskEnv) -> None:
    task = await tasks_env.make(schedule=soon(86_400), enabled=False)
    with pytest.raises((EngineTaskRefused, EngineFailed)):
        await tasks_env.change(task, schedule=soon(-86_400), enabled=True)
