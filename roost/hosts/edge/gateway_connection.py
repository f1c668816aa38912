"""Connections to agents' gateways, and the requests under way on them: found, reused and bounded by agent."""

import asyncio
from collections import defaultdict
from typing import Any, Protocol, cast

from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import Stream
from roost.hosts.edge.dependencies import GatewayUnreachable, ProxyDependencies, TooManyStreams
from roost.hosts.edge.response_parser import InvalidResponse, ResponseParser, ResponseSink


class ResponseHandler(ResponseSink, Protocol):
    """Request that a connection carries."""

    agent_id: str

    def flush(self) -> None: ...
    def finish_response(self, *, reusable: bool) -> None: ...
    def open_tunnel(self, rest: bytes) -> None: ...
    def fail_response(self, *, retry: bool) -> None: ...
    def end_response(self) -> bool: ...
    def pause_request(self) -> None: ...
    def resume_request(self) -> None: ...
    def drop(self) -> None: ...
    def check_time(self, now: float) -> None: ...


class GatewayConnection(asyncio.Protocol):
    """Connection to a gateway; it carries one request at a time."""

    def __init__(
        self,
        live: "LiveConnections",
        agent_id: str,
        writer: asyncio.StreamWriter,
        credential: tuple[str, Sensitive[str]],
    ) -> None:
        self.agent_id = agent_id
        self.is_reused = self.is_full = False
        self.idle_since = 0.0
        self.transport = cast("asyncio.Transport", writer.transport)
        self._live = live
        self._writer = writer  # kept: it closes the transport when it is collected
        self._credential = credential
        self._handler: ResponseHandler | None = None
        self._parser = ResponseParser(live.gate.bounds.head)
        self._is_tunnel = False

    async def take_over(self, reader: asyncio.StreamReader) -> None:
        """Become the protocol of the stream's transport. Raises GatewayUnreachable when it ended or spoke first."""
        self.transport.set_protocol(self)
        ended = reader.at_eof()
        reader.feed_eof()
        if ended or await reader.read(1) or self.transport.is_closing():
            raise GatewayUnreachable(retry_after=1)
        self.set_reading(wanted=True)

    @property
    def credential(self) -> tuple[bytes, bytes]:
        name, value = self._credential
        return name.encode("latin-1"), value.reveal().encode("latin-1")

    def send_request(self, handler: ResponseHandler, request: bytes, *, bodiless: bool) -> None:
        """Send the head of a request; `handler` gets the response."""
        self._handler = handler
        self._parser.expect_response(handler, bodiless=bodiless)
        self.transport.write(request)

    def set_idle(self, now: float) -> None:
        self._handler, self.is_reused, self.idle_since = None, True, now
        self.set_reading(wanted=True)

    def set_reading(self, *, wanted: bool) -> None:
        if not self.transport.is_closing() and wanted != self.transport.is_reading():
            (self.transport.resume_reading if wanted else self.transport.pause_reading)()

    def drop(self) -> None:
        self._handler = None
        self.transport.abort()

    def close(self) -> None:
        """Close when all that was written is sent, within the time for it."""
        self._handler = None
        self.transport.close()
        asyncio.get_running_loop().call_later(self._live.gate.bounds.linger, self.transport.abort)

    # Called by asyncio

    def data_received(self, data: bytes) -> None:
        handler = self._handler
        if handler is None:
            self.transport.abort()
        elif self._is_tunnel:
            handler.body(data)
            handler.flush()
        else:
            self._parse(handler, data)

    def eof_received(self) -> bool:
        return self._is_tunnel and self._handler is not None and self._handler.end_response()

    def connection_lost(self, exc: Exception | None) -> None:
        self._live.forget(self)
        handler, self._handler = self._handler, None
        if handler is None:
            return
        if exc is None and self._parser.until_close and not self._parser.done:
            handler.finish_response(reusable=False)
        else:
            handler.fail_response(retry=self.is_reused)

    def pause_writing(self) -> None:
        self.is_full = True
        if self._handler is not None:
            self._handler.pause_request()

    def resume_writing(self) -> None:
        self.is_full = False
        if self._handler is not None:
            self._handler.resume_request()

    def _parse(self, handler: ResponseHandler, data: bytes) -> None:
        try:
            rest = self._parser.feed(data)
        except InvalidResponse:
            self.drop()
            handler.fail_response(retry=False)
            return
        handler.flush()
        if rest is not None:
            self._is_tunnel = True
            handler.open_tunnel(rest)
        elif self._parser.done:
            handler.finish_response(reusable=self._parser.reusable and not self.transport.is_closing())


