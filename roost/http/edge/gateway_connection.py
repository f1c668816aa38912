"""One connection to an agent's gateway, which carries one request at a time.

A gateway is hostile. The parser (llhttp, strict) and the checks here reject responses that two readers could understand
differently; heads, informational responses and stalls are bounded. Input after a response makes the connection unfit
for another request, so a gateway cannot prepare a response for someone else.
"""

import asyncio
from collections.abc import Callable
from http import HTTPStatus
from typing import Protocol, cast

import httptools

from roost.core.sensitive import Sensitive
from roost.drivers.runtime.contract import Stream
from roost.http.edge.dependencies import GatewayUnreachable, ProxyLimits
from roost.http.edge.proxy_request import UpstreamKey
from roost.http.server.request_head import Headers, head_size
from roost.http.server.write_coalescer import DirectWriter

_MAX_INFORMATIONAL = 16
# Constants, because Python 3.11 looks up the members of enumerations by a slow descriptor.
_SWITCHING_PROTOCOLS, _OK = int(HTTPStatus.SWITCHING_PROTOCOLS), int(HTTPStatus.OK)
_BODILESS = frozenset({int(HTTPStatus.NO_CONTENT), int(HTTPStatus.NOT_MODIFIED)})
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})


class InvalidResponse(Exception):  # noqa: N818 - the expected outcome of hostile input
    """The response cannot be carried to the client."""


class ResponseHandler(Protocol):
    """Receiver of one response."""

    def begin_response(self, status: int, headers: Headers, length: int | None, *, has_body: bool) -> None: ...
    def forward_informational(self, status: int, headers: Headers) -> None: ...
    def begin_tunnel(self, headers: Headers) -> None:
        """Switch protocols. Raises InvalidResponse unless the request asked for it."""

    def open_tunnel(self) -> None:
        """Send what was written, and take over the connection: a whole read is parsed."""

    def write_body(self, data: bytes) -> None: ...
    def flush_response(self) -> None:
        """Send what was written: a whole read is parsed."""

    def finish_response(self, *, reusable: bool) -> None:
        """Send what was written, and end the response; a reusable connection may go back to the pool."""

    def fail_response(self, *, retry: bool) -> None: ...
    def pause_request(self) -> None: ...
    def resume_request(self) -> None: ...
    def drop(self) -> None:
        """End the request: the agent's credentials have changed."""


