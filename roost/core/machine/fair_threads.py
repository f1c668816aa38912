"""Threads for work of tens of milliseconds and more, shared fairly: the work of one owner takes turns."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class FairThreads:
    """A few threads; with each one more, the event loop waits longer for the interpreter."""

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
