"""Writing down every so often what is counted in memory, so that nobody who is counted waits for the disk.

What was counted since the last time is lost in a crash, on purpose; a clean stop loses nothing.
"""

import asyncio
import contextlib
from abc import ABC, abstractmethod

from roost.core import log

_log = log.get_logger("flusher")


class PeriodicFlusher(ABC):
    """What counts in memory extends this, and says in `_write` how it is written down."""

    def __init__(self, what: str, interval: float) -> None:
        """`what` it is, for the log. interval: seconds from one time to the next."""
        self._what = what
        self._interval = interval
        self._writing = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    @abstractmethod
    async def _write(self) -> None:
        """Write down all that there is; what cannot be written is kept for the next time, and why is raised.

        It is never cut off, nor begun again before it is done.
        """

    async def flush(self) -> None:
        """Write down what has been counted, now. Raises what it cannot be for."""
        await asyncio.shield(self._take_turn())  # cut off in the middle, nobody would know what is written

    def start(self) -> None:
        self._stopping.clear()
        self._loop = asyncio.create_task(self._run(), name=self._what)

    async def stop(self) -> None:
        """Idempotent."""
        self._stopping.set()
        if self._loop is not None:
            await self._loop
            self._loop = None
        await self._try()

    async def _run(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval):
                    await self._stopping.wait()
            await self._try()

    async def _try(self) -> None:
        try:
            await self.flush()
        except Exception:  # noqa: BLE001 - the edge of the loop
            _log.exception("what was counted could not be written down; it is tried again", what=self._what)

    async def _take_turn(self) -> None:
        async with self._writing:
            await self._write()
