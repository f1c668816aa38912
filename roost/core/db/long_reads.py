"""Threads for reads of many rows, shared fairly: the reads of one owner take turns."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")
LONG_READS = 2
"""Long reads at a time, of as many owners. With each one more, the event loop waits longer for the interpreter."""


class LongReadThreads:
    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(LONG_READS, thread_name_prefix="db-long-reads")
        self._turns = WeakValueDictionary[str, asyncio.Semaphore]()

    async def run(self, owner: str, read: Callable[[], T]) -> T:
        """Run `read` in a thread when the earlier reads of the owner have ended."""
        turn = self._turns.setdefault(owner, asyncio.Semaphore())
        await turn.acquire()
        loop = asyncio.get_running_loop()

        def release(_: Future[T]) -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(turn.release)

        future = self._threads.submit(read)
        future.add_done_callback(release)  # a cancelled caller does not end the thread, which keeps its turn
        return await asyncio.wrap_future(future)

    def close(self) -> None:
        self._threads.shutdown(wait=True, cancel_futures=True)
