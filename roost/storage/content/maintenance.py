"""What a server does for content by itself: let go of what is over, sweep up what nobody holds, read all again.

Each is a loop of its own that survives every failure; several servers of one database may all run them.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

from roost.core import log
from roost.storage.content.service import ContentService

SWEEP_EVERY = timedelta(hours=1)
EXPIRE_EVERY = timedelta(minutes=1)
SCRUB_EVERY = timedelta(minutes=5)
LOOK_EVERY = timedelta(minutes=5)

_log = log.get_logger("content")


class MaintenanceTasks:
    def __init__(self, content: ContentService, expire: Callable[[], Awaitable[int]]) -> None:
        """`expire` ends some of what is over, and says how many there were."""
        self._content = content
        self._expire = expire
        self._loops: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._loops = [
            asyncio.create_task(_always(SWEEP_EVERY, self._sweep), name="content sweep"),
            asyncio.create_task(_always(EXPIRE_EVERY, self._expire_all), name="content expire"),
            asyncio.create_task(_always(SCRUB_EVERY, self._scrub), name="content scrub"),
            asyncio.create_task(_always(LOOK_EVERY, self._content.look), name="content look"),
        ]

    async def stop(self) -> None:
        """Idempotent. What is cut off is done by the next start."""
        loops, self._loops = self._loops, []
        for loop in loops:
            loop.cancel()
        await asyncio.gather(*loops, return_exceptions=True)

    async def _sweep(self) -> None:
        if gone := await self._content.sweep():
            _log.info("swept up", objects=gone)

    async def _expire_all(self) -> None:
        while await self._expire():
            pass

    async def _scrub(self) -> None:
        await self._content.scrub.look()
        while await self._content.scrub.next():
            pass


async def _always(every: timedelta, work: Callable[[], Awaitable[None]]) -> None:
    while True:
        try:
            await work()
        except Exception:  # noqa: BLE001 - the edge of the loop
            _log.exception("keeping content failed; it is tried again", what=work.__name__)
        await asyncio.sleep(every.total_seconds())
