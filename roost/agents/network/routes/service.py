"""List and replace the path routes of an agent."""

from collections.abc import Sequence
from contextlib import suppress
from functools import partial

from sqlalchemy import Connection

from roost.agents.network.routes import store
from roost.agents.network.routes.model import PathRoute, check_port, check_routes, find_route
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent
from roost.core import log
from roost.core.db import Database, DataChange, record_change
from roost.core.db.table_mirror import TableMirror
from roost.drivers.runtime.contract import WARDEN_PORTS

MIRROR = "routes"
_log = log.get_logger("routes")


class RouteService:
    """Path routes of agents, all of them in memory for the edge."""

    def __init__(self, db: Database, runtimes: AgentRuntimes) -> None:
        self._db = db
        self._agents = runtimes.agents
        self._runtimes = runtimes
        self.mirror = TableMirror(db, MIRROR, store.list_routes)

    def find(self, agent_id: str, path: bytes) -> PathRoute | None:
        """Return the route of a path on an agent's address, None for the gateway. No I/O. Raises AmbiguousPath."""
        routes = self.mirror.get(agent_id)
        return None if routes is None else find_route(routes, path)

    async def list(self, agent_id: str) -> Sequence[PathRoute]:
        """List the agent's routes, longest prefix first. Raises AgentNotFound."""
        await self._agents.get(agent_id)
        return (await self._db.read(lambda connection: store.list_routes(connection, agent_id))).get(agent_id, ())

    async def replace(self, agent_id: str, routes: Sequence[PathRoute]) -> Sequence[PathRoute]:
        """Replace all routes of the agent at once, and return them. Raises InvalidRoutes, AgentNotFound."""

        def replace(connection: Connection) -> Sequence[PathRoute]:
            return self.replace_in_transaction(connection, self._agents.lock(connection, agent_id), routes)

        replaced = await self._db.write(replace)
        await self.mirror.refresh(agent_id)
        return replaced

    def replace_in_transaction(
        self, connection: Connection, agent: Agent, routes: Sequence[PathRoute]
    ) -> Sequence[PathRoute]:
        """Replace the routes in the caller's transaction. Raises InvalidRoutes."""
        checked = check_routes(routes)
        for route in checked:
            check_port(route.port, self._runtimes.get_gateway_port(agent), f"mappings.{routes.index(route)}.port")
        self._store(connection, agent.id, checked)
        return checked

    def copy(self, connection: Connection, origin_id: str, agent: Agent) -> None:
        """Give a new agent the routes of another one, in the caller's transaction."""
        routes = store.list_routes(connection, origin_id).get(origin_id, ())
        closed = {self._runtimes.get_gateway_port(agent), *WARDEN_PORTS}
        self._store(connection, agent.id, [route for route in routes if route.port not in closed])

    async def remove_closed(self) -> None:
        """Remove routes to ports of the warden, which earlier versions stored, and tell the owners by events."""
        for agent_id, routes in (await self._db.read(lambda connection: store.list_routes(connection, None))).items():
            if any(route.port in WARDEN_PORTS for route in routes):
                with suppress(AgentNotFound):
                    await self._db.write(partial(self._remove_closed, agent_id))

    def remove_all(self, connection: Connection, agent_id: str) -> None:
        """Remove the routes in the caller's transaction."""
        self._store(connection, agent_id, ())

    def _remove_closed(self, agent_id: str, connection: Connection) -> None:
        agent = self._agents.lock(connection, agent_id)
        routes = store.list_routes(connection, agent_id).get(agent_id, ())
        closed = [f"{route.prefix or '/'} to port {route.port}" for route in routes if route.port in WARDEN_PORTS]
        self._store(connection, agent_id, [route for route in routes if route.port not in WARDEN_PORTS])
        data = {"name": agent.profile.name, "action": "routes_removed", "routes": ", ".join(closed)}
        record_change(connection, DataChange("agent", "changed", agent_id, agent.tenant_id, agent_id, data))
        _log.warning("routes.removed", agent=agent_id, routes=closed)

    def _store(self, connection: Connection, agent_id: str, routes: Sequence[PathRoute]) -> None:
        store.replace_routes(connection, agent_id, routes)
        self.mirror.publish_change(connection, agent_id)
