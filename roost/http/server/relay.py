"""The relays through which an agent's container reaches the server: "api" (the ASGI app) and "proxy" (egress).

The relay is the identity. Each agent has its own, and nothing that it sends can change that: the app finds the id in
`scope["state"]["relay_agent"]`, where only the server writes. The app decides what an agent may do; this module only
rejects requests that would cost unbounded memory.
"""

import asyncio
import contextvars
from collections.abc import Callable, Collection
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

from starlette.types import ASGIApp
from uvicorn import Config
from uvicorn.server import ServerState

from roost.agents.network.egress.proxy import EgressProxy
from roost.drivers.runtime.contract import RelayListener, Runtime
from roost.http.server.asgi_exchange import AsgiExchange
from roost.http.server.http_connection import HttpConnection
from roost.http.server.request_head import ConnectionLimits, RequestHead

_Serve = Callable[["_AgentRelay", str, asyncio.StreamReader, asyncio.StreamWriter], None]
_MAX_CONNECTIONS = 256  # of one agent to the app; the proxy has its own limit


class RelayServer:
    """The relays of all agents. A container keeps running while the server is away; `open` replaces its relays."""

    def __init__(self, runtime: Runtime, app: ASGIApp, egress: EgressProxy) -> None:
        self._runtime = runtime
        self._egress = egress
        self._config = Config(
            app,
            http=_RelayProtocol,
            ws="none",
            interface="asgi3",
            lifespan="off",
            log_config=None,
            proxy_headers=False,
        )
        self._config.load()
        self._relays: dict[str, _AgentRelay] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def open(self, agent_id: str) -> None:
        """Listen for that agent. Idempotent. Raises RuntimeFailed, and then listens on nothing."""
        async with self._turns.setdefault(agent_id, asyncio.Lock()):
            if agent_id not in self._relays:
                # Later connections do not belong to the opener's request, in logs for instance.
                empty = contextvars.Context()
                await asyncio.create_task(self._open(agent_id), context=empty)

    async def close(self, agent_id: str) -> None:
        """Stop listening and end every live connection of that agent. Idempotent."""
        async with self._turns.setdefault(agent_id, asyncio.Lock()):
            if (relay := self._relays.pop(agent_id, None)) is not None:
                await relay.close()

    def list_open(self) -> Collection[str]:
        """Return the agents whose relays are open."""
        return list(self._relays)

    def drain_connections(self) -> bool:
        """Let each connection to the app end with its current request; return whether one has not ended yet."""
        connections = [one for relay in self._relays.values() for one in relay.connections]
        for connection in connections:
            connection.shutdown()
        return bool(connections)

    async def close_all(self) -> None:
        for agent_id in list(self._relays):
            await self.close(agent_id)

    async def _open(self, agent_id: str) -> None:
        relay = _AgentRelay()
        try:
            relays = (("api", self._serve_api), ("proxy", self._serve_proxy))
            # At once: what one of them connects makes the warden use the other, too.
            await asyncio.gather(*(self._listen(relay, agent_id, name, serve) for name, serve in relays))
        except BaseException:
            await relay.close()
            raise
        self._relays[agent_id] = relay  # here, so that a caller who is cancelled at this moment does not lose it

    async def _listen(self, relay: "_AgentRelay", agent_id: str, name: str, serve: _Serve) -> None:
        listener = await self._runtime.listen(agent_id, name, partial(serve, relay, agent_id))
        relay.listeners.append(listener)
        if relay.closed:  # the other one failed
            listener.close()

    def _serve_api(
        self, relay: "_AgentRelay", agent_id: str, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        protocol = _RelayProtocol(self._config, relay, {"relay_agent": agent_id}, writer)
        writer.transport.set_protocol(protocol)  # nothing has been read yet
        protocol.connection_made(writer.transport)  # pyright: ignore[reportArgumentType] - a transport of a stream

    def _serve_proxy(
        self, relay: "_AgentRelay", agent_id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if relay.closed:
            writer.transport.abort()
            return
        task = asyncio.create_task(self._egress.serve(agent_id, reader, writer))
        relay.tunnels.add(task)
        task.add_done_callback(relay.tunnels.discard)


class _AgentRelay(ServerState):
    """Open sockets, connections and tunnels of one agent."""

    def __init__(self) -> None:
        super().__init__()
        self.listeners: list[RelayListener] = []
        self.tunnels: set[asyncio.Task[None]] = set()
        self.closed = False  # for a connection that was just accepted

    async def close(self) -> None:
        self.closed = True
        for listener in self.listeners:
            listener.close()
        for connection in list(self.connections):
            connection.transport.abort()
        for task in self.tunnels:
            task.cancel()
        await asyncio.gather(*self.tunnels, return_exceptions=True)


class _RelayProtocol(HttpConnection):
    """HTTP of one agent: no WebSockets, and a bounded number of connections."""

    limits = ConnectionLimits(first_head=75.0, taking=600.0)  # engines keep spare connections, and read streams slowly

    def __init__(self, config: Config, relay: _AgentRelay, state: dict[str, Any], writer: asyncio.StreamWriter) -> None:
        super().__init__(config, relay, state)
        self._relay = relay
        self._writer = writer  # a writer that is collected closes its transport

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride] - as in uvicorn
        super().connection_made(transport)
        self.server = None  # uvicorn would show the app, and so perhaps the agent, a path of the host
        if self._relay.closed or len(self.server_state.connections) > _MAX_CONNECTIONS:
            transport.abort()

    def create_exchange(self, head: RequestHead) -> AsgiExchange:
        return AsgiExchange(self, head)
