"""The server's HTTP/1.1 protocol, made strict: uvicorn's own, with bounds on heads, waiting and pipelining.

It refuses heads that two readers could understand differently, answers in turn (a refusal too), and never lets a
caller make it keep more than a few reads of input. What is served is decided by a subclass (`_turn_for`); by default
everything goes to the ASGI application. What it touches of uvicorn is private there: `tests/hosts/edge` covers it.
"""

import asyncio
import sys
from http import HTTPStatus
from typing import Any, ClassVar, cast

import httptools
from uvicorn._types import ASGI3Application
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from roost.core import ids, log
from roost.hosts.edge import response_head
from roost.hosts.edge.dependencies import ProxyLimits
from roost.hosts.edge.large_reads import WORTH, LargeReadProtocol
from roost.hosts.edge.queued_request import QueuedRequest
from roost.hosts.edge.request_head import InvalidRequestHead, RequestHead, inspect
from roost.hosts.edge.write_coalescer import WriteCoalescer

_log = log.get_logger(__name__)


class GuardedHttpProtocol(HttpToolsProtocol):
    bounds: ClassVar[ProxyLimits] = ProxyLimits()
    url: bytes

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.access_log = False  # uvicorn's line holds the query, and so tokens
        self.timeout_keep_alive = self.bounds.keep_alive
        self._serving: RequestResponseCycle | QueuedRequest | None = None
        self._together: WriteCoalescer | None = None  # of the request that the application answers
        self._turn: QueuedRequest | None = None  # of the request being read
        self._switched: QueuedRequest | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._taking: asyncio.TimerHandle | None = None
        self._deaf = False  # nothing more is understood on this connection
        self._in_head = False
        self._in_body = False
        self._is_told = False  # how long the present body is; chunks cost by their number, in large reads as well
        self._is_wide = False  # a large body comes
        self._plain_upgrade = False  # an upgrade that is not offered: the request counts without it
        self._moved = False  # the present read brought the parser forward
        self._stalled = 0  # bytes since it last did
        self._head_size = 0
        self._leftover = 0
        self._unsent = sys.maxsize

    # What asyncio calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # as uvicorn has it
        super().connection_made(transport)
        self._expect(self.bounds.first_head)

    def data_received(self, data: bytes | memoryview) -> None:
        if self._switched is not None and not self._deaf:
            self._switched.upload(bytes(data))
            return
        rest: bytes | memoryview | None = data
        while rest and not self._deaf:
            self._unset_keepalive_if_required()
            rest = self._feed(rest)
        self._keep_time()
        if len(data) >= WORTH and self._in_body and self._is_told and self._turn is None:
            self._read_wide(True)

    def eof_received(self) -> bool | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # uvicorn narrows it
        serving = self._serving
        if isinstance(serving, QueuedRequest) and not self._deaf and not self.pipeline and self.scheme == "http":
            return serving.half_closed()
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect(None)
        self._expect_taking(None)
        self._unset_keepalive_if_required()
        self.pipeline.clear()
        serving = self._serving
        if isinstance(serving, QueuedRequest):
            serving.lost()
        elif serving is not None:
            serving.disconnected = True
            serving.message_event.set()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if isinstance(self._serving, QueuedRequest):
            self._serving.client_full()
        else:
            self._expect_taking(self.bounds.taking)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._expect_taking(None)
        if isinstance(self._serving, QueuedRequest):
            self._serving.client_ready()

    # What uvicorn calls

    def shutdown(self) -> None:
        if self._switched is not None:
            self.transport.close()
        else:
            super().shutdown()

    def on_response_complete(self) -> None:
        if self._together is not None:
            self._together.flush()
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()  # one read of requests is enough to keep

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._serving = cycle
        if isinstance(cycle, QueuedRequest):
            self._together = None
            cycle.start()
        else:
            self._together = WriteCoalescer(self.transport, self.loop)
            cycle.transport = cast("asyncio.Transport", self._together)
            super()._start_asgi_task(cycle, app)

    # What the parser calls

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._head_size, self._leftover = True, 0, 0

    def on_url(self, url: bytes) -> None:
        self._head_size += len(url)
        self.url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # what comes later is a trailer, which nobody reads
            self._head_size += len(name) + len(value) + 4
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._in_head, self._moved = False, True
        if self._deaf:
            return
        try:
            self._dispatch()
        except InvalidRequestHead as refused:
            self._refuse(refused.status, refused.message)

    def on_body(self, body: bytes) -> None:
        self._moved = True
        if self._deaf:
            return
        if self.cycle.response_complete:
            self._leftover += len(body)
            if self._leftover > self.bounds.leftover:
                self.transport.close()
        elif self._turn is not None:
            self._turn.upload(body)
        elif kept := cast("bytes | bytearray", self.cycle.body):
            if isinstance(kept, bytes):  # else each of many small chunks would copy all before it
                self.cycle.body = bytearray(kept)
            super().on_body(body)
        else:
            self.cycle.body = cast(
                "bytearray", body
            )  # as it is: uvicorn copies it here, and again when it is asked for
            super().on_body(b"")

    def on_message_complete(self) -> None:
        self._in_body = False
        self._read_wide(False)
        if self._deaf or self._plain_upgrade:
            return
        if self._turn is not None:
            self._turn.uploaded()
        else:
            super().on_message_complete()

    # Ours

    def _turn_for(self, facts: RequestHead) -> QueuedRequest | None:
        """The turn that answers this request; None leaves it to the application."""
        del facts

    def switch_to(self, turn: QueuedRequest) -> None:
        """From now on `turn` gets all that comes, as it comes."""
        self._switched = self._serving = turn
        self.cycle = cast("RequestResponseCycle", turn)
        self.flow.resume_reading()

    def hang_up(self) -> None:
        """Close, but read on for a moment: unread input would make the system throw away our last answer
        (RFC 9112 9.6).
        """
        self._deaf = True
        if self.transport.is_closing():
            return
        if not self.transport.can_write_eof():
            self.transport.close()
            return
        self.transport.write_eof()
        self.flow.resume_reading()
        self._unsent = sys.maxsize
        self._expect(self.bounds.linger)

    def _dispatch(self) -> None:
        facts = inspect(self.parser.get_method(), self.url, self.parser.get_http_version(), self.headers)
        if self._head_size > self.bounds.head:
            raise InvalidRequestHead(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Request header fields too large")
        if len(self.pipeline) >= self.bounds.pipeline:
            raise InvalidRequestHead(HTTPStatus.TOO_MANY_REQUESTS, "Too many requests")
        upgrade = self.parser.should_upgrade()
        self._plain_upgrade = upgrade and not (facts.websocket and self._should_upgrade())
        if self._plain_upgrade:
            return
        if upgrade and (facts.has_body or self._is_busy()):
            raise InvalidRequestHead(HTTPStatus.BAD_REQUEST, "Malformed WebSocket handshake")
        self.expect_100_continue = facts.expects
        self._turn = self._turn_for(facts)
        if self._turn is None:
            super().on_headers_complete()
        else:
            self._queue(self._turn)
        self._in_body, self._is_told = True, facts.length is not None

    def _queue(self, turn: QueuedRequest) -> None:
        busy = self._is_busy()
        self.cycle = cast("RequestResponseCycle", turn)  # it has what uvicorn looks at
        app = cast("ASGI3Application", self.app)
        if busy:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, app))
        else:
            self._start_asgi_task(self.cycle, app)

    def _is_busy(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is not None and not cycle.response_complete

    def _read_wide(self, wide: bool) -> None:
        if wide == self._is_wide or self.transport.is_closing():
            return
        self._is_wide = wide
        self.transport.set_protocol(LargeReadProtocol(self) if wide else self)
        if not self.flow.read_paused:  # a transport decides how it reads when it begins to
            self.transport.pause_reading()
            self.transport.resume_reading()

    def _feed(self, data: bytes | memoryview) -> bytes | None:
        """Parse; returns what has to be parsed after it."""
        self._moved = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as switch:
            return self._switch(bytes(data[switch.args[0] :]))
        except httptools.HttpParserCallbackError:
            _log.exception("The HTTP protocol failed")
            self._refuse(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error")
        except httptools.HttpParserError:
            self._refuse(HTTPStatus.BAD_REQUEST, "Malformed request")
        self._stalled = 0 if self._moved else self._stalled + len(data)
        if self._stalled > self.bounds.head:
            self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Request header fields too large")
        return None

    def _switch(self, rest: bytes) -> bytes | None:
        if self._deaf:
            return None
        if self._plain_upgrade:
            return self._without_upgrade() + rest
        self._expect(None)
        if self._turn is not None:
            self._switched = self._turn
            self._turn.upload(rest)
        else:
            self.handle_websocket_upgrade()
            self._deaf = True  # the connection has another protocol now
        return None

    def _without_upgrade(self) -> bytes:
        """The head again, for a fresh parser: RFC 9110 7.8 lets a server ignore an upgrade, and only so is the body
        read as one.
        """
        self._plain_upgrade = False
        method = self.parser.get_method()
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        lines = [b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade"]
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (method, self.url, b"".join(lines))

    def _keep_time(self) -> None:
        """A head that has begun, and a body that nobody wants any more, have to end soon."""
        if self._deaf:
            return
        idle = not self._is_busy() and self.timeout_keep_alive_task is None
        if not (self._in_head or idle):
            self._expect(None)
        elif self._deadline is None:
            self._expect(self.bounds.first_head)

    def _expect(self, seconds: float | None) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None if seconds is None else self.loop.call_later(seconds, self._late)

    def _late(self) -> None:
        if self._deaf:
            self._finish_hanging_up()
        elif self._in_head:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "Request timeout")
        else:
            self.transport.close()

    def _expect_taking(self, seconds: float | None) -> None:
        """Nothing is added to what waits for a client that is behind, so it has to become less."""
        if self._taking is not None:
            self._taking.cancel()
        size = self.transport.get_write_buffer_size()
        self._taking = None if seconds is None else self.loop.call_later(seconds, self._look_at_taking, size)

    def _look_at_taking(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() < self.bounds.taking * self.bounds.body_rate:
            self.transport.abort()
        else:
            self._expect_taking(self.bounds.taking)

    def _finish_hanging_up(self) -> None:
        """Abort, unless the client is still taking what was written for it."""
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        if 0 < self._unsent < before:
            self._expect(self.bounds.linger)
        else:
            self.transport.abort()

    def _refuse(self, status: HTTPStatus, message: str) -> None:
        """Understand no more of this connection; answer when what came before has been answered."""
        if self._deaf:
            return
        self._deaf = True
        self._expect(None)
        if not self._in_body:
            self._queue(_RefusedRequest(self, status, message))
        elif self._turn is not None:
            self._turn.spoil(status, message)
        else:
            self._abandon(status, message)

    def _abandon(self, status: HTTPStatus, message: str) -> None:
        """The application is reading a body whose rest will never be understood."""
        if self._together is not None:
            self._together.flush()
        cycle = self.cycle
        cycle.disconnected = True
        cycle.waiting_for_100_continue = False  # nothing is written behind the end
        cycle.message_event.set()
        if cycle.response_started or self.pipeline:
            self.transport.close()
        else:
            self.transport.write(response_head.error(status, message, ids.new_id(), close=True))
            self.hang_up()


class _RefusedRequest(QueuedRequest):
    def __init__(self, line: GuardedHttpProtocol, status: HTTPStatus, message: str) -> None:
        super().__init__(keep_alive=False)
        self._line = line
        self._answer = response_head.error(status, message, ids.new_id(), close=True)

    def start(self) -> None:
        self.response_complete = True
        self._line.transport.write(self._answer)
        self._line.hang_up()
