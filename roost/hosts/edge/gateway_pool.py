"""The connections to agents' gateways: reused, bounded, and dropped when an agent's credentials change."""

import asyncio
from collections import defaultdict
from typing import Any, Protocol

from roost.hosts.edge.dependencies import GatewayUnreachable, ProxyDependencies, TooManyStreams
from roost.hosts.edge.gateway_connection import GatewayConnection


class _User(Protocol):
    """Connection, or request that waits for one."""

    def drop(self) -> None: ...


class GatewayPool:
    """Connection pool of the edge; each agent has its own share."""

    def __init__(self, dependencies: ProxyDependencies) -> None:
        self.dependencies = dependencies
        self._limits = dependencies.limits
        self._idle: defaultdict[str, list[GatewayConnection]] = defaultdict(list)
        self._users: defaultdict[str, set[_User]] = defaultdict(set)
        self._timer: asyncio.TimerHandle | None = None
        dependencies.subscribe(self.drop)

    def take_idle(self, agent_id: str, max_idle: float) -> GatewayConnection | None:
        """Return a connection that was idle for at most `max_idle` seconds."""
        idle = self._idle.get(agent_id)
        if not idle or idle[-1].idle_since < asyncio.get_running_loop().time() - max_idle:
            return None
        return idle.pop()

    async def dial(self, agent_id: str, request: _User) -> GatewayConnection:
        """Open a connection for a request.

        Raises GatewayUnreachable, TooManyStreams, and the errors of `ProxyDependencies.dial`.
        """
        if len(self._users.get(agent_id, ())) >= self._limits.streams:
            raise TooManyStreams(retry_after=1)
        self._users[agent_id].add(request)
        try:
            async with asyncio.timeout(self._limits.connect):
                credential = await self.dependencies.credential(agent_id)
                connection = GatewayConnection(agent_id, credential, self._limits, self._forget)
                await connection.take_over(await self.dependencies.dial(agent_id))
            self._users[agent_id].add(connection)
            return connection
        except TimeoutError:
            raise GatewayUnreachable(retry_after=1) from None
        finally:
            _discard(self._users, agent_id, request)

    def put_back(self, connection: GatewayConnection) -> None:
        """Keep a connection for another request."""
        loop, idle = asyncio.get_running_loop(), self._idle[connection.agent_id]
        connection.release(loop.time())
        idle.append(connection)
        if len(idle) > self._limits.spares:
            idle.pop(0).abort()
        if self._timer is None:
            self._timer = loop.call_later(self._limits.spare, self._expire)

    def drop(self, agent_id: str) -> None:
        """End every connection, tunnel and request of an agent: its credentials have changed, or it is deleted."""
        for user in tuple(self._users.get(agent_id, ())):
            user.drop()
        self._idle.pop(agent_id, None)

    def close(self) -> None:
        """Drop everything at the end of the server."""
        for agent_id in tuple(self._users):
            self.drop(agent_id)
        if self._timer is not None:
            self._timer.cancel()

    def _forget(self, connection: GatewayConnection) -> None:
        _discard(self._users, connection.agent_id, connection)
        _discard(self._idle, connection.agent_id, connection)

    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        oldest = loop.time() - self._limits.spare
        for agent_id, idle in tuple(self._idle.items()):
            while idle and idle[0].idle_since <= oldest:
                idle.pop(0).abort()
            if not idle:
                del self._idle[agent_id]
        self._timer = loop.call_later(self._limits.spare / 2, self._expire) if self._idle else None


def _discard(pool: dict[str, Any], agent_id: str, item: object) -> None:
    items = pool.get(agent_id)
    if items and item in items:
        items.remove(item)
        if not items:
            del pool[agent_id]
