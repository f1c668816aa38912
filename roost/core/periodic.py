"""Background loops and waits: one way to start, wake, stop and pace them, and to log their failures."""

import asyncio
import contextvars
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress

from roost.core import log

_log = log.get_logger("periodic")


class PeriodicTask:
    """Background task that runs a function at a fixed interval and outlives its failures."""

    def __init__(self, name: str, run: Callable[[], Awaitable[object]], interval: float) -> None:
        """`name` identifies the task in the log; `interval` is the pause between two runs in seconds."""
        self._name = name
        self._run = run
        self._interval = interval
        self._woken = asyncio.Event()
        self._stopping = False
        self._task: asyncio.Task[None] | None = None

    def start(self, delay: float = 0.0) -> None:
        """Begin with the first run after `delay` seconds."""
        self._stopping = False
        self._woken.clear()
        empty = contextvars.Context()  # the loop does not belong to the request or operation that starts it
        self._task = asyncio.create_task(self._repeat(delay), name=self._name, context=empty)

    def wake(self) -> None:
        """Run as soon as the current run has ended, without the pause."""
        self._woken.set()

    async def stop(self, grace: float = 0.0) -> None:
        """Let the current run finish within `grace` seconds, then cancel it. Idempotent."""
        task, self._task = self._task, None
        if task is None:
            return
        self._stopping = True
        self._woken.set()
        if grace:
            await asyncio.wait({task}, timeout=grace)
        task.cancel()
        await asyncio.wait({task})

    async def run_once(self) -> None:
        """Run the function now; log its failure."""
        try:
            await self._run()
        except Exception:  # noqa: BLE001 - the edge of a loop: the next run may succeed
            _log.exception("periodic_task.failed", task=self._name)

    async def _repeat(self, delay: float) -> None:
        if delay:
            await self._pause(delay)
        while not self._stopping:
            self._woken.clear()
            await self.run_once()
            await self._pause(self._interval)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):  # `wait_for` of Python 3.11 loses a cancellation that meets the wake-up
            async with asyncio.timeout(seconds):
                await self._woken.wait()


class Backoff:
    """Pauses between attempts, each longer than the one before up to a maximum."""

    def __init__(self, first: float, longest: float | None = None, factor: float = 1.5) -> None:
        """`first` and `longest` are in seconds; without `longest` every pause is as long as the first."""
        self._first = self._next = first
        self._longest = longest or first
        self._factor = factor

    async def pause(self) -> None:
        seconds, self._next = self._next, min(self._next * self._factor, self._longest)
        await asyncio.sleep(seconds)

    def reset(self) -> None:
        """Begin with the first pause again."""
        self._next = self._first


class PeriodicFlusher(ABC):
    """Counter in memory that is written at a fixed interval, so that no request waits for the disk.

    Subclasses implement `_write`. A crash loses the counts since the last flush; a clean stop loses none.
    """

    def __init__(self, name: str, interval: float) -> None:
        """`name` identifies the counter in the log; `interval` is in seconds."""
        self._writing = asyncio.Lock()
        self._task = PeriodicTask(name, self.flush, interval)

    @abstractmethod
    async def _write(self) -> None:
        """Write all counts; on failure keep them for the next time and raise the reason.

        It is never cancelled, nor begun again before it is done.
        """

    async def flush(self) -> None:
        """Write the counts now. Raises the failure of `_write`."""
        await asyncio.shield(self._write_exclusively())  # a write that is cancelled half-way could be counted twice

    def start(self) -> None:
        self._task.start()

    async def stop(self) -> None:
        """Stop the loop and write the remaining counts. Idempotent."""
        await self._task.stop()
        await self._task.run_once()

    async def _write_exclusively(self) -> None:
        async with self._writing:
            await self._write()