class LiveConnections:
    """Requests under way, and the pool of connections to gateways.

    One timer checks the time of all, so a request needs none of its own. It stops when nothing is left.
    """

    def __init__(self, gate: ProxyDependencies) -> None:
        self.gate = gate
        self._requests: defaultdict[str, set[ResponseHandler]] = defaultdict(set)
        self._idle: defaultdict[str, list[GatewayConnection]] = defaultdict(list)
        self._open: defaultdict[str, set[object]] = defaultdict(set)
        self._timer: asyncio.TimerHandle | None = None
        gate.subscribe(self.drop)

    def add(self, request: ResponseHandler) -> None:
        self._requests[request.agent_id].add(request)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.gate.bounds.tick, self._tick)

    def remove(self, request: ResponseHandler) -> None:
        _discard(self._requests, request.agent_id, request)

    def drop(self, agent_id: str) -> None:
        """Close every connection, tunnel and stream of an agent: its credentials have changed, or it is deleted."""
        for request in tuple(self._requests.get(agent_id, ())):
            request.drop()
        for connection in self._idle.pop(agent_id, ()):
            connection.drop()

    def close(self) -> None:
        """Drop everything at the end of the server."""
        for agent_id in {*self._requests, *self._idle}:
            self.drop(agent_id)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def connect(self, agent_id: str, *, max_idle: float) -> GatewayConnection:
        """Return a connection that was idle for at most `max_idle` seconds, else a new one.

        Raises GatewayUnreachable, TooManyStreams, and the errors of `ProxyDependencies.dial`.
        """
        idle = self._idle.get(agent_id)
        if idle and idle[-1].idle_since >= asyncio.get_running_loop().time() - max_idle:
            connection = idle[-1]
            _discard(self._idle, agent_id, connection)
            return connection
        if len(self._open.get(agent_id, ())) >= self.gate.bounds.streams:
            raise TooManyStreams(retry_after=1)
        reservation = object()
        self._open[agent_id].add(reservation)
        try:
            async with asyncio.timeout(self.gate.bounds.connect):
                connection = await self._dial(agent_id)
            self._open[agent_id].add(connection)
            return connection
        except TimeoutError:
            raise GatewayUnreachable(retry_after=1) from None
        finally:
            _discard(self._open, agent_id, reservation)

    def reuse(self, connection: GatewayConnection) -> None:
        """Keep a connection for another request."""
        idle = self._idle[connection.agent_id]
        connection.set_idle(asyncio.get_running_loop().time())
        idle.append(connection)
        if len(idle) > self.gate.bounds.spares:
            idle.pop(0).drop()

    def forget(self, connection: GatewayConnection) -> None:
        """Remove a connection that has ended."""
        _discard(self._open, connection.agent_id, connection)
        _discard(self._idle, connection.agent_id, connection)

    async def _dial(self, agent_id: str) -> GatewayConnection:
        credential = await self.gate.credential(agent_id)
        stream: Stream = await self.gate.dial(agent_id)
        connection = GatewayConnection(self, agent_id, stream[1], credential)
        try:
            await connection.take_over(stream[0])
        except BaseException:
            connection.drop()
            raise
        return connection

    def _tick(self) -> None:
        loop = asyncio.get_running_loop()
        now = loop.time()
        for request in [request for requests in self._requests.values() for request in requests]:
            request.check_time(now)
        for connection in [connection for idle in self._idle.values() for connection in idle]:
            if connection.idle_since <= now - self.gate.bounds.spare:
                _discard(self._idle, connection.agent_id, connection)
                connection.drop()
        is_needed = self._idle or self._requests
        self._timer = loop.call_later(self.gate.bounds.tick, self._tick) if is_needed else None


def _discard(pool: dict[str, Any], agent_id: str, item: object) -> None:
    items = pool.get(agent_id)
    if items and item in items:
        items.remove(item)
        if not items:
            del pool[agent_id]
