"""When each agent was last used: in memory, and written once a minute, so that no request waits for the disk.

A use is a request or message at the agent's own address, a chat, a command, a terminal's input, a task that is run, or
a request of the agent to a model, as for a task that its schedule starts or a message of a channel.
"""

from collections.abc import Mapping
from datetime import datetime

from roost.agents.registry import store
from roost.core import clock
from roost.core.db import Database
from roost.core.periodic import PeriodicFlusher

_INTERVAL = 60.0


class LastUses(PeriodicFlusher):
    """Last uses of agents. Those of other servers are known up to a minute later."""

    def __init__(self, db: Database) -> None:
        super().__init__("last uses of agents", _INTERVAL)
        self._db = db
        self._pending: dict[str, datetime] = {}

    def record(self, agent_id: str) -> None:
        """Record that an agent is used now. No I/O."""
        self._pending[agent_id] = clock.utc_now()

    async def list(self, tenant_id: str) -> Mapping[str, datetime]:
        """Return the last use of each of the tenant's agents that has been used."""
        stored = await self._db.read(lambda connection: store.list_last_uses(connection, tenant_id))
        found = {agent_id: _latest(at, self._pending.get(agent_id)) for agent_id, at in stored.items()}
        return {agent_id: at for agent_id, at in found.items() if at is not None}

    async def get(self, agent_id: str) -> datetime | None:
        """Return the last use of an agent, None if it has not been used."""
        stored = await self._db.read(lambda connection: store.get_last_use(connection, agent_id))
        return _latest(stored, self._pending.get(agent_id))

    async def _write(self) -> None:
        if not self._pending:
            return
        batch = dict(self._pending)
        await self._db.write(lambda connection: store.set_last_uses(connection, batch))
        self._pending = {agent_id: at for agent_id, at in self._pending.items() if batch.get(agent_id) != at}


def _latest(stored: datetime | None, pending: datetime | None) -> datetime | None:
    return stored if pending is None else max(stored or pending, pending)
