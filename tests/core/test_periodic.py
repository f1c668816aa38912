import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from structlog.testing import capture_logs

from roost.core.periodic import Backoff, PeriodicTask

OFTEN, NEVER = 0.002, 1000.0


class CountingJob:
    """Job that counts its runs; raises while `failing`, waits while `open` is not set."""

    def __init__(self) -> None:
        self.begun = self.ended = 0
        self.failing = False
        self.open = asyncio.Event()
        self.open.set()

    async def __call__(self) -> None:
        self.begun += 1
        if self.failing:
            raise OSError("no space")
        await self.open.wait()
        self.ended += 1


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.fixture
async def tasks() -> AsyncIterator[list[PeriodicTask]]:
    made: list[PeriodicTask] = []
    yield made
    for task in made:
        await task.stop()


async def test_it_runs_at_its_interval_and_again_after_a_stop(tasks: list[PeriodicTask]) -> None:
    job = CountingJob()
    task = PeriodicTask("test", job, OFTEN)
    tasks.append(task)
    for goal in (3, 6):
        task.start()
        await until(lambda goal=goal: job.ended >= goal)
        await task.stop()
        await task.stop()
    ended = job.ended
    for _ in range(20):
        await asyncio.sleep(0)
    assert job.ended == ended


async def test_a_delay_comes_before_the_first_run_and_a_wake_ends_it(tasks: list[PeriodicTask]) -> None:
    job = CountingJob()
    task = PeriodicTask("test", job, NEVER)
    tasks.append(task)
    task.start(delay=NEVER)
    for _ in range(20):
        await asyncio.sleep(0)
    assert job.begun == 0
    task.wake()
    await until(lambda: job.ended == 1)


async def test_a_wake_during_a_run_leads_to_another(tasks: list[PeriodicTask]) -> None:
    job = CountingJob()
    job.open.clear()
    task = PeriodicTask("test", job, NEVER)
    tasks.append(task)
    task.start()
    await until(lambda: job.begun == 1)
    task.wake()
    job.open.set()
    await until(lambda: job.ended == 2)


async def test_it_outlives_failures_and_logs_them(tasks: list[PeriodicTask]) -> None:
    job = CountingJob()
    job.failing = True
    task = PeriodicTask("test", job, OFTEN)
    tasks.append(task)
    with capture_logs() as logs:
        task.start()
        await until(lambda: len(logs) >= 2)
    assert (logs[0]["event"], logs[0]["task"]) == ("periodic_task.failed", "test")
    job.failing = False
    await until(lambda: job.ended > 0)


@pytest.mark.parametrize(("grace", "ended"), [(0.0, 0), (10.0, 1)])
async def test_a_stop_cancels_a_run_or_lets_it_finish(tasks: list[PeriodicTask], grace: float, ended: int) -> None:
    job = CountingJob()
    job.open.clear()
    task = PeriodicTask("test", job, NEVER)
    tasks.append(task)
    task.start()
    await until(lambda: job.begun == 1)
    stopping = asyncio.ensure_future(task.stop(grace))
    await asyncio.sleep(0)
    job.open.set()
    await stopping
    assert job.ended == ended


@pytest.mark.parametrize("turns", range(6))
async def test_it_can_be_stopped_at_every_moment(turns: int) -> None:
    task = PeriodicTask("test", CountingJob(), OFTEN)
    task.start()
    for _ in range(20):
        await asyncio.sleep(0)
    task.wake()
    for _ in range(turns):
        await asyncio.sleep(0)
    async with asyncio.timeout(10):
        await task.stop()


async def test_pauses_grow_up_to_the_longest_and_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(asyncio, "sleep", sleep)
    growing, fixed = Backoff(1.0, 3.0, factor=2), Backoff(0.5)
    for _ in range(3):
        await growing.pause()
    growing.reset()
    await growing.pause()
    await fixed.pause()
    await fixed.pause()
    assert pauses == [1.0, 2.0, 3.0, 1.0, 0.5, 0.5]
