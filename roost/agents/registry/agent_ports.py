"""A port of this server for each of its agents, where addresses have no names (decision 0032)."""

from sqlalchemy import Connection

from roost.agents.registry import store
from roost.agents.registry.errors import NoFreePort, TooFewPorts
from roost.core import clock
from roost.core.db import Database
from roost.core.db.table_mirror import TableMirror

MIRROR = "agent_ports"


class AgentPorts:
    """The ports of the agents of one host, in memory for the edge.

    An agent keeps its port until it is deleted. A free port is used again as late as possible, because browsers may
    remember something of its last agent.
    """

    def __init__(self, db: Database, host_id: str, ports: range) -> None:
        self.ports = ports
        self._db = db
        self._host_id = host_id
        self._agents: dict[int, str] = {}
        self._mirror = TableMirror(db, MIRROR, store.list_agent_ports)
        self._mirror.subscribe(self._follow)

    async def start(self) -> None:
        """Give a port to each agent of this host that has none of the range. Raises TooFewPorts."""

        def give(connection: Connection) -> None:
            store.replace_ports(connection, self._host_id, self.ports)
            agents = [agent.id for agent in store.list_host_agents(connection, self._host_id) if not agent.deleted]
            if len(agents) > len(self.ports):
                raise TooFewPorts(
                    f"agent_ports: {len(agents)} agents need a port each, and {self.ports[0]}-{self.ports[-1]} are "
                    f"only {len(self.ports)}"
                )
            known = store.list_agent_ports(connection, None)
            for agent_id in agents:
                if agent_id not in known or known[agent_id].host_id != self._host_id:
                    self.release(connection, agent_id)
                    self.assign(connection, agent_id)

        await self._db.write(give)
        await self._mirror.start()

    async def stop(self) -> None:
        """Idempotent."""
        await self._mirror.stop()

    def find_port(self, agent_id: str) -> int | None:
        """Return the port of an agent, of another host of the deployment, too. No I/O."""
        found = self._mirror.get(agent_id)
        return None if found is None else found.port

    def find_agent(self, port: int) -> str | None:
        """Return the agent that has a port of this host. No I/O."""
        agent_id = self._agents.get(port)
        return agent_id if agent_id is not None and self._mirror.get(agent_id) == (self._host_id, port) else None

    def assign(self, connection: Connection, agent_id: str) -> None:
        """Give a new agent a port in the caller's transaction. Raises NoFreePort."""
        if store.take_port(connection, self._host_id, agent_id) is None:
            raise NoFreePort
        self._mirror.publish_change(connection, agent_id)

    def release(self, connection: Connection, agent_id: str) -> None:
        """Free the port of an agent in the caller's transaction."""
        store.free_port(connection, agent_id, clock.utc_now())
        self._mirror.publish_change(connection, agent_id)

    def _follow(self, agent_id: str) -> None:
        found = self._mirror.get(agent_id)
        if found is not None and found.host_id == self._host_id:
            self._agents[found.port] = agent_id
