"""Scrub: read and hash every stored block periodically, and log damaged packs with their holders.

A scrub gives way to requests: it limits its bytes per second, and rests in proportion to its work, which takes longer
on a busy server. A damaged pack whose bytes were restored becomes readable again.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta

from roost.core import clock, log
from roost.core.db import Connection, Database
from roost.storage.content import store
from roost.storage.content.model import BlockMatch, Pack
from roost.storage.content.reader import ContentReader

RECHECK_AFTER = timedelta(days=30)
BYTES_PER_SECOND = 16 * 1024**2
BUSY_SHARE = 0.2
"""Share of the time in which a scrub beside a server works."""
_PAGE_SIZE = 500
_SAVE_EVERY = 100
"""Undamaged packs whose checks are saved in one transaction; a crash repeats at most these."""
_MAX_HOLDERS = 20

_log = log.get_logger("content")

DescribeHolders = Callable[[Connection, Sequence[str]], Sequence[str]]
"""Describe holders for an operator; only the package of a holder knows its names."""


class ContentScrubber:
    def __init__(
        self,
        db: Database,
        reader: ContentReader,
        rate: float = BYTES_PER_SECOND,
        busy_share: float = BUSY_SHARE,
        describe_holders: DescribeHolders = lambda _, holders: holders,
    ) -> None:
        """`rate` is in bytes per second; `busy_share` is above 0 and at most 1, which never rests."""
        self._db = db
        self._reader = reader
        self._rate = rate
        self._rest = 1 / busy_share - 1
        self._describe_holders = describe_holders
        self.damaged_packs = 0
        """Number of damaged packs at the last count."""
        self.due_packs = 0
        """Number of packs that the current scrub has yet to check."""

    async def count_damaged(self) -> None:
        """Update `damaged_packs`."""
        self.damaged_packs = await self._db.read_long(store.count_damaged)

    async def scrub_due(self) -> int:
        """Check all packs that are due after `RECHECK_AFTER`; return their number. Raises BlobStoreFailed."""
        await self.count_damaged()
        count = size = 0
        async with aclosing(self.check_packs(clock.utc_now() - RECHECK_AFTER)) as checked:
            async for pack, is_whole in checked:
                count, size = count + 1, size + pack.size
                if not is_whole:
                    held_by = await self._db.read_long(lambda connection, pack=pack: self._describe(connection, pack))
                    _log.error("content.found_damaged", pack=pack.id, held_by=held_by)
                elif pack.damaged:
                    _log.info("content.recovered", pack=pack.id)
                if pack.damaged or not is_whole:
                    await self.count_damaged()
        if count:
            _log.info("scrub.finished", packs=count, bytes=size, damaged=self.damaged_packs)
        return count

    async def check_packs(self, before: datetime) -> AsyncGenerator[tuple[Pack, bool]]:
        """Check the packs with a holder whose last check was before `before`, and store the results.

        Yields each pack as it was before its check, and whether it is undamaged. Raises BlobStoreFailed.
        """
        after: tuple[datetime | None, str] = (None, "")
        unsaved: list[str] = []
        try:
            while page := await self._read_page(before, after):
                for pack in page:
                    is_whole = await self._is_whole(pack)
                    self.due_packs -= 1
                    if is_whole and not pack.damaged:
                        unsaved.append(pack.id)
                    else:
                        await self._save_checks([pack.id], damaged=not is_whole)
                    if len(unsaved) == _SAVE_EVERY:
                        await self._save_checks(unsaved)
                        unsaved.clear()
                    yield pack, is_whole
                after = (page[-1].checked_at, page[-1].id)
        finally:
            self.due_packs = 0
            await self._save_checks(unsaved)

    async def _read_page(self, before: datetime, after: tuple[datetime | None, str]) -> Sequence[Pack]:
        def read(connection: Connection) -> tuple[Sequence[Pack], int]:
            page = store.list_unchecked(connection, before, after, _PAGE_SIZE)
            return page, store.count_unchecked(connection, before)

        page, self.due_packs = await self._db.read_long(read)
        return page

    async def _save_checks(self, pack_ids: Sequence[str], *, damaged: bool = False) -> None:
        at = clock.utc_now()
        if pack_ids:
            await self._db.write(lambda connection: store.mark_checked(connection, pack_ids, at, damaged=damaged))

    def _describe(self, connection: Connection, pack: Pack) -> Sequence[str]:
        return self._describe_holders(connection, store.list_holders(connection, pack.id, _MAX_HOLDERS))

    async def _is_whole(self, pack: Pack) -> bool:
        """Read and hash all blocks of a pack, with rests."""
        after = b""
        began = clock.monotonic_seconds()
        while rows := await self._db.read_long(
            lambda connection, after=after: store.list_blocks(connection, pack.id, after, _PAGE_SIZE)
        ):
            after = rows[-1].cid.digest
            for row in sorted(rows, key=lambda row: row.offset):
                if not await self._reader.is_whole(BlockMatch(pack.id, row)):
                    return False
                worked = clock.monotonic_seconds() - began
                await asyncio.sleep(max(row.length / self._rate, worked * self._rest))
                began = clock.monotonic_seconds()
            if len(rows) < _PAGE_SIZE:
                break
        return True
