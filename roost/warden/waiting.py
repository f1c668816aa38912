"""Ways to wait in a task: for time, futures, other tasks, descriptors, turns, and calls in threads."""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread

from .event_loop import CancelledError, CoroutineTask, EventLoop, Future
from .light_imports import SimpleQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    T = TypeVar("T")
    Done = Callable[[Any, BaseException | None], object]

FILE_THREADS = 4


def create_background_task(coroutine: Coroutine[Any, Any, T]) -> CoroutineTask[T]:
    """Start a task whose error is reported to the loop."""
    task = CoroutineTask(coroutine)

    def report_failure(_: object) -> None:
        if error := _failure(task):
            EventLoop.running.report_error(error)

    task.add_done_callback(report_failure)
    return task


async def sleep_seconds(seconds: float) -> None:
    await wait_until_done(Future[None](), seconds=seconds)


async def wait_until_done(*futures: Future[Any], seconds: float | None = None, first: bool = False) -> None:
    """Wait until all futures (or the `first`) are done, at most `seconds`. Does not raise their errors."""
    loop, woken = EventLoop.running, Future[None]()

    def wake(_: object = None) -> None:
        if (any if first else all)(future.done() for future in futures):
            woken.set_result(None)

    for future in futures:
        future.add_done_callback(wake)
    timer = None if seconds is None else loop.call_later(seconds, woken.set_result, None)
    wake()
    try:
        await woken
    finally:
        for future in futures:
            future.remove_done_callback(wake)
        if timer:
            loop.cancel_timer(timer)


async def gather_results(*coroutines: Coroutine[Any, Any, T]) -> list[T]:
    """Run coroutines side by side and return their results; after the first failure cancel the others and raise it."""
    tasks = [CoroutineTask(coroutine) for coroutine in coroutines]
    try:
        while (pending := [task for task in tasks if not task.done()]) and not any(map(_failure, tasks)):
            await wait_until_done(*pending, first=True)
    finally:
        for task in tasks:
            task.cancel()
        await wait_until_done(*tasks)
    for error in filter(None, map(_failure, tasks)):
        raise error
    return [task.result() for task in tasks]


def _failure(task: CoroutineTask[Any]) -> BaseException | None:
    return None if isinstance(error := task.exception(), CancelledError) else error


async def wait_until_ready(fd: int, event: int, other: Future[Any] | None = None) -> None:
    """Wait until `fd` is ready for READ or WRITE, or `other` is done."""
    loop, woken = EventLoop.running, Future[object]()
    loop.watch(fd, event, lambda: woken.set_result(None))
    if other:
        other.add_done_callback(woken.set_result)
    try:
        await woken
    finally:
        loop.watch(fd, event, None)
        if other:
            other.remove_done_callback(woken.set_result)


class _TimeLimitError(CancelledError):
    """Raised inside of a TimeLimit only."""


class TimeLimit:
    """Raises TimeoutError if the `with` block ends later than `seconds` after the creation of the limit."""

    def __init__(self, seconds: float) -> None:
        loop, error = EventLoop.running, _TimeLimitError()
        task = loop.current_task
        assert task
        self._loop, self._task, self._error = loop, task, error
        self._timer = loop.call_later(seconds, task.interrupt, error)

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self._loop.cancel_timer(self._timer)
        self._task.drop_interrupt(self._error)
        if error is self._error:
            raise TimeoutError("the time limit is reached") from None


class TaskLock:
    """Lock that tasks hold one after another, in the order of their arrival."""

    def __init__(self) -> None:
        self._queue: list[Future[None]] = []  # the first one holds the lock

    async def __aenter__(self) -> None:
        turn = Future[None]()
        self._queue.append(turn)
        if self._queue[0] is not turn:
            try:
                await turn
            except BaseException:
                self._leave(turn)
                raise

    async def __aexit__(self, *_: object) -> None:
        self._leave(self._queue[0])

    def _leave(self, turn: Future[None]) -> None:
        self._queue.remove(turn)
        if self._queue:
            self._queue[0].set_result(None)


class WorkerThreads:
    """Threads that start with the first call, and end with the process. concurrent.futures takes 9 ms to import."""

    def __init__(self, count: int) -> None:
        self._unstarted = count
        self._calls: SimpleQueue[tuple[Callable[[], Any], Done]] = SimpleQueue()

    async def run(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in a thread, and wait for its result in a task."""
        future: Future[T] = Future()
        loop = EventLoop.running

        def done(result: Any, error: BaseException | None) -> None:
            loop.call_from_thread(future.settle, result, error)

        self._submit(lambda: function(*args, **kwargs), done)
        return await future

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in a thread, and block until it returns."""
        future: Future[T] = Future()
        lock = allocate_lock()

        def done(result: Any, error: BaseException | None) -> None:
            future.settle(result, error)
            lock.release()

        lock.acquire()
        self._submit(lambda: function(*args, **kwargs), done)
        lock.acquire()
        return future.result()

    def _submit(self, call: Callable[[], Any], done: Done) -> None:
        while self._unstarted:
            self._unstarted -= 1
            start_new_thread(self._work, ())
        self._calls.put((call, done))

    def _work(self) -> None:
        while True:
            _execute_call(*self._calls.get())


def _execute_call(call: Callable[[], Any], done: Done) -> None:
    """Make a call; a function of its own, so that a waiting thread holds no results."""
    try:
        result, error = call(), None
    except BaseException as problem:  # noqa: BLE001 - raised where the call was submitted
        result, error = None, problem
    done(result, error)


run_in_thread = WorkerThreads(FILE_THREADS).run
"""Call a function that waits for a disk in a thread."""
