"""Counts in memory and writes down every second, so that no answer waits for the disk.

What was counted in the last second before a crash is lost, on purpose; a clean stop loses nothing.
"""

import asyncio
import contextlib

from roost.agents.models import store
from roost.agents.models.model import Usage
from roost.core import log
from roost.core.db import Database

_INTERVAL = 1.0

_log = log.get(__name__)


class Meter:
    def __init__(self, db: Database) -> None:
        self._db = db
        self._pending: dict[tuple[str, ...], Usage] = {}
        self._writing = asyncio.Lock()
        self._stopping = asyncio.Event()
        self._loop: asyncio.Task[None] | None = None

    def add(self, usage: Usage) -> None:
        known = self._pending.get(usage.key)
        self._pending[usage.key] = usage if known is None else known + usage

    async def flush(self) -> None:
        """Write down what has been counted. What cannot be written is kept for the next time."""
        await asyncio.shield(self._write())  # cut off in the middle, nobody would know what is written and what is not

    async def start(self) -> None:
        self._stopping.clear()
        self._loop = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Idempotent."""
        self._stopping.set()
        if self._loop is not None:
            await self._loop
            self._loop = None
        await self._flush()

    async def _run(self) -> None:
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_INTERVAL):
                    await self._stopping.wait()
            await self._flush()

    async def _write(self) -> None:
        async with self._writing:
            if not self._pending:
                return
            batch, self._pending = self._pending, {}
            try:
                await self._db.write(lambda connection: store.add(connection, batch.values()))
            except Exception:
                for usage in batch.values():
                    self.add(usage)
                raise

    async def _flush(self) -> None:
        try:
            await self.flush()
        except Exception:  # noqa: BLE001 - the edge of the loop
            _log.exception("model usage not written")
