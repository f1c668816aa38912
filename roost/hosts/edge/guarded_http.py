"""HTTP/1.1 for the public port and the relays: uvicorn's protocol, made strict and bounded.

It rejects heads that two readers could understand differently, answers in order, rejections included, and keeps at
most a few reads of input. A subclass decides which requests bypass the ASGI application (`_queued_request`).
It uses private parts of uvicorn, which `tests/hosts/edge` covers.
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
from roost.hosts.edge.request_head import InvalidRequestHead, RequestHead, head_size, inspect_head

_log = log.get_logger(__name__)


class QueuedRequest:
    """Request that is answered without the application when its turn comes.

    It takes the place of uvicorn's own cycle, which reads and writes the four public attributes.
    """

    message_event = asyncio.Event()  # nothing waits for it

    def __init__(self, *, keep_alive: bool) -> None:
        self.response_complete = self.disconnected = False
        self.keep_alive = keep_alive

    def start(self) -> None: ...
    def receive_body(self, data: bytes) -> None:
        """Take a part of the request's body, or anything that comes after a switch of protocols."""

    def end_body(self) -> None: ...
    def abort_request(self, status: HTTPStatus, message: str) -> None:
        """Answer an error, because the rest of the request cannot be parsed."""

    def half_close(self) -> bool:
        """Return whether the connection stays open after the client's last byte."""
        return False

    def disconnect(self) -> None: ...
    def pause_response(self) -> None: ...
    def resume_response(self) -> None: ...


