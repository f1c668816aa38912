"""Threads for blocking work: daemon threads, which do not delay process exit, and a few that owners share fairly."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


async def run_in_daemon_thread(work: Callable[[], T]) -> T:
    """Run `work`, which may take minutes, and return its result; a cancelled call leaves the thread running.

    `asyncio.to_thread` shares few threads, and process exit waits for each of them.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(result: T | None, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # pyright: ignore[reportArgumentType] - None only where T is

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except Exception as raised:  # noqa: BLE001 - raised again in the awaiting task
            error = raised
        with suppress(RuntimeError):  # the loop is closed, so no task awaits the result
            loop.call_soon_threadsafe(settle, result, error)

    threading.Thread(target=run, name="daemon-work", daemon=True).start()
    return await done


class FairThreads:
    """A few threads for work of tens of milliseconds and more; that of one owner takes turns.

    With each thread more, the event loop waits longer for the interpreter.
    """

    def __init__(self, count: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(count, thread_name_prefix=name)
        self._turns = WeakValueDictionary[str, asyncio.Semaphore]()

    async def run(self, owner: str, work: Callable[[], T]) -> T:
        """Run `work` in a thread when the earlier work of the owner has ended."""
        turn = self._turns.setdefault(owner, asyncio.Semaphore())
        await turn.acquire()
        loop = asyncio.get_running_loop()

        def release(_: Future[T]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(turn.release)

        future = self._threads.submit(work)
        future.add_done_callback(release)  # a cancelled caller does not end the thread, which keeps its turn
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
