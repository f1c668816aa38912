"""Everything that is under way through the edge: found by agent, so that it can be let go of, and looked at for time.

One timer for all, which runs only while there is something to look after: a request costs no timer of its own.
"""

import asyncio
from collections import defaultdict
from typing import Protocol

from roost.hosts.edge.dependencies import ProxyDependencies
from roost.hosts.edge.gateway_connection import GatewayConnectionPool


class LiveConnection(Protocol):
    @property
    def agent_id(self) -> str: ...
    def drop(self) -> None: ...
    def look(self, now: float) -> None: ...


class LiveConnections:
    def __init__(self, gate: ProxyDependencies) -> None:
        self.gate = gate
        self.pool = GatewayConnectionPool(gate)
        self._live: defaultdict[str, set[LiveConnection]] = defaultdict(set)
        self._timer: asyncio.TimerHandle | None = None
        gate.subscribe(self.drop)

    def enter(self, exchange: LiveConnection) -> None:
        self._live[exchange.agent_id].add(exchange)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.gate.bounds.tick, self._tick)

    def leave(self, exchange: LiveConnection) -> None:
        live = self._live[exchange.agent_id]
        live.discard(exchange)
        if not live:
            del self._live[exchange.agent_id]

    def drop(self, agent_id: str) -> None:
        """Close every connection, tunnel and stream of an agent: its credentials have changed, or it goes."""
        for exchange in tuple(self._live.get(agent_id, ())):
            exchange.drop()
        self.pool.drop(agent_id)

    def close(self) -> None:
        """Let go of everything, at the end of the server."""
        for agent_id in tuple(self._live):
            self.drop(agent_id)
        self.pool.expire(everything=True)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for live in tuple(self._live.values()):
            for exchange in tuple(live):
                exchange.look(now)
        spare = self.pool.expire()
        self._timer = loop.call_later(self.gate.bounds.tick, self._tick) if spare or self._live else None
