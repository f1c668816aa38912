"""Threads for blocking calls of the warden."""

import threading

import pytest

from roost.warden.event_loop import EventLoop
from roost.warden.waiting import gather_results
from roost.warden.worker_threads import WorkerThreads, run_in_thread
from tests.warden.test_event_loop import run


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
        EventLoop.running.create_task(threads.run(block))
        await run_in_thread(started.wait, 10)

    run(main())
    released.set()
    assert threads.call(int, "7") == 7
