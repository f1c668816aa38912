"""Connections to agents' gateways: opened through the gate, kept for another request, bounded for each agent."""

import asyncio
from collections import Counter, defaultdict
from typing import Any, Protocol, cast

from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import Stream
from roost.hosts.edge.dependencies import GatewayUnreachable, ProxyDependencies, TooManyStreams
from roost.hosts.edge.response_parser import InvalidResponse, ResponseParser, ResponseSink


class ResponseHandler(ResponseSink, Protocol):
    """What an exchange is to its connection."""

    def flush(self) -> None: ...
    def answered(self, *, reusable: bool) -> None: ...
    def switched(self, rest: bytes) -> None: ...
    def gateway_failed(self, *, bad: bool) -> None: ...
    def gateway_full(self) -> None: ...
    def gateway_ready(self) -> None: ...


class GatewayConnection(asyncio.Protocol):
    """One connection to a gateway; carries one exchange at a time."""

    def __init__(self, pool: "GatewayConnectionPool", agent_id: str, writer: asyncio.StreamWriter) -> None:
        self.agent_id = agent_id
        self.reused = False
        self.idle_since = 0.0
        self.is_full = False
        self._pool = pool
        self._writer = writer  # kept: it closes the transport when it goes
        self.transport = cast("asyncio.Transport", writer.transport)  # a stream is read, too
        self._asker: ResponseHandler | None = None
        self._answers = ResponseParser(pool.gate.bounds.head)
        self._credential = ("", Sensitive(""))

    async def take_over(self, stream: Stream, credential: tuple[str, Sensitive[str]]) -> None:
        """Become the protocol of the stream's transport. Raises Unreachable when it ended, or spoke unasked."""
        reader, _ = stream
        self._credential = credential
        self.transport.set_protocol(self)
        ended = reader.at_eof()
        reader.feed_eof()
        if ended or await reader.read(1) or self.transport.is_closing():
            raise GatewayUnreachable(retry_after=1)
        self.read(wanted=True)

    @property
    def credential(self) -> tuple[bytes, bytes]:
        name, value = self._credential
        return name.encode("latin-1"), value.reveal().encode("latin-1")

    def ask(self, asker: ResponseHandler, request: bytes, *, bodiless: bool) -> None:
        """Send the head of a request; from now on `asker` gets what comes."""
        self._asker = asker
        self._answers.expect(asker, bodiless=bodiless)
        self.transport.write(request)

    def rest(self, now: float) -> None:
        """Between two requests."""
        self._asker = None
        self.reused = True
        self.idle_since = now
        self.read(wanted=True)

    def read(self, *, wanted: bool) -> None:
        transport = self.transport
        if transport.is_closing() or wanted == transport.is_reading():
            return
        if wanted:
            transport.resume_reading()
        else:
            transport.pause_reading()

    def drop(self) -> None:
        """End at once."""
        self._asker = None
        self.transport.abort()

    def part(self) -> None:
        """End when what was written is out, within the time for it."""
        self._asker = None
        self.transport.close()
        asyncio.get_running_loop().call_later(self._pool.gate.bounds.linger, self.transport.abort)

    # What asyncio calls

    def data_received(self, data: bytes) -> None:
        asker = self._asker
        if asker is None:
            self.transport.abort()
        else:
            self._read(asker, data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pool.lost(self)
        asker, self._asker = self._asker, None
        if asker is None:
            return
        if exc is None and self._answers.until_close and not self._answers.done:
            asker.answered(reusable=False)
        else:
            asker.gateway_failed(bad=False)

    def pause_writing(self) -> None:
        self.is_full = True
        if self._asker is not None:
            self._asker.gateway_full()

    def resume_writing(self) -> None:
        self.is_full = False
        if self._asker is not None:
            self._asker.gateway_ready()

    def _read(self, asker: ResponseHandler, data: bytes) -> None:
        try:
            rest = self._answers.feed(data)
        except InvalidResponse:
            self.drop()
            asker.gateway_failed(bad=True)
            return
        asker.flush()
        if rest is not None:
            asker.switched(rest)
        elif self._answers.done:
            asker.answered(reusable=self._answers.reusable and not self.transport.is_closing())


class GatewayConnectionPool:
    """The connections to all gateways."""

    def __init__(self, gate: ProxyDependencies) -> None:
        self.gate = gate
        self._spare: defaultdict[str, list[GatewayConnection]] = defaultdict(list)
        self._open: defaultdict[str, set[GatewayConnection]] = defaultdict(set)
        self._opening: Counter[str] = Counter()

    async def take(self, agent_id: str, *, oldest: float) -> GatewayConnection:
        """A connection: one that rested at most `oldest` seconds, else a new one.

        Raises Unreachable, TooManyStreams, and what the gate raises.
        """
        if (spare := self._spare.get(agent_id)) and spare[-1].idle_since >= _now() - oldest:
            upstream = spare.pop()
            if not spare:
                del self._spare[agent_id]
            return upstream
        if len(self._open.get(agent_id, ())) + self._opening[agent_id] >= self.gate.bounds.streams:
            raise TooManyStreams(retry_after=1)
        self._opening[agent_id] += 1
        try:
            async with asyncio.timeout(self.gate.bounds.connect):
                return await self._connect(agent_id)
        except TimeoutError:
            raise GatewayUnreachable(retry_after=1) from None
        finally:
            self._opening[agent_id] -= 1
            if not self._opening[agent_id]:
                del self._opening[agent_id]

    def give_back(self, upstream: GatewayConnection) -> None:
        spare = self._spare[upstream.agent_id]
        upstream.rest(_now())
        spare.append(upstream)
        if len(spare) > self.gate.bounds.spares:
            spare.pop(0).drop()

    def lost(self, upstream: GatewayConnection) -> None:
        """A connection has ended."""
        _remove(self._open, upstream)
        _remove(self._spare, upstream)

    def drop(self, agent_id: str) -> None:
        """End the unused connections to one agent."""
        for upstream in self._spare.pop(agent_id, ()):
            upstream.drop()

    def expire(self, *, everything: bool = False) -> bool:
        """End what has been unused for too long. Returns whether anything is left to look after."""
        oldest = _now() - self.gate.bounds.spare
        for agent_id, spare in list(self._spare.items()):
            kept = [upstream for upstream in spare if upstream.idle_since > oldest and not everything]
            for upstream in spare:
                if upstream not in kept:
                    upstream.drop()
            if kept:
                self._spare[agent_id] = kept
            else:
                del self._spare[agent_id]
        return bool(self._spare)

    async def _connect(self, agent_id: str) -> GatewayConnection:
        credential = await self.gate.credential(agent_id)
        stream = await self.gate.dial(agent_id)
        upstream = GatewayConnection(self, agent_id, stream[1])
        try:
            await upstream.take_over(stream, credential)
        except BaseException:
            upstream.drop()
            raise
        self._open[agent_id].add(upstream)
        return upstream


def _remove(shelf: dict[str, Any], upstream: GatewayConnection) -> None:
    shelved = shelf.get(upstream.agent_id)
    if shelved and upstream in shelved:
        shelved.remove(upstream)
        if not shelved:
            del shelf[upstream.agent_id]


def _now() -> float:
    return asyncio.get_running_loop().time()
