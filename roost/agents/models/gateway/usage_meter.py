"""In-memory counters of model usage, flushed to the database every second."""

from roost.agents.models.gateway import store
from roost.agents.models.gateway.model import ModelUsage
from roost.core.db import Database
from roost.core.periodic import PeriodicFlusher

_INTERVAL = 1.0


class UsageMeter(PeriodicFlusher):
    def __init__(self, db: Database) -> None:
        super().__init__("model usage", _INTERVAL)
        self._db = db
        self._pending: dict[tuple[str, ...], ModelUsage] = {}

    def add(self, usage: ModelUsage) -> None:
        known = self._pending.get(usage.key)
        self._pending[usage.key] = usage if known is None else known + usage

    async def _write(self) -> None:
        if not self._pending:
            return
        batch, self._pending = self._pending, {}
        try:
            await self._db.write(lambda connection: store.add_usage(connection, batch.values()))
        except Exception:
            for usage in batch.values():
                self.add(usage)
            raise
