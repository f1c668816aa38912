"""The scrub: each pack is read again every so often, block by block, and hashed; what is damaged is told with whose it
is. It reads slowly, so that nobody feels it, and a pack that was brought back is whole again for everybody.
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

AGAIN_AFTER = timedelta(days=30)
RATE = 16 * 1024**2
"""Bytes a second."""
_PAGE = 500
_NAMED = 20

_log = log.get_logger("content")

Describe = Callable[[Connection, Sequence[str]], Sequence[str]]
"""What a person knows holders as, of whose names only their own room knows the meaning."""


class ContentScrubber:
    def __init__(self, db: Database, reader: ContentReader, rate: float = RATE) -> None:
        self._db = db
        self._reader = reader
        self._rate = rate
        self.describe: Describe = lambda _, holders: holders
        self.damaged = 0
        """Packs that were known to be damaged when this was looked at last."""

    async def look(self) -> None:
        """Count what is damaged."""
        self.damaged = await self._db.read(store.damaged)

    async def next(self) -> bool:
        """Check a pack that was not checked for `AGAIN_AFTER`, and tell if it is damaged; whether there was one.

        Raises BlobFailed.
        """
        done = await self.check(clock.utc_now() - AGAIN_AFTER)
        if done is None:
            return False
        pack, is_whole = done
        if not is_whole:
            held_by = await self._db.read(lambda connection: self._held_by(connection, pack))
            _log.error("stored content is damaged", pack=pack.id, held_by=held_by)
        elif pack.damaged:
            _log.info("stored content is whole again", pack=pack.id)
        await self.look()
        return True

    async def check(self, before: datetime) -> tuple[Pack, bool] | None:
        """Read the pack that was not checked for the longest time, if that is before then, and keep what is found.

        The pack as it was known until then, and whether it is whole. Raises BlobFailed.
        """
        pack = await self._db.read(lambda connection: store.next_to_check(connection, before))
        if pack is None:
            return None
        is_whole, at = await self._is_whole(pack), clock.utc_now()
        await self._db.write(lambda connection: store.mark_checked(connection, pack.id, at, damaged=not is_whole))
        return pack, is_whole

    def _held_by(self, connection: Connection, pack: Pack) -> Sequence[str]:
        return self.describe(connection, store.holders(connection, pack.id, _NAMED))

    async def _is_whole(self, pack: Pack) -> bool:
        after = b""
        while rows := await self._db.read(
            lambda connection, after=after: store.rows_of(connection, pack.id, after, _PAGE)
        ):
            after = rows[-1].cid.digest
            for row in sorted(rows, key=lambda row: row.offset):
                if not await self._reader.is_whole(BlockMatch(pack.id, row)):
                    return False
                await asyncio.sleep(row.length / self._rate)
        return True
