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
from roost.storage.content.model import Found, Pack
from roost.storage.content.reader import Reader

AGAIN_AFTER = timedelta(days=30)
RATE = 16 * 1024**2
"""Bytes a second."""
_PAGE = 500
_NAMED = 20

_log = log.get("content")

Describe = Callable[[Connection, Sequence[str]], Sequence[str]]
"""What a person knows holders as, of whose names only their own room knows the meaning."""


class Scrub:
    def __init__(self, db: Database, reader: Reader, rate: float = RATE) -> None:
        self._db = db
        self._reader = reader
        self._rate = rate
        self.describe: Describe = lambda _, holders: holders
        self.damaged = 0
        """Packs that were known to be damaged when this was looked at last."""

    async def look(self) -> None:
        """Count what is damaged."""
        self.damaged = await self._db.read(store.damaged)

    async def next(self, since: datetime | None = None) -> bool:
        """Check the pack that was not checked for the longest time; whether there was one. Raises BlobFailed.

        since: then each pack is checked that was not after it, else those that were not for `AGAIN_AFTER`.
        """
        before = since or clock.now() - AGAIN_AFTER
        pack = await self._db.read(lambda connection: store.next_to_check(connection, before))
        if pack is None:
            return False
        whole = await self._is_whole(pack)
        at = clock.now()
        await self._db.write(lambda connection: store.mark_checked(connection, pack.id, at, damaged=not whole))
        if not whole:
            held_by = await self._db.read(lambda connection: self._held_by(connection, pack))
            _log.error("stored content is damaged", pack=pack.id, held_by=held_by)
        elif pack.damaged:
            _log.info("stored content is whole again", pack=pack.id)
        await self.look()
        return True

    def _held_by(self, connection: Connection, pack: Pack) -> Sequence[str]:
        return self.describe(connection, store.holders(connection, pack.id, _NAMED))

    async def _is_whole(self, pack: Pack) -> bool:
        after = b""
        while rows := await self._db.read(
            lambda connection, after=after: store.rows_of(connection, pack.id, after, _PAGE)
        ):
            after = rows[-1].cid.digest
            for row in sorted(rows, key=lambda row: row.offset):
                if not await self._reader.is_whole(Found(pack.id, row)):
                    return False
                await asyncio.sleep(row.length / self._rate)
        return True