class GuardedHttpProtocol(HttpToolsProtocol):
    """One connection of a client."""

    limits: ClassVar[ProxyLimits] = ProxyLimits()
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
        self.timeout_keep_alive = self.limits.keep_alive
        self._serving: RequestResponseCycle | QueuedRequest | None = None
        self._reading: QueuedRequest | None = None
        self._switched: QueuedRequest | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._closing = False  # nothing more is parsed
        self._in_head = self._in_body = False
        self._ignores_upgrade = False
        self._progressed = False  # the current read completed a head or a part of a body
        self._stalled = self._discarded = 0
        self._unsent = sys.maxsize

    # Called by asyncio

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  # as uvicorn has it
        super().connection_made(transport)
        self._set_timer(self.limits.first_head)

    def data_received(self, data: bytes) -> None:
        if self._switched is not None and not self._closing:
            self._switched.receive_body(data)
            return
        rest: bytes | None = data
        while rest and not self._closing:
            self._unset_keepalive_if_required()
            rest = self._feed(rest)
        if not self._closing:
            idle = not self._is_busy() and self.timeout_keep_alive_task is None
            if not (self._in_head or idle):
                self._set_timer(None)
            elif self._timer is None:  # a head, or an unread body
                self._set_timer(self.limits.first_head)

    def eof_received(self) -> bool | None:  # pyright: ignore[reportIncompatibleMethodOverride]  # uvicorn narrows it
        serving = self._serving
        if isinstance(serving, QueuedRequest) and not self._closing and not self.pipeline and self.scheme == "http":
            return serving.half_close()
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._set_timer(None)
        self._set_write_timer(None)
        self._unset_keepalive_if_required()
        self.pipeline.clear()
        if isinstance(self._serving, QueuedRequest):
            self._serving.disconnect()
        elif self._serving is not None:
            self._serving.disconnected = True
            self._serving.message_event.set()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        if isinstance(self._serving, QueuedRequest):
            self._serving.pause_response()
        else:
            self._set_write_timer(self.limits.taking)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._set_write_timer(None)
        if isinstance(self._serving, QueuedRequest):
            self._serving.resume_response()

    # Called by uvicorn

    def shutdown(self) -> None:
        if self._switched is not None:
            self.transport.close()
        else:
            super().shutdown()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()  # one read of requests is enough to keep

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._serving = cycle
        if isinstance(cycle, QueuedRequest):
            cycle.start()
        else:
            super()._start_asgi_task(cycle, app)

    # Called by the parser

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._discarded = True, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # trailers are dropped
            self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._in_head, self._progressed = False, True
        if self._closing:
            return
        try:
            self._dispatch()
        except InvalidRequestHead as refused:
            self._reject(refused.status, refused.message)

    def on_body(self, body: bytes) -> None:
        self._progressed = True
        if self._closing:
            return
        if self.cycle.response_complete:
            self._discarded += len(body)
            if self._discarded > self.limits.leftover:
                self.transport.close()
        elif self._reading is not None:
            self._reading.receive_body(body)
        elif kept := cast("bytes | bytearray", self.cycle.body):
            if isinstance(kept, bytes):  # else each of many small chunks would copy all before it
                self.cycle.body = bytearray(kept)
            super().on_body(body)
        else:  # as it is: uvicorn would copy it here, and again for the application
            self.cycle.body = cast("bytearray", body)
            super().on_body(b"")

    def on_message_complete(self) -> None:
        self._in_body = False
        if self._closing or self._ignores_upgrade:
            return
        if self._reading is not None:
            self._reading.end_body()
        else:
            super().on_message_complete()

    # Own methods

    def _queued_request(self, head: RequestHead) -> QueuedRequest | None:
        """Return what answers this request; None leaves it to the application."""

    def lingering_close(self) -> None:
        """Close, but read on for a moment: unread input would make the system discard the response (RFC 9112, 9.6)."""
        self._closing = True
        if self.transport.is_closing():
            return
        if not self.transport.can_write_eof():
            self.transport.close()
            return
        self.transport.write_eof()
        self.flow.resume_reading()
        self._unsent = sys.maxsize
        self._set_timer(self.limits.linger)

    def _dispatch(self) -> None:
        head = inspect_head(self.parser.get_method(), self.url, self.parser.get_http_version(), self.headers)
        if len(self.url) + head_size(self.headers) > self.limits.head:
            raise InvalidRequestHead(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Request header fields too large")
        if len(self.pipeline) >= self.limits.pipeline:
            raise InvalidRequestHead(HTTPStatus.TOO_MANY_REQUESTS, "Too many requests")
        upgrade = self.parser.should_upgrade()
        self._ignores_upgrade = upgrade and not (head.websocket and self._should_upgrade())
        if self._ignores_upgrade:
            return
        if upgrade and (head.has_body or self._is_busy()):
            raise InvalidRequestHead(HTTPStatus.BAD_REQUEST, "Malformed WebSocket handshake")
        self.expect_100_continue = head.expects
        self._reading = self._queued_request(head)
        if self._reading is None:
            super().on_headers_complete()
        else:
            self._queue(self._reading)
        self._in_body = True

    def _queue(self, request: QueuedRequest) -> None:
        busy = self._is_busy()
        self.cycle = cast("RequestResponseCycle", request)
        app = cast("ASGI3Application", self.app)
        if busy:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, app))
        else:
            self._start_asgi_task(self.cycle, app)

    def _is_busy(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is not None and not cycle.response_complete

    def _feed(self, data: bytes) -> bytes | None:
        """Parse `data`; return input that has to be parsed after it."""
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
        self._set_timer(None)
        if self._reading is not None:
            self._switched = self._reading
            self._reading.receive_body(rest)
        else:
            self.handle_websocket_upgrade()
            self._closing = True  # another protocol has the connection now
        return None

    def _head_without_upgrade(self) -> bytes:
        """Return the head again for a new parser, which then reads the body (RFC 9110, 7.8: upgrades are optional)."""
        self._ignores_upgrade = False
        method = self.parser.get_method()
        self.parser = httptools.HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
        lines = [b"%b: %b\r\n" % header for header in self.headers if header[0] != b"upgrade"]
        return b"%b %b HTTP/1.1\r\n%b\r\n" % (method, self.url, b"".join(lines))

    def _set_timer(self, seconds: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if seconds is None else self.loop.call_later(seconds, self._on_timeout)

    def _on_timeout(self) -> None:
        if self._closing:
            before, self._unsent = self._unsent, self.transport.get_write_buffer_size()
            if 0 < self._unsent < before:  # the client still reads the response
                self._set_timer(self.limits.linger)
            else:
                self.transport.abort()
        elif self._in_head:
            self._reject(HTTPStatus.REQUEST_TIMEOUT, "Request timeout")
        else:
            self.transport.close()

    def _set_write_timer(self, seconds: float | None) -> None:
        """Bound the time that a slow client takes for a response of the application."""
        if self._write_timer is not None:
            self._write_timer.cancel()
        size = self.transport.get_write_buffer_size()
        self._write_timer = None if seconds is None else self.loop.call_later(seconds, self._check_progress, size)

    def _check_progress(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() < self.limits.taking * self.limits.body_rate:
            self.transport.abort()
        else:
            self._set_write_timer(self.limits.taking)

    def _reject(self, status: HTTPStatus, message: str) -> None:
        """Parse no more of this connection, and answer after the requests before it."""
        if self._closing:
            return
        self._closing = True
        self._set_timer(None)
        if not self._in_body:
            self._queue(_RejectedRequest(self, status, message))
        elif self._reading is not None:
            self._reading.abort_request(status, message)
        else:
            self._abort_application(status, message)

    def _abort_application(self, status: HTTPStatus, message: str) -> None:
        """Cut off the application, which waits for a body that cannot be parsed."""
        cycle = self.cycle
        cycle.disconnected = True
        cycle.waiting_for_100_continue = False  # nothing may follow the last response
        cycle.message_event.set()
        if cycle.response_started or self.pipeline:
            self.transport.close()
        else:
            self.transport.write(response_head.error_bytes(status, message, ids.new_id(), close=True))
            self.lingering_close()


class _RejectedRequest(QueuedRequest):
    def __init__(self, client: GuardedHttpProtocol, status: HTTPStatus, message: str) -> None:
        super().__init__(keep_alive=False)
        self._client = client
        self._response = response_head.error_bytes(status, message, ids.new_id(), close=True)

    def start(self) -> None:
        self.response_complete = True
        self._client.transport.write(self._response)
        self._client.lingering_close()
