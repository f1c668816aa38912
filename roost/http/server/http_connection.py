"""HTTP/1.1 for the public port and the relays: strict, bounded, with responses in the order of the requests.

A head that two readers could understand differently ends the connection (RFC 9112, 11.2), and at most a few reads of
input are kept. A subclass decides what answers a request. uvicorn's server accepts the connections.
Decision 0017 says why.
"""

import asyncio
import math
import sys
from abc import ABC, abstractmethod
from collections import deque
from http import HTTPStatus
from typing import Any, ClassVar, Protocol

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.utils import get_local_addr, get_remote_addr
from uvicorn.server import ServerState
from websockets.http11 import MAX_LINE_LENGTH, MAX_NUM_HEADERS

from roost.core import ids, log
from roost.core.machine.unix_socket import Stream
from roost.http.server.own_response import rejection_bytes
from roost.http.server.request_head import (
    ConnectionLimits,
    InvalidRequestHead,
    RequestHead,
    RequestHeaders,
    head_bytes,
    inspect_head,
)
from roost.http.server.write_coalescer import DirectWriter

_log = log.get_logger(__name__)
_LINE_OVERHEAD = 32  # method, version, separators
_MAX_KEPT_HEADERS = 4 * 1024  # bytes, for each idle connection


class Exchange(Protocol):
    """One request and its response. It calls `complete_response` of the connection when it has answered."""

    def start(self) -> None:
        """Begin to answer: all requests before this one are answered."""

    def receive_body(self, data: bytes) -> None:
        """Take a part of the request's body, or anything that comes after a switch of protocols."""

    def end_body(self) -> None: ...
    def disable_keep_alive(self) -> None: ...
    def disconnect(self) -> bool:
        """End without another word to the client; return whether the response had begun."""
        ...

    def pause_response(self) -> None: ...
    def resume_response(self) -> None: ...
    def check_time(self) -> None:
        """Handle the end of the time that the exchange gave itself with `set_deadline`."""


