"""HTTP proxy for the programs of agents: one CONNECT tunnel or one `http://` request per connection.

The socket that accepted the connection identifies the agent; nothing in the request does. The response is forwarded
byte for byte. Clients follow redirects themselves, through the proxy again, so each hop is checked. Each connection
is logged once, at its end, with the host and without path and headers.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from structlog.stdlib import BoundLogger

from roost.agents.network.egress import proxy_protocol
from roost.agents.network.egress.proxy_protocol import ConnectionIdle, HeadTooLarge, HeadTooSlow, TooManyConnections
from roost.core import clock, log
from roost.core.machine.unix_socket import Stream
from roost.core.problem import error_code
from roost.net.dialer import PublicDialer
from roost.net.errors import (
    ConnectTimeout,
    EgressProblem,
    EgressRefused,
    HostUnreachable,
    InvalidTarget,
    NameNotResolved,
)
from roost.net.host_port import HostPort

_log = log.get_logger("egress")

REFUSAL_STATUS: dict[type[EgressProblem], bytes] = {
    InvalidTarget: b"400 Bad Request",
    EgressRefused: b"403 Forbidden",
    HeadTooSlow: b"408 Request Timeout",
    TooManyConnections: b"429 Too Many Requests\r\nRetry-After: 1",
    HeadTooLarge: b"431 Request Header Fields Too Large",
    NameNotResolved: b"502 Bad Gateway",
    HostUnreachable: b"502 Bad Gateway",
    ConnectTimeout: b"504 Gateway Timeout",
    ConnectionIdle: b"504 Gateway Timeout",
}
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


@dataclass(frozen=True)
class EgressLimits:
    """Timeouts in seconds, and the number of concurrent connections of one agent.

    `idle` covers both directions together: a WebSocket with heartbeats or a slow model stays within it.
    """

    connections: int = 256
    head: float = 10.0
    idle: float = 900.0
    close: float = 2.0


@dataclass
class _ProxyConnection:
    """State of one connection, for the log."""

    agent_id: str
    started_at: float = field(default_factory=clock.monotonic_seconds)
    traffic: proxy_protocol.ByteCounts = field(default_factory=proxy_protocol.ByteCounts)
    target: HostPort | None = None
    admitted: bool = False
    answered: bool = False
    reason: str | None = None

    @property
    def decision(self) -> str:
        if self.admitted:
            return "allowed"
        return "refused" if self.reason in {"host", "port", "address"} else "failed"


class EgressProxy:
    def __init__(self, dialer: PublicDialer, *, log: BoundLogger = _log, limits: EgressLimits = EgressLimits()) -> None:
        self._dialer = dialer
        self._log = log
        self._limits = limits
        self._open: Counter[str] = Counter()

    async def serve(self, agent_id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of an agent and close it. Cancellation drops both sides at once."""
        connection = _ProxyConnection(agent_id)
        self._open[agent_id] += 1
        try:
            await self._handle(connection, (reader, writer))
            await proxy_protocol.close_gracefully(writer, self._limits.close)
        except EgressProblem as problem:
            connection.reason = problem.reason
            await self._refuse(connection, problem, (reader, writer))
        except (OSError, EOFError):
            connection.reason = "broken"
        except asyncio.CancelledError:
            connection.reason = "closed"
            raise
        finally:
            writer.transport.abort()
            self._forget(agent_id)
            self._record(connection)

    async def _handle(self, connection: _ProxyConnection, client: Stream) -> None:
        if self._open[connection.agent_id] > self._limits.connections:
            raise TooManyConnections
        request = proxy_protocol.parse_head(await proxy_protocol.read_head(client[0], self._limits.head))
        connection.target = request.target
        upstream = await self._dialer.dial(connection.agent_id, request.target)
        connection.admitted = True
        try:
            exchange = self._tunnel if request.tunnel else self._forward
            await exchange(connection, request, client, upstream)
            await proxy_protocol.close_gracefully(upstream[1], self._limits.close)
        finally:
            upstream[1].transport.abort()

    async def _tunnel(
        self, connection: _ProxyConnection, _request: proxy_protocol.ProxyRequestHead, client: Stream, upstream: Stream
    ) -> None:
        client[1].write(_ESTABLISHED)
        connection.answered = True
        await proxy_protocol.run_both(
            proxy_protocol.copy_bytes_and_end(client[0], upstream[1], connection.traffic.add_sent),
            proxy_protocol.copy_bytes_and_end(upstream[0], client[1], connection.traffic.add_received),
            connection.traffic,
            self._limits.idle,
        )

    async def _forward(
        self, connection: _ProxyConnection, request: proxy_protocol.ProxyRequestHead, client: Stream, upstream: Stream
    ) -> None:
        def count_received(count: int) -> None:
            connection.answered = True
            connection.traffic.add_received(count)

        upstream[1].write(request.onward)
        try:
            await proxy_protocol.run_both(
                _send(request, client[0], upstream[1], connection.traffic.add_sent),
                proxy_protocol.copy_bytes(upstream[0], client[1], count_received),
                connection.traffic,
                self._limits.idle,
                until_down=True,
            )
        except ConnectionError:
            if connection.answered:
                raise
        except EOFError:
            if not connection.answered:  # else the client stopped after the response's declared length
                raise
        if not connection.answered:
            raise HostUnreachable(request.target.host)

    async def _refuse(self, connection: _ProxyConnection, problem: EgressProblem, client: Stream) -> None:
        reader, writer = client
        if connection.answered or writer.is_closing():
            return
        text = f"{problem.message}\n".encode()
        status = next(status for kind, status in REFUSAL_STATUS.items() if isinstance(problem, kind))
        code = error_code(type(problem)).encode()
        fields = (
            b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nX-Error-Code: %b\r\nConnection: close"
            % (len(text), code)
        )
        writer.write(b"HTTP/1.1 %b\r\n%b\r\n\r\n%b" % (status, fields, text))
        # Connections beyond the limit must not accumulate here.
        seconds = 0.1 if isinstance(problem, TooManyConnections) else self._limits.close
        await _lingering_close(reader, writer, seconds)

    def _forget(self, agent_id: str) -> None:
        self._open[agent_id] -= 1
        if not self._open[agent_id]:
            del self._open[agent_id]

    def _record(self, connection: _ProxyConnection) -> None:
        self._log.info(
            "egress.closed",
            agent=connection.agent_id,
            host=connection.target and connection.target.host,
            port=connection.target and connection.target.port,
            decision=connection.decision,
            reason=connection.reason,
            up=connection.traffic.up,
            down=connection.traffic.down,
            seconds=round(clock.monotonic_seconds() - connection.started_at, 3),
        )


async def _send(
    request: proxy_protocol.ProxyRequestHead,
    client: asyncio.StreamReader,
    upstream: asyncio.StreamWriter,
    count: proxy_protocol.Count,
) -> None:
    """Send the request body, then wait for the client to leave: its EOF ends the exchange."""
    try:
        await proxy_protocol.pump_body(client, upstream, request.length, count)
    except ConnectionError:
        return  # the upstream may have answered before it read the whole body: the other direction decides
    if not await client.read(1):
        raise EOFError


async def _lingering_close(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """Let the client read the response: closing with unread input would reset the connection."""
    try:
        async with asyncio.timeout(seconds):
            await writer.drain()
            writer.write_eof()
            while await reader.read(1 << 16):
                pass
    except (OSError, TimeoutError):
        return
