"""Ways to wait in the warden: time limits, groups of tasks, turns, and calls in threads."""

import os
import threading
import time
from contextlib import suppress

import pytest

from roost.warden.event_loop import READ, CancelledError, CoroutineTask, Future
from roost.warden.waiting import (
    TaskLock,
    TimeLimit,
    WorkerThreads,
    gather_results,
    run_in_thread,
    sleep_seconds,
    wait_until_done,
    wait_until_ready,
)
from tests.warden.test_event_loop import run


async def fail() -> None:
    await sleep_seconds(0)
    raise LookupError("x")


async def note(steps: list[str], name: str) -> None:
    """Wait until cancelled, and take some time to clean up."""
    try:
        await Future[None]()
    finally:
        await sleep_seconds(0.001)
        steps.append(name)


def test_sleep_lasts_as_long_as_it_says() -> None:
    began = time.monotonic()
    run(sleep_seconds(0.02))
    assert 0.02 <= time.monotonic() - began < 5


def test_wait_ends_with_all_the_first_or_the_time() -> None:
    async def main() -> None:
        one, two = Future[None](), Future[None]()
        await wait_until_done(one, two, seconds=0.001)
        one.set_result(None)
        await wait_until_done(one, two, first=True)
        waiting = CoroutineTask(wait_until_done(one, two))
        await sleep_seconds(0.001)
        assert not waiting.done()
        two.settle(None, LookupError())  # is not raised
        await waiting
        await wait_until_done()

    run(main())


def test_gather_returns_results_in_order() -> None:
    async def answer(number: int) -> int:
        await sleep_seconds((3 - number) / 1000)
        return number

    assert run(gather_results(*map(answer, range(3)))) == [0, 1, 2]
    assert run(gather_results()) == []


def test_gather_cancels_the_others_after_a_failure_and_waits_for_them() -> None:
    steps: list[str] = []
    with pytest.raises(LookupError):
        run(gather_results(note(steps, "one"), fail(), note(steps, "two")))
    assert steps == ["one", "two"]


def test_a_cancelled_gather_cancels_its_tasks_and_waits_for_them() -> None:
    steps: list[str] = []

    async def main() -> None:
        task = CoroutineTask(gather_results(note(steps, "one"), note(steps, "two")))
        await sleep_seconds(0.001)
        task.cancel()
        await wait_until_done(task)
        assert steps == ["one", "two"]

    run(main())


def test_a_time_limit_ends_its_block_with_a_timeout() -> None:
    async def main() -> None:
        with pytest.raises(TimeoutError), TimeLimit(0.001):
            await Future[None]()
        with TimeLimit(0.001):
            pass
        await sleep_seconds(0.005)  # the limit of a block that ended interrupts nothing

    run(main())


@pytest.mark.parametrize("inner", [0.001, 60.0])
def test_the_shorter_of_two_time_limits_counts(inner: float) -> None:
    async def main() -> str:
        try:
            with TimeLimit(0.005):
                try:
                    with TimeLimit(inner):
                        await Future[None]()
                except TimeoutError:
                    return "inner"
        except TimeoutError:
            return "outer"
        return "none"

    assert run(main()) == ("inner" if inner < 1 else "outer")


def test_two_limits_that_expire_together_both_count() -> None:
    async def main() -> list[str]:
        steps: list[str] = []
        with suppress(TimeoutError), TimeLimit(0.001):
            with suppress(TimeoutError), TimeLimit(0.001):
                time.sleep(0.005)  # both are late when the loop looks at them
                await Future[None]()
            steps.append("inner")
            await Future[None]()
        return steps

    assert run(main()) in (["inner"], [])


def test_errors_and_cancellations_pass_a_time_limit() -> None:
    async def main() -> None:
        with pytest.raises(LookupError), TimeLimit(60):
            await fail()
        task = CoroutineTask(limited())
        await sleep_seconds(0.001)
        task.cancel()
        await wait_until_done(task)
        assert isinstance(task.exception(), CancelledError)

    async def limited() -> None:
        with TimeLimit(60):
            await Future[None]()

    run(main())


def test_a_cancellation_is_not_lost_when_a_limit_expires_at_the_same_time() -> None:
    steps: list[str] = []

    async def main() -> None:
        task = CoroutineTask(limited())
        await sleep_seconds(0)
        time.sleep(0.005)  # the limit has expired, and its task was not resumed yet
        task.cancel()
        await wait_until_done(task)
        assert isinstance(task.exception(), CancelledError)

    async def limited() -> None:
        with suppress(TimeoutError), TimeLimit(0.001):
            await Future[None]()
        steps.append("after the limit")
        await Future[None]()
        steps.append("never")

    run(main())
    assert "never" not in steps


def test_a_descriptor_or_a_future_ends_the_wait() -> None:
    reader, writer = os.pipe2(os.O_NONBLOCK)

    async def main() -> None:
        other = Future[int]()
        waiting = CoroutineTask(wait_until_ready(reader, READ, other))
        await sleep_seconds(0.001)
        assert not waiting.done()
        other.set_result(1)
        await waiting
        await wait_until_ready(reader, READ, other)
        os.write(writer, b"x")
        await wait_until_ready(reader, READ, Future[int]())

    run(main())
    os.close(reader)
    os.close(writer)


def test_a_lock_admits_tasks_in_order_and_skips_cancelled_ones() -> None:
    steps: list[int] = []

    async def main() -> None:
        lock = TaskLock()
        tasks = [CoroutineTask(enter(lock, number)) for number in range(5)]
        await sleep_seconds(0.001)
        assert steps == [0]
        tasks[1].cancel()
        tasks[0].cancel()  # while it holds the lock
        await sleep_seconds(0.001)
        assert steps == [0, 2]
        tasks[2].cancel()
        tasks[3].cancel()  # while it is admitted
        await sleep_seconds(0.001)
        assert steps == [0, 2, 4]
        tasks[4].cancel()
        await wait_until_done(*tasks)
        async with lock:
            steps.append(5)

    async def enter(lock: TaskLock, number: int) -> None:
        async with lock:
            steps.append(number)
            await Future[None]()

    run(main())
    assert steps == [0, 2, 4, 5]


def test_a_call_returns_the_result_or_raises_the_error() -> None:
    async def main() -> None:
        assert await run_in_thread(int, "7", base=8) == 7
        with pytest.raises(ValueError, match="seven"):
            await run_in_thread(int, "seven")

    run(main())
    threads = WorkerThreads(1)
    assert threads.call(int, "7") == 7
    with pytest.raises(ValueError, match="seven"):
        threads.call(int, "seven")
    assert threads.call(threading.get_ident) == threads.call(threading.get_ident) != threading.get_ident()


def test_calls_run_side_by_side_up_to_the_number_of_threads() -> None:
    threads, barrier = WorkerThreads(3), threading.Barrier(3)

    async def main() -> list[int]:
        return await gather_results(*(threads.run(barrier.wait, 10) for _ in range(6)))

    assert sorted(run(main())) == [0, 0, 1, 1, 2, 2]


def test_a_thread_outlives_the_loop_that_its_call_came_from() -> None:
    threads, started, released = WorkerThreads(1), threading.Event(), threading.Event()

    def block() -> None:
        started.set()
        released.wait(10)

    async def main() -> None:
        CoroutineTask(threads.run(block))
        await run_in_thread(started.wait, 10)

    run(main())
    released.set()
    assert threads.call(int, "7") == 7
