"""Scrub: read and hash every stored block periodically, and log damaged packs with their holders.

Reading is rate-limited. A damaged pack whose bytes were restored becomes readable again.
"""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from sqlalchemy import Connection

from roost.core import clock, log
from roost.core.db import Database
from roost.storage.content import store
from roost.storage.content.model import BlockMatch, Pack
from roost.storage.content.reader import ContentReader

RECHECK_AFTER = timedelta(days=30)
BYTES_PER_SECOND = 16 * 1024**2
_PAGE_SIZE = 500
_MAX_HOLDERS = 20

_log = log.get_logger("content")

DescribeHolders = Callable[[Connection, Sequence[str]], Sequence[str]]
"""Describe holders for an operator; only the package of a holder knows its names."""


class ContentScrubber:
    def __init__(self, db: Database, reader: ContentReader, rate: float = BYTES_PER_SECOND) -> None:
        self._db = db
        self._reader = reader
        self._rate = rate
        self.describe_holders: DescribeHolders = lambda _, holders: holders
        self.damaged_packs = 0
        """Number of damaged packs at the last count."""

    async def count_damaged(self) -> None:
        """Update `damaged_packs`."""
        self.damaged_packs = await self._db.read(store.count_damaged)

    async def scrub_next(self) -> bool:
        """Check one pack that is due after `RECHECK_AFTER`; return whether there was one. Raises BlobStoreFailed."""
        done = await self.check_oldest(clock.utc_now() - RECHECK_AFTER)
        if done is None:
            return False
        pack, is_whole = done
        if not is_whole:
            held_by = await self._db.read(lambda connection: self._describe_holders(connection, pack))
            _log.error("content.found_damaged", pack=pack.id, held_by=held_by)
        elif pack.damaged:
            _log.info("content.recovered", pack=pack.id)
        await self.count_damaged()
        return True

    async def check_oldest(self, before: datetime) -> tuple[Pack, bool] | None:
        """Check the least recently checked pack, if that was before `before`, and store the result.

        Returns the pack as it was before the check, and whether it is undamaged. Raises BlobStoreFailed.
        """
        pack = await self._db.read(lambda connection: store.next_to_check(connection, before))
        if pack is None:
            return None
        is_whole, at = await self._is_whole(pack), clock.utc_now()
        await self._db.write(lambda connection: store.mark_checked(connection, pack.id, at, damaged=not is_whole))
        return pack, is_whole

    def _describe_holders(self, connection: Connection, pack: Pack) -> Sequence[str]:
        return self.describe_holders(connection, store.list_holders(connection, pack.id, _MAX_HOLDERS))

    async def _is_whole(self, pack: Pack) -> bool:
        after = b""
        while rows := await self._db.read(
            lambda connection, after=after: store.list_blocks(connection, pack.id, after, _PAGE_SIZE)
        ):
            after = rows[-1].cid.digest
            for row in sorted(rows, key=lambda row: row.offset):
                if not await self._reader.is_whole(BlockMatch(pack.id, row)):
                    return False
                await asyncio.sleep(row.length / self._rate)
        return True
