"""The HTTP proxy that every agent's programs speak to: per connection one CONNECT tunnel or one `http://` request.

Who the agent is comes from the socket that the caller accepted on, never from what the client says. The response goes
back byte for byte. A redirect is followed by the client, through here again, so that each hop is checked. Each
connection is logged once, at its end, with the host and never with a path or a header.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field

from structlog.stdlib import BoundLogger

from roost.agents.egress import request_head, streams
from roost.agents.egress.dialer import PublicDialer
from roost.agents.egress.errors import (
    ConnectionIdle,
    ConnectTimeout,
    EgressProblem,
    EgressRefused,
    HeadTooLarge,
    HeadTooSlow,
    HostUnreachable,
    InvalidProxyRequest,
    NameNotResolved,
    TooManyConnections,
)
from roost.agents.egress.host_port import HostPort
from roost.agents.egress.policy import EgressPolicy
from roost.agents.egress.resolver import NameResolver
from roost.core import clock, log
from roost.drivers.runtime.contract import Stream

_log = log.get_logger("egress")

_STATUS: dict[type[EgressProblem], bytes] = {
    InvalidProxyRequest: b"400 Bad Request",
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
    """Seconds, and connections of one agent at a time.

    `idle` covers both directions together: a WebSocket with heartbeats or a model that thinks for minutes stays within.
    """

    connections: int = 256
    head: float = 10.0
    connect: float = 10.0
    idle: float = 900.0
    goodbye: float = 2.0


@dataclass
class _ProxyConnection:
    """One connection of one agent, for the log."""

    agent_id: str
    started_at: float = field(default_factory=clock.monotonic_seconds)
    traffic: streams.ByteCounts = field(default_factory=streams.ByteCounts)
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
    def __init__(
        self,
        *,
        policy: EgressPolicy,
        resolver: NameResolver,
        log: BoundLogger = _log,
        limits: EgressLimits = EgressLimits(),
    ) -> None:
        self._dialer = PublicDialer(policy, resolver, timeout=limits.connect)
        self._log = log
        self._limits = limits
        self._open: Counter[str] = Counter()

    async def serve(self, agent_id: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of an agent to its end and close it. Cancelled, it drops both sides at once."""
        visit = _ProxyConnection(agent_id)
        self._open[agent_id] += 1
        try:
            await self._attend(visit, (reader, writer))
            await streams.hang_up(writer, self._limits.goodbye)
        except EgressProblem as problem:
            visit.reason = problem.reason
            await self._refuse(visit, problem, (reader, writer))
        except (OSError, EOFError):
            visit.reason = "broken"
        except asyncio.CancelledError:
            visit.reason = "closed"
            raise
        finally:
            writer.transport.abort()
            self._forget(agent_id)
            self._record(visit)

    async def _attend(self, visit: _ProxyConnection, client: Stream) -> None:
        if self._open[visit.agent_id] > self._limits.connections:
            raise TooManyConnections
        request = request_head.understand(await request_head.read(client[0], self._limits.head))
        visit.target = request.target
        upstream = await self._dialer.dial(visit.agent_id, request.target)
        visit.admitted = True
        try:
            exchange = self._tunnel if request.tunnel else self._forward
            await exchange(visit, request, client, upstream)
            await streams.hang_up(upstream[1], self._limits.goodbye)
        finally:
            upstream[1].transport.abort()

    async def _tunnel(
        self, visit: _ProxyConnection, _request: request_head.ProxyRequestHead, client: Stream, upstream: Stream
    ) -> None:
        client[1].write(_ESTABLISHED)
        visit.answered = True
        await streams.both(
            streams.pump_to_end(client[0], upstream[1], visit.traffic.sent),
            streams.pump_to_end(upstream[0], client[1], visit.traffic.got),
            visit.traffic,
            self._limits.idle,
        )

    async def _forward(
        self, visit: _ProxyConnection, request: request_head.ProxyRequestHead, client: Stream, upstream: Stream
    ) -> None:
        def got(count: int) -> None:
            visit.answered = True
            visit.traffic.got(count)

        upstream[1].write(request.onward)
        try:
            await streams.both(
                _send(request, client[0], upstream[1], visit.traffic.sent),
                streams.pump(upstream[0], client[1], got),
                visit.traffic,
                self._limits.idle,
                until_down=True,
            )
        except ConnectionError:
            if visit.answered:
                raise
        except EOFError:
            if not visit.answered:  # else the client read the response's length and did not wait for the upstream's end
                raise
        if not visit.answered:
            raise HostUnreachable(request.target.host)

    async def _refuse(self, visit: _ProxyConnection, problem: EgressProblem, client: Stream) -> None:
        reader, writer = client
        if visit.answered or writer.is_closing():
            return
        text = f"{problem.message}\n".encode()
        status = next(status for kind, status in _STATUS.items() if isinstance(problem, kind))
        fields = b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\nConnection: close" % len(text)
        writer.write(b"HTTP/1.1 %b\r\n%b\r\n\r\n%b" % (status, fields, text))
        # Those beyond the limit must not pile up here.
        patience = 0.1 if isinstance(problem, TooManyConnections) else self._limits.goodbye
        await _let_read(reader, writer, patience)

    def _forget(self, agent_id: str) -> None:
        self._open[agent_id] -= 1
        if not self._open[agent_id]:
            del self._open[agent_id]

    def _record(self, visit: _ProxyConnection) -> None:
        self._log.info(
            "egress",
            agent=visit.agent_id,
            host=visit.target and visit.target.host,
            port=visit.target and visit.target.port,
            decision=visit.decision,
            reason=visit.reason,
            up=visit.traffic.up,
            down=visit.traffic.down,
            seconds=round(clock.monotonic_seconds() - visit.started_at, 3),
        )


async def _send(
    request: request_head.ProxyRequestHead,
    client: asyncio.StreamReader,
    upstream: asyncio.StreamWriter,
    count: streams.Count,
) -> None:
    """The request's body, and then an eye on the client: when it leaves, nobody waits for the response any more."""
    try:
        await streams.pump_body(client, upstream, request.length, count)
    except ConnectionError:
        return  # the upstream may have answered before it read the whole body: the other direction tells
    if not await client.read(1):
        raise EOFError


async def _let_read(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, patience: float) -> None:
    """Close in a way that lets the client read the answer: closing with unread input would reset the connection."""
    try:
        async with asyncio.timeout(patience):
            await writer.drain()
            writer.write_eof()
            while await reader.read(1 << 16):
                pass
    except (OSError, TimeoutError):
        return
