"""Flush in-memory counters to the database at a fixed interval, so that no request waits for the disk.

A crash loses the counts since the last flush; a clean stop loses none.
"""

import asyncio
from abc import ABC, abstractmethod

from roost.core.periodic import PeriodicTask


class PeriodicFlusher(ABC):
    """Counter in memory that is written at a fixed interval; subclasses implement `_write`."""

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
