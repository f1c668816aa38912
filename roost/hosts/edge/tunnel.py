"""A client and an agent's gateway after a switch of protocols: bytes, both ways, until both have ended.

It is the protocol of the gateway's connection, and the `Turn` that the client's connection stays in.
"""

import asyncio

from roost.hosts.edge.gateway_connection import GatewayConnection
from roost.hosts.edge.guarded_http import GuardedHttpProtocol
from roost.hosts.edge.live_connections import LiveConnections
from roost.hosts.edge.queued_request import QueuedRequest
from roost.hosts.edge.request_metrics import RequestMetrics


class WebSocketTunnel(QueuedRequest, asyncio.Protocol):
    def __init__(
        self, line: GuardedHttpProtocol, traffic: LiveConnections, upstream: GatewayConnection, account: RequestMetrics
    ) -> None:
        super().__init__(keep_alive=False)
        self.agent_id = upstream.agent_id
        self._line, self._traffic, self._upstream, self._account = line, traffic, upstream, account
        self._client_ended = self._gateway_ended = False
        self._deadline = 0.0

    def begin(self, *, early: bytes, rest: bytes) -> None:
        """Take over both sides. early: what the client sent already; rest: what the gateway did."""
        self._traffic.enter(self)
        self._upstream.transport.set_protocol(self)
        self._line.switch_to(self)
        self.upload(early)
        self.data_received(rest)

    # The client's side

    def upload(self, data: bytes) -> None:
        self._account.received += len(data)
        self._upstream.transport.write(data)
        self._touch()

    def half_closed(self) -> bool:
        self._client_ended = True
        return not self._gateway_ended and _end(self._upstream.transport)

    def lost(self) -> None:
        if not self.response_complete:
            self._upstream.part()
            self._leave()

    def client_full(self) -> None:
        self._upstream.read(wanted=False)

    def client_ready(self) -> None:
        self._upstream.read(wanted=True)

    # The gateway's side: what asyncio calls

    def data_received(self, data: bytes) -> None:
        self._account.sent += len(data)
        self._line.transport.write(data)
        self._touch()

    def eof_received(self) -> bool:
        self._gateway_ended = True
        return not self._client_ended and _end(self._line.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._traffic.pool.lost(self._upstream)
        if not self.response_complete:
            self._leave()
            self._line.hang_up()

    def pause_writing(self) -> None:
        self._line.flow.pause_reading()

    def resume_writing(self) -> None:
        self._line.flow.resume_reading()

    # Time, and letting go

    def drop(self) -> None:
        self._line.transport.abort()
        self._upstream.drop()
        if not self.response_complete:
            self._leave()

    def look(self, now: float) -> None:
        if now > self._deadline:
            self.drop()

    def _touch(self) -> None:
        self._deadline = self._line.loop.time() + self._traffic.gate.bounds.idle

    def _leave(self) -> None:
        self.response_complete = True
        self._traffic.leave(self)
        self._account.close(self._line.loop.time())


def _end(transport: asyncio.WriteTransport) -> bool:
    """Tell one side that the other sends no more. False when only closing can say that."""
    if transport.is_closing() or not transport.can_write_eof():
        return False
    transport.write_eof()
    return True
