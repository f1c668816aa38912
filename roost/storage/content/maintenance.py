"""Background maintenance of content: end what has expired, delete what no file holds, verify stored packs.

Several servers of one database may all run these tasks.
"""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from roost.core import log
from roost.core.periodic import PeriodicTask
from roost.storage.content.service import ContentService

SWEEP_INTERVAL = timedelta(hours=1)
EXPIRE_INTERVAL = timedelta(minutes=1)
SCRUB_INTERVAL = timedelta(minutes=5)
TOTALS_INTERVAL = timedelta(minutes=5)

_log = log.get_logger("content")


class MaintenanceTasks:
    """The four periodic tasks of a content store."""

    def __init__(self, content: ContentService, expire: Callable[[], Awaitable[int]]) -> None:
        """`expire` ends some expired rows and returns their number."""
        self._content = content
        self._expire = expire
        self._tasks = [
            PeriodicTask("content sweep", self._sweep, SWEEP_INTERVAL.total_seconds()),
            PeriodicTask("content expire", self._expire_all, EXPIRE_INTERVAL.total_seconds()),
            PeriodicTask("content scrub", content.scrubber.scrub_due, SCRUB_INTERVAL.total_seconds()),
            PeriodicTask("content totals", content.refresh_totals, TOTALS_INTERVAL.total_seconds()),
        ]

    def start(self) -> None:
        for task in self._tasks:
            task.start()

    async def stop(self) -> None:
        """Idempotent. The next start does the rest of a run that was cancelled."""
        for task in self._tasks:
            await task.stop()

    async def _sweep(self) -> None:
        if count := await self._content.sweep():
            _log.info("content.swept", objects=count)

    async def _expire_all(self) -> None:
        while await self._expire():
            pass
