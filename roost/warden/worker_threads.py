"""Threads for blocking calls. concurrent.futures takes 9 ms to import."""

from __future__ import annotations

from _thread import allocate_lock, start_new_thread

from .event_loop import EventLoop, Future
from .light_imports import SimpleQueue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, TypeVar

    P = ParamSpec("P")
    T = TypeVar("T")
    Done = Callable[[Any, BaseException | None], object]

FILE_THREADS = 4


class WorkerThreads:
    """Threads that start with the first call, and end with the process."""

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


_file_threads = WorkerThreads(FILE_THREADS)


async def run_in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that waits for a disk in a thread."""
    return await _file_threads.run(function, *args, **kwargs)