class HttpConnection(asyncio.Protocol, ABC):
    limits: ClassVar[ConnectionLimits] = ConnectionLimits()
    writer: ClassVar[DirectWriter] = DirectWriter()
    stream: Stream | None = None  # whose transport it has: a writer that is collected closes it

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.config, self.server_state, self.app_state = config, server_state, app_state
        self.loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self.flow: FlowControl
        self.server: tuple[str, int | None] | None = None
        self.client: tuple[str, int] | None = None
        self.local_port: int | None = None  # of this machine, at which the client connected
        self.parser = _new_parser(self)
        self._url, self._headers = b"", list[tuple[bytes, bytes]]()
        self._last: RequestHeaders | None = None  # of the request before
        self._exchanges: deque[Exchange] = deque()  # the first is being answered
        self._reading: Exchange | None = None  # gets the body
        self._tunnel: Exchange | None = None  # has the connection after a switch of protocols
        self._rejection: bytes | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._deadline = self._timer_due = math.inf
        self._closing = False  # nothing more is parsed
        self._in_head = self._in_body = self._is_started = False
        self._ignores_upgrade = False
        self._progressed = False  # the current read completed a head or a part of a body
        self._stalled = self._discarded = 0
        self._unsent = sys.maxsize

    # Called by asyncio and by uvicorn's server

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # uvicorn accepts streams only
        self.transport, self.flow = transport, FlowControl(transport)
        self.server, self.client = get_local_addr(transport), get_remote_addr(transport)
        self.local_port = self.server[1] if self.server else None
        self.server_state.connections.add(self)  # pyright: ignore[reportArgumentType]  # it needs `shutdown` alone
        self.set_deadline(self.limits.first_head)

    def data_received(self, data: bytes) -> None:
        self.writer.flush(self.transport)
        was_in_head, rest = self._in_head, data
        while rest and not self._closing:
            rest = self._feed(rest)
        if self._exchanges and not self._is_started:  # after the feed, so that a small body is there
            self._start_exchange()
        elif self._in_head and not was_in_head and not self._exchanges and not self._closing:
            self.set_deadline(self.limits.first_head)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._release()
        if self._exchanges and self._is_started:
            self._exchanges[0].disconnect()
        self._exchanges.clear()
        self.flow.resume_writing()

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        if self._exchanges:
            self._exchanges[0].pause_response()

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self._unsent = sys.maxsize
        if self._exchanges:
            self._exchanges[0].resume_response()
        elif not self._closing:
            self.set_deadline(self.limits.keep_alive)

    def shutdown(self) -> None:
        """End the connection when what was requested is answered: the server stops."""
        if self._exchanges and self._tunnel is None:
            self._exchanges[-1].disable_keep_alive()
        else:
            self._close()

    # Called by the parser

    def on_message_begin(self) -> None:
        self._url, self._headers = b"", []
        self._in_head, self._discarded = True, 0

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # trailers are dropped
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._in_head, self._progressed = False, True
        if self._closing:
            return
        try:
            self._dispatch()
        except InvalidRequestHead as invalid:
            self._reject(invalid.status, invalid.message, invalid.code)

    def on_body(self, body: bytes) -> None:
        self._progressed = True
        if self._reading is not None and not self._closing:
            self._reading.receive_body(body)
            return
        self._discarded += len(body)
        if self._discarded > self.limits.leftover:
            self._close()

    def on_message_complete(self) -> None:
        if self._closing or self._ignores_upgrade:
            return
        self._in_body = False
        reading, self._reading = self._reading, None
        if reading is not None:
            reading.end_body()
        elif not self._exchanges:  # the body was longer than the exchange
            self.set_deadline(self.limits.keep_alive)

    # For exchanges

    @abstractmethod
    def create_exchange(self, head: RequestHead) -> Exchange | None:
        """Return what answers a request; None for a WebSocket of the application."""

    def complete_response(self, *, keep_alive: bool) -> None:
        """Let the next request have its turn."""
        done = self._exchanges.popleft()
        self._is_started = False
        if self._reading is done:
            self._reading = None  # the rest of its body is discarded
        self.server_state.total_requests += 1
        self._unsent = sys.maxsize
        if self.transport.is_closing():
            self.check_writing()
        elif not keep_alive:
            self.lingering_close()
        elif self._exchanges:
            self.writer.flush(self.transport)
            if len(self._exchanges) == 1:  # one read of requests is enough to keep
                self.flow.resume_reading()
            self._start_exchange()
        elif self._rejection is not None:
            self._send_rejection(self._rejection)
        else:
            self.flow.resume_reading()
            if self.flow.write_paused:
                self.check_writing()
            else:
                self.set_deadline(self.limits.first_head if self._in_head or self._in_body else self.limits.keep_alive)

    def lingering_close(self) -> None:
        """Close, but read on for a moment: unread input would make the system discard the response (RFC 9112, 9.6)."""
        self._closing = True
        self.writer.flush(self.transport)
        if self.transport.is_closing():
            return
        if not self.transport.can_write_eof():
            self._close()
            return
        self.transport.write_eof()
        self.flow.resume_reading()
        self._unsent = sys.maxsize
        self.set_deadline(self.limits.linger)

    def set_deadline(self, seconds: float | None) -> None:
        """Replace the time after which the exchange, or the connection without one, is checked.

        A timer that is due earlier is kept and rearms itself, so most requests set none.
        """
        self._deadline = math.inf if seconds is None else self.loop.time() + seconds
        if self._deadline < self._timer_due:
            self._set_timer()

    def check_writing(self) -> None:
        """Give a slow client `taking` seconds for the next part; abort if it read too little since the last call."""
        before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
        if before - self._unsent < self.limits.taking * self.limits.body_rate:
            self.transport.abort()
        else:
            self.set_deadline(self.limits.taking)

    # Own methods

    def _dispatch(self) -> None:
        method, version = self.parser.get_method(), self.parser.get_http_version()
        head = inspect_head(method, self._url, version, self._headers, self._last)
        self._last = head.headers if head.headers.size <= _MAX_KEPT_HEADERS else None
        if len(self._url) + head.headers.size > self.limits.head:
            raise InvalidRequestHead(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Request header fields too large")
        if len(self._exchanges) > self.limits.pipeline:
            raise InvalidRequestHead(HTTPStatus.TOO_MANY_REQUESTS, "Too many requests")
        upgrade = self.parser.should_upgrade()
        self._ignores_upgrade = upgrade and (not head.websocket or self.config.ws_protocol_class is None)
        if self._ignores_upgrade:
            return
        if head.websocket and (not upgrade or head.headers.has_body or self._exchanges):
            raise InvalidRequestHead(HTTPStatus.BAD_REQUEST, "Malformed WebSocket handshake")
        self._reading = self.create_exchange(head)
        if upgrade and self._reading is None and not self._fits_handshake():
            raise InvalidRequestHead(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Request header fields too large")
        if self._reading is not None:
            self._exchanges.append(self._reading)
            self._in_body = True
            if len(self._exchanges) > 1:
                self.flow.pause_reading()

    def _fits_handshake(self) -> bool:
        """Return whether uvicorn's WebSocket protocol takes the head; it does not answer one that it does not."""
        longest = max(len(self._url), *(len(name) + len(value) for name, value in self._headers))
        return longest <= MAX_LINE_LENGTH - _LINE_OVERHEAD and len(self._headers) <= MAX_NUM_HEADERS

    def _start_exchange(self) -> None:
        self._is_started = True
        exchange = self._exchanges[0]
        exchange.start()
        if self.flow.write_paused:  # by an earlier response
            exchange.pause_response()

    def _feed(self, data: bytes) -> bytes | None:
        """Parse `data`; return input that has to be parsed after it."""
        if self._tunnel is not None:
            self._tunnel.receive_body(data)
            return None
        self._progressed = False
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as switch:
            return self._switch(data[switch.args[0] :])
        except httptools.HttpParserCallbackError:
            _log.exception("connection.failed")
            self._reject(HTTPStatus.INTERNAL_SERVER_ERROR, "Internal error")
        except httptools.HttpParserError:
            self._reject(HTTPStatus.BAD_REQUEST, "Malformed request")
        self._stalled = 0 if self._progressed else self._stalled + len(data)
        if self._stalled > self.limits.head:
            self._reject(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Request header fields too large")
        return None

    def _switch(self, rest: bytes) -> bytes | None:
        if self._closing:
            return None
        if self._ignores_upgrade:
            return self._head_without_upgrade() + rest
        if self._exchanges:
            self._tunnel = self._exchanges[0]
            return rest
        self._hand_over()
        return None

    def _head_without_upgrade(self) -> bytes:
        """Return the head again for a new parser, which then reads the body (RFC 9110, 7.8: upgrades are optional)."""
        self._ignores_upgrade = False
        former, self.parser = self.parser, _new_parser(self)
        kept = [header for header in self._headers if header[0] != b"upgrade"]
        return head_bytes(former.get_method(), self._url, former.get_http_version(), kept)

    def _hand_over(self) -> None:
        """Give the connection to uvicorn's WebSocket protocol."""
        self._release()
        protocol_class: Any = self.config.ws_protocol_class
        protocol = protocol_class(config=self.config, server_state=self.server_state, app_state=self.app_state)
        protocol.connection_made(self.transport)
        protocol.client, protocol.stream = self.client, self.stream
        method, version = self.parser.get_method(), self.parser.get_http_version()
        protocol.data_received(head_bytes(method, self._url, version, self._headers))
        self.transport.set_protocol(protocol)

    def _release(self) -> None:
        self._closing, self._deadline = True, math.inf
        if self._timer is not None:
            self._timer.cancel()
        self.server_state.connections.discard(self)  # pyright: ignore[reportArgumentType]  # as above: `shutdown`

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due = self._deadline
        self._timer = self.loop.call_at(self._deadline, self._on_timer)

    def _on_timer(self) -> None:
        self._timer, self._timer_due = None, math.inf
        if self.loop.time() >= self._deadline:
            self._on_deadline()
        elif self._deadline < math.inf:
            self._set_timer()

    def _on_deadline(self) -> None:
        self._deadline = math.inf
        if self._closing:
            before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
            if 0 < self._unsent < before:  # the client still reads the response
                self.set_deadline(self.limits.linger)
            else:
                self.transport.abort()
        elif self._exchanges:
            self._exchanges[0].check_time()
        elif self.flow.write_paused or self.transport.is_closing():
            self.check_writing()
        elif self._in_head:
            self._reject(HTTPStatus.REQUEST_TIMEOUT, "Request timeout")
        else:
            self._close()

    def _reject(self, status: HTTPStatus, message: str, code: str | None = None) -> None:
        """Parse no more of this connection, and answer after the requests before it."""
        if self._closing:
            return
        self._closing = True
        if self._reading is None:
            is_answered = self._in_body
        else:  # the rest of its body cannot be parsed
            self._exchanges.pop()
            is_answered = self._is_started and not self._exchanges and self._reading.disconnect()
        if is_answered:
            self._close()
            return
        self._rejection = rejection_bytes(status, message, ids.new_id(), code)
        if not self._exchanges:
            self._send_rejection(self._rejection)

    def _close(self) -> None:
        self.writer.flush(self.transport)
        self.transport.close()

    def _send_rejection(self, rejection: bytes) -> None:
        self.writer.flush(self.transport)
        self.transport.write(rejection)
        self.lingering_close()


def _new_parser(protocol: HttpConnection) -> httptools.HttpRequestParser:
    parser = httptools.HttpRequestParser(protocol)
    parser.set_dangerous_leniencies(lenient_data_after_close=True)  # else the last response would be lost
    return parser
