"""The agents of one host, of all tenants."""

from collections.abc import Collection, Sequence

from sqlalchemy import Connection

from roost.agents.registry import store
from roost.agents.registry.model import SERVER_REMOVED, TRANSITIONS, Agent, AgentState
from roost.agents.registry.repository import record_agent_changes
from roost.core import clock
from roost.core.db import Database


class HostAgents:
    def __init__(self, db: Database, host_id: str) -> None:
        self._db = db
        self._host_id = host_id

    async def list(self) -> Sequence[Agent]:
        """List the agents of this host, including those that are being deleted."""
        return await self._db.read(lambda connection: store.list_host_agents(connection, self._host_id))

    def set_states(self, connection: Connection, agent_ids: Collection[str], to: AgentState) -> None:
        """Set the state of those agents for which the transition is allowed, without a reason."""
        sources = [state for state, targets in TRANSITIONS.items() if to in targets]
        record_agent_changes(connection, store.set_states(connection, agent_ids, sources, to, clock.utc_now()))

    async def adopt_unassigned(self, stored: Collection[str] | None) -> None:
        """Assign agents of no host to this one: those in `stored`, or all."""

        def adopt(connection: Connection) -> None:
            for agent in store.list_host_agents(connection, None):
                if stored is None or agent.id in stored:
                    store.set_host(connection, agent.id, self._host_id)
                    record_agent_changes(connection, [agent.id])

        await self._db.write(adopt)


def abandon_host(connection: Connection, host_id: str) -> int:
    """Leave the agents of a removed host without one, and return their number; purge those marked deleted."""
    store.replace_ports(connection, host_id, ())
    agents = store.list_host_agents(connection, host_id)
    for agent in agents:
        if agent.deleted:
            store.delete_agent(connection, agent.id)
        else:
            store.set_host(connection, agent.id, None)
            store.set_state(connection, agent.id, AgentState.NOT_RUNNING, SERVER_REMOVED, clock.utc_now())
            record_agent_changes(connection, [agent.id])
    return len(agents)