class GatewayConnection(asyncio.Protocol):
    """Connection to the upstream of a `key`. `forget` is called when it has ended."""

    def __init__(
        self,
        key: UpstreamKey,
        credential: tuple[str, Sensitive[str]] | None,
        limits: ProxyLimits,
        forget: "Callable[[GatewayConnection], None]",
        writer: DirectWriter,
    ) -> None:
        self.key, self.owner = key, key[0]
        self.is_reused = self.is_full = False
        self.idle_since = 0.0
        self.transport: asyncio.Transport
        self._credential, self._limits, self._forget, self.writes = credential, limits, forget, writer
        self._writer: asyncio.StreamWriter | None = None
        self._handler: ResponseHandler | None = None
        self._parser = httptools.HttpResponseParser(self)
        self._headers: list[tuple[bytes, bytes]] = []
        self._bodiless = self._is_tunnel = False
        self._is_final = self._is_done = self._reusable = self._until_close = self._progressed = False
        self._informational = self._stalled = 0

    @property
    def credential(self) -> tuple[bytes, bytes] | None:
        """The header by which a gateway recognises the edge."""
        if self._credential is None:
            return None
        name, value = self._credential
        return name.encode("latin-1"), value.reveal().encode("latin-1")

    async def take_over(self, stream: Stream) -> None:
        """Become the protocol of a stream's transport. Raises GatewayUnreachable when it has ended or spoken first."""
        reader, self._writer = stream  # a writer that is collected closes its transport
        self.transport = cast("asyncio.Transport", self._writer.transport)
        self.transport.set_protocol(self)
        ended = reader.at_eof()
        reader.feed_eof()
        if ended or await reader.read(1) or self.transport.is_closing():
            self.transport.abort()
            raise GatewayUnreachable(retry_after=1)
        self.set_reading(wanted=True)

    def send_request(self, handler: ResponseHandler, request: bytes, *, bodiless: bool) -> None:
        """Send the head of a request, and parse its response for `handler`; `bodiless` after HEAD."""
        if self._bodiless:  # the parser does not know about HEAD, so it still waits for a body
            self._parser = httptools.HttpResponseParser(self)
        self._handler, self._bodiless = handler, bodiless
        self._is_final = self._is_done = self._reusable = self._until_close = False
        self._informational = self._stalled = 0
        self.write(request)

    def write(self, data: bytes) -> None:
        """Write within this turn of the event loop."""
        self.writes.write(self.transport, data)

    def release(self, now: float) -> None:
        self._handler, self.is_reused, self.idle_since = None, True, now
        self.set_reading(wanted=True)

    def set_reading(self, *, wanted: bool) -> None:
        if not self.transport.is_closing() and wanted != self.transport.is_reading():
            (self.transport.resume_reading if wanted else self.transport.pause_reading)()

    def abort(self) -> None:
        self._handler = None
        self.transport.abort()

    def close(self) -> None:
        """Close when all that was written is sent, within the time for it."""
        self._handler = None
        self.writes.flush(self.transport)
        self.transport.close()
        asyncio.get_running_loop().call_later(self._limits.linger, self.transport.abort)

    def drop(self) -> None:
        if self._handler is not None:
            self._handler.drop()
        else:
            self.transport.abort()

    # Called by asyncio

    def data_received(self, data: bytes) -> None:
        handler = self._handler
        if handler is None:
            self.transport.abort()
        else:
            try:
                self._feed(data)
            except InvalidResponse:
                self.abort()
                handler.fail_response(retry=False)
                return
            if self._is_tunnel:
                handler.open_tunnel()
            elif self._is_done:
                handler.finish_response(reusable=self._reusable and not self.transport.is_closing())
            else:
                handler.flush_response()

    def connection_lost(self, exc: Exception | None) -> None:
        self._forget(self)
        handler, self._handler = self._handler, None
        if handler is None:
            return
        if self._is_tunnel or (exc is None and self._until_close and not self._is_done):
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

    # Called by the parser

    def on_message_begin(self) -> None:
        self._reusable = False
        self._headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._progressed = True
        headers, self._headers = self._headers, []  # trailers are dropped
        handler = self._handler
        if self._is_done or handler is None:
            return
        if head_size(headers) > self._limits.head:
            raise InvalidResponse("the head is too large")
        status = self._parser.get_status_code()
        framing = {name: value for name, value in headers if name in _FRAMING}
        if status >= _OK:
            self._begin_response(handler, status, headers, framing)
        elif status == _SWITCHING_PROTOCOLS:
            handler.begin_tunnel(headers)
        else:
            self._informational += 1
            if status < HTTPStatus.CONTINUE or framing or self._informational > _MAX_INFORMATIONAL:
                raise InvalidResponse("an invalid informational response")
            handler.forward_informational(status, headers)

    def on_body(self, body: bytes) -> None:
        self._progressed = True
        if self._is_done or self._handler is None:
            self._reusable = False
        else:
            self._handler.write_body(body)

    def on_message_complete(self) -> None:
        self._progressed = True
        self._is_done = self._is_done or self._is_final

    def _feed(self, data: bytes) -> None:
        self._progressed = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as switch:
            self._is_tunnel = True
            if self._handler is not None and (rest := data[switch.args[0] :]):
                self._handler.write_body(rest)
            return
        except httptools.HttpParserError as error:
            own = isinstance(error.__context__, InvalidResponse)
            if isinstance(error, httptools.HttpParserCallbackError) and not own:
                raise
            self._reusable = False
            if not self._is_done:
                raise InvalidResponse(str(error)) from error
        self._stalled = 0 if self._progressed else self._stalled + len(data)
        if self._stalled > self._limits.head:
            raise InvalidResponse("too much input that is neither head nor body")

    def _begin_response(
        self, handler: ResponseHandler, status: int, headers: Headers, framing: dict[bytes, bytes]
    ) -> None:
        coding, length = framing.get(b"transfer-encoding"), framing.get(b"content-length")
        version = self._parser.get_http_version()
        if status > 599 or version not in {"1.0", "1.1"}:
            raise InvalidResponse("an unknown status or version")
        if coding is not None and (coding.lower() != b"chunked" or version == "1.0"):
            raise InvalidResponse("an unknown transfer coding")
        has_body = not self._bodiless and status not in _BODILESS
        self._is_final = True
        # A program that sends the body all the same would have it read as the response to the next request.
        self._reusable = self._parser.should_keep_alive() and (has_body or not (coding or int(length or 0)))
        self._until_close = has_body and not framing
        handler.begin_response(status, headers, None if length is None else int(length), has_body=has_body)
        self._is_done = self._bodiless
