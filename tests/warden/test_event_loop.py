"""The warden's event loop: futures, tasks, cancellation, timers, descriptors, threads and signals."""

import os
import signal
import socket
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from typing import Any

import pytest

from roost.warden.event_loop import READ, WRITE, CancelledError, CoroutineTask, EventLoop, Future
from roost.warden.waiting import create_background_task, sleep_seconds, wait_until_done, wait_until_ready


def run(main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine; an unexpected report of an error raises it."""

    def fail(error: BaseException) -> None:
        raise AssertionError("an error was reported") from error

    return EventLoop(fail).run(main)


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe2(os.O_NONBLOCK)
    yield ends
    for fd in ends:
        with suppress(OSError):
            os.close(fd)


def test_run_returns_the_result_or_raises_the_error() -> None:
    async def answer() -> int:
        await sleep_seconds(0)
        return 42

    async def fail() -> None:
        await sleep_seconds(0)
        raise LookupError("x")

    assert run(answer()) == 42
    with pytest.raises(LookupError):
        run(fail())


def test_a_future_keeps_its_first_result_for_every_waiter() -> None:
    async def main() -> list[int]:
        future = Future[int]()
        waiters = [CoroutineTask(read(future)) for _ in range(3)]
        await sleep_seconds(0)
        future.set_result(1)
        future.set_result(2)
        future.settle(None, LookupError())
        await wait_until_done(*waiters)
        return [waiter.result() for waiter in waiters] + [await future]

    async def read(future: Future[int]) -> int:
        return await future

    assert run(main()) == [1, 1, 1, 1]


def test_the_error_of_a_task_is_raised_where_it_is_awaited() -> None:
    async def fail() -> None:
        raise LookupError("x")

    async def main() -> None:
        with pytest.raises(LookupError):
            await CoroutineTask(fail())

    run(main())


def test_errors_of_callbacks_and_background_tasks_are_reported_and_the_loop_goes_on() -> None:
    reported: list[BaseException] = []

    async def fail() -> None:
        raise LookupError("task")

    async def main() -> str:
        create_background_task(fail())
        EventLoop.running.call_soon(int, "callback")
        create_background_task(sleep_seconds(60)).cancel()
        await sleep_seconds(0.001)
        return "alive"

    assert EventLoop(reported.append).run(main()) == "alive"
    assert sorted(type(error).__name__ for error in reported) == ["LookupError", "ValueError"]


def test_a_cancelled_task_cleans_up_and_ends() -> None:
    steps: list[str] = []

    async def work() -> None:
        try:
            await sleep_seconds(60)
        finally:
            await sleep_seconds(0)  # a clean-up may wait
            steps.append("cleaned up")

    async def main() -> None:
        task = CoroutineTask(work())
        await sleep_seconds(0)
        task.cancel()
        task.cancel()
        await wait_until_done(task)
        assert isinstance(task.exception(), CancelledError)
        task.cancel()

    run(main())
    assert steps == ["cleaned up"]


def test_a_task_cancelled_before_its_start_does_nothing() -> None:
    steps: list[str] = []

    async def work() -> None:
        steps.append("started")

    async def main() -> None:
        task = CoroutineTask(work())
        task.cancel()
        await wait_until_done(task)

    run(main())
    assert not steps


@pytest.mark.parametrize("first", ["result", "cancel"])
def test_a_result_and_a_cancellation_in_one_round_resume_the_task_once(first: str) -> None:
    async def work(future: Future[str], steps: list[str]) -> None:
        try:
            steps.append(await future)
        except CancelledError:
            steps.append("cancelled")
        await sleep_seconds(0.001)
        steps.append("ended")

    async def main() -> list[str]:
        future, steps = Future[str](), list[str]()
        task = CoroutineTask(work(future, steps))
        await sleep_seconds(0)
        actions = [lambda: future.set_result("result"), task.cancel]
        for act in actions if first == "result" else reversed(actions):
            act()
        await wait_until_done(task)
        return steps

    assert run(main()) == ["cancelled", "ended"]


def test_a_task_that_cancels_itself_ends_where_it_waits_next() -> None:
    steps: list[str] = []

    async def main() -> None:
        task: CoroutineTask[None] = CoroutineTask(work())
        await wait_until_done(task)

    async def work() -> None:
        task = EventLoop.running.current_task
        assert task
        task.cancel()
        steps.append("still running")
        await sleep_seconds(60)
        steps.append("never")

    run(main())
    assert steps == ["still running"]


def test_tasks_left_at_the_end_are_cancelled_and_awaited() -> None:
    steps: list[str] = []

    async def work() -> None:
        try:
            await Future[None]()
        finally:
            await sleep_seconds(0)
            steps.append("cleaned up")

    async def main() -> None:
        CoroutineTask(work())
        await sleep_seconds(0)

    run(main())
    assert steps == ["cleaned up"]


def test_timers_expire_in_order_unless_cancelled() -> None:
    called: list[int] = []

    async def main() -> None:
        loop = EventLoop.running
        timers = [loop.call_later(number / 1000, called.append, number) for number in (5, 1, 3, 1, 4)]
        loop.cancel_timer(timers[2])
        loop.cancel_timer(timers[2])
        loop.call_later(float("inf"), called.append, 9)
        await sleep_seconds(0.006)
        loop.cancel_timer(timers[0])

    run(main())
    assert called == [1, 1, 4, 5]


def test_a_descriptor_is_watched_in_both_directions() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:

        async def main() -> list[str]:
            events: list[str] = []
            reading = CoroutineTask(note("read", READ, events))
            await CoroutineTask(note("write", WRITE, events))
            assert events == ["write"]
            theirs.send(b"x")
            await wait_until_done(reading)
            return events

        async def note(name: str, event: int, events: list[str]) -> None:
            await wait_until_ready(ours.fileno(), event)
            events.append(name)

        assert run(main()) == ["write", "read"]


def test_a_closed_peer_wakes_reader_and_writer(pipe: tuple[int, int]) -> None:
    other = os.pipe2(os.O_NONBLOCK)
    with suppress(BlockingIOError):
        while True:
            os.write(other[1], bytes(65536))

    async def main() -> None:
        waiting = [CoroutineTask(wait_until_ready(pipe[0], READ)), CoroutineTask(wait_until_ready(other[1], WRITE))]
        await sleep_seconds(0)
        os.close(pipe[1])
        os.close(other[0])
        await wait_until_done(*waiting)

    run(main())
    os.close(other[1])


def test_the_number_of_a_closed_descriptor_can_be_used_again(pipe: tuple[int, int]) -> None:
    async def main() -> None:
        for _ in range(3):
            number, writer = os.pipe2(os.O_NONBLOCK)
            waiting = CoroutineTask(wait_until_ready(number, READ))
            await sleep_seconds(0)
            waiting.cancel()
            await wait_until_done(waiting)  # ends the watch
            os.close(number)
            os.dup2(pipe[0], number)
            reading = CoroutineTask(wait_until_ready(number, READ))
            await sleep_seconds(0)
            os.write(pipe[1], b"x")
            await wait_until_done(reading, seconds=5)
            assert reading.done()
            os.read(number, 1)
            os.close(number)
            os.close(writer)

    run(main())


def test_a_callback_may_end_the_watch_of_another_ready_descriptor(pipe: tuple[int, int]) -> None:
    other = os.pipe2(os.O_NONBLOCK)
    called: list[int] = []

    def on_ready(fd: int) -> None:
        called.append(fd)
        for watched in (pipe[0], other[0]):
            EventLoop.running.watch(watched, READ, None)

    async def main() -> None:
        for fd in (pipe[0], other[0]):
            EventLoop.running.watch(fd, READ, lambda fd=fd: on_ready(fd))
        os.write(pipe[1], b"x")
        os.write(other[1], b"x")
        await sleep_seconds(0.001)

    run(main())
    assert len(called) == 1
    for fd in other:
        os.close(fd)


def test_calls_from_threads_wake_the_loop_and_none_is_lost() -> None:
    called: list[int] = []

    async def main() -> None:
        loop, ended = EventLoop.running, Future[None]()

        def call() -> None:
            for number in range(2000):
                loop.call_from_thread(called.append, number)
            loop.call_from_thread(lambda: ended.set_result(None) if len(called) == 8000 else None)

        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        await wait_until_done(ended, seconds=10)
        for thread in threads:
            thread.join()

    run(main())
    assert len(called) == 8000


def test_a_signal_wakes_the_loop() -> None:
    before = signal.getsignal(signal.SIGUSR1)

    async def main() -> None:
        arrived = Future[None]()
        EventLoop.running.on_signal(signal.SIGUSR1, lambda: arrived.set_result(None))
        sender = threading.Timer(0.01, os.kill, (os.getpid(), signal.SIGUSR1))
        sender.start()
        await wait_until_done(arrived, seconds=10)
        sender.join()
        assert arrived.done()

    began = time.monotonic()
    try:
        run(main())
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert time.monotonic() - began < 5
