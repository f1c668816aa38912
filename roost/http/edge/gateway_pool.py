"""The connections to agents: reused, bounded, and dropped when an agent's credentials or routes change."""

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

from roost.http.edge.dependencies import GatewayUnreachable, ProxyDependencies, TooManyStreams
from roost.http.edge.gateway_connection import GatewayConnection
from roost.http.edge.proxy_request import Upstream, UpstreamKey
from roost.http.server.write_coalescer import WriteCoalescer

if TYPE_CHECKING:
    from roost.http.edge.proxy_exchange import ProxyExchange

K = TypeVar("K")


class GatewayPool:
    """Connection pool of the edge; each agent has its own share, and each other server."""

    def __init__(self, dependencies: ProxyDependencies) -> None:
        self.dependencies = dependencies
        self.writer = WriteCoalescer()
        self._limits = dependencies.limits
        self._idle: defaultdict[UpstreamKey, list[GatewayConnection]] = defaultdict(list)
        self._users: defaultdict[str, set[GatewayConnection | ProxyExchange]] = defaultdict(set)
        self._routed: defaultdict[str, set[ProxyExchange]] = defaultdict(set)
        self._timer: asyncio.TimerHandle | None = None
        dependencies.subscribe(self.drop)
        dependencies.subscribe_routes(self._drop_outdated)

    def add_routed(self, source: str, request: "ProxyExchange") -> None:
        """Drop the request when a change of `source`, an agent with routes or a domain, concerns it."""
        self._routed[source].add(request)

    def remove_routed(self, source: str, request: "ProxyExchange") -> None:
        _discard(self._routed, source, request)

    def take_idle(self, upstream: Upstream, idle_since: float) -> GatewayConnection | None:
        """Return a connection that was used at `idle_since` or later, in the time of the event loop."""
        idle = self._idle.get(upstream.key)
        if not idle or idle[-1].idle_since < idle_since:
            return None
        return idle.pop()

    async def dial(self, upstream: Upstream, request: "ProxyExchange") -> GatewayConnection:
        """Open a connection for a request.

        Raises GatewayUnreachable, TooManyStreams, PeerFailed, and the errors of `ProxyDependencies.dial`.
        """
        agent_id, port, server = upstream.agent_id, upstream.port, upstream.server
        owner, limit = upstream.key[0], self._limits.streams if server is None else self._limits.server_streams
        if len(self._users.get(owner, ())) >= limit:
            raise TooManyStreams(retry_after=1)
        self._users[owner].add(request)
        try:
            async with asyncio.timeout(self._limits.connect):
                is_gateway = port is None and server is None
                credential = await self.dependencies.credential(agent_id) if is_gateway else None
                connection = GatewayConnection(upstream.key, credential, self._limits, self._forget, self.writer)
                if server is not None and self.dependencies.servers is not None:
                    stream = await self.dependencies.servers.dial(server)
                else:
                    stream = await self.dependencies.dial(agent_id, port)
                await connection.take_over(stream)
            self._users[owner].add(connection)
            return connection
        except TimeoutError:
            raise GatewayUnreachable(retry_after=1) from None
        finally:
            _discard(self._users, owner, request)

    def record_use(self, upstream: Upstream) -> None:
        if upstream.server is None:  # else that server does
            self.dependencies.record_use(upstream.agent_id)

    def put_back(self, connection: GatewayConnection, now: float) -> None:
        """Keep a connection for another request."""
        idle = self._idle[connection.key]
        connection.release(now)
        idle.append(connection)
        if len(idle) > self._limits.spares:
            idle.pop(0).abort()
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._limits.spare, self._expire)

    def drop(self, agent_id: str) -> None:
        """End every connection, tunnel and request of an agent: its credentials have changed, or it is deleted."""
        for user in tuple(self._users.get(agent_id, ())):
            user.drop()
        for key in [key for key in self._idle if key[0] == agent_id]:
            del self._idle[key]

    def close(self) -> None:
        """Drop everything at the end of the server."""
        for agent_id in tuple(self._users):
            self.drop(agent_id)
        if self._timer is not None:
            self._timer.cancel()

    def _drop_outdated(self, source: str) -> None:
        for routed in tuple(self._routed.get(source, ())):
            if not routed.request.is_current(self.dependencies.addresses, self.dependencies.find_route):
                routed.drop()

    def _forget(self, connection: GatewayConnection) -> None:
        _discard(self._users, connection.owner, connection)
        _discard(self._idle, connection.key, connection)

    def _expire(self) -> None:
        loop = asyncio.get_running_loop()
        oldest = loop.time() - self._limits.spare
        for key, idle in tuple(self._idle.items()):
            while idle and idle[0].idle_since <= oldest:
                idle.pop(0).abort()
            if not idle:
                del self._idle[key]
        self._timer = loop.call_later(self._limits.spare / 2, self._expire) if self._idle else None


def _discard(pool: dict[K, Any], key: K, item: object) -> None:
    items = pool.get(key)
    if items and item in items:
        items.remove(item)
        if not items:
            del pool[key]
