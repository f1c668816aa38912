"""Parses the responses of a gateway on one connection. No I/O: bytes in, calls on a sink out.

The parser is llhttp, strict. Heads, informational responses and stalls are bounded. Input after a response makes the
connection unfit for another request, so a gateway cannot prepare a response for someone else.
"""

from collections.abc import Mapping
from typing import Protocol

import httptools

from roost.hosts.edge.request_head import Headers, head_size

_MAX_INFORMATIONAL = 16
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})


class InvalidResponse(Exception):  # noqa: N818 - the expected outcome of hostile input
    """The response cannot be carried to the client."""


class ResponseSink(Protocol):
    """Receiver of one response. `switch` raises InvalidResponse unless the request asked for it."""

    def informational(self, status: int, headers: Headers) -> None: ...
    def switch(self, headers: Headers) -> None: ...
    def begin_response(self, status: int, headers: Headers, length: int | None, *, has_body: bool) -> None: ...
    def body(self, data: bytes) -> None: ...


class ResponseParser:
    """`done`: the response is complete; `reusable`: another request may follow then.

    `until_close`: the end of the connection is the end of the response.
    """

    def __init__(self, head_limit: int) -> None:
        self._limit = head_limit
        self._parser = httptools.HttpResponseParser(self)
        self._sink: ResponseSink | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._bodiless = self._is_final = self._progressed = False
        self._informational = self._stalled = 0
        self.done = True
        self.reusable = self.until_close = False

    def expect_response(self, sink: ResponseSink, *, bodiless: bool) -> None:
        """Parse the next response for `sink`; `bodiless` after HEAD."""
        if self._bodiless:  # the parser does not know about HEAD, so it still waits for a body
            self._parser = httptools.HttpResponseParser(self)
        self._sink = sink
        self._bodiless = bodiless
        self._is_final = self.done = self.reusable = self.until_close = False
        self._informational = self._stalled = 0

    def feed(self, data: bytes) -> bytes | None:
        """Parse `data`; return the input after a switch of protocols, None without one. Raises InvalidResponse."""
        self._progressed = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as switch:
            return data[switch.args[0] :]
        except httptools.HttpParserError as error:
            own = isinstance(error.__context__, InvalidResponse)
            if isinstance(error, httptools.HttpParserCallbackError) and not own:
                raise
            self.reusable = False
            if not self.done:
                raise InvalidResponse(str(error)) from error
        self._stalled = 0 if self._progressed else self._stalled + len(data)
        if self._stalled > self._limit:
            raise InvalidResponse("too much input that is neither head nor body")
        return None

    # Called by the parser

    def on_message_begin(self) -> None:
        self.reusable = False
        self._headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._progressed = True
        headers, self._headers = self._headers, []  # trailers are dropped
        if self.done or self._sink is None:
            return
        if head_size(headers) > self._limit:
            raise InvalidResponse("the head is too large")
        status = self._parser.get_status_code()
        framing = {name: value for name, value in headers if name in _FRAMING}
        if status == 101:
            self._sink.switch(headers)
        elif status < 200:
            self._informational += 1
            if status < 100 or framing or self._informational > _MAX_INFORMATIONAL:
                raise InvalidResponse("an invalid informational response")
            self._sink.informational(status, headers)
        else:
            self._begin_response(self._sink, status, headers, framing)

    def on_body(self, body: bytes) -> None:
        self._progressed = True
        if self.done or self._sink is None:
            self.reusable = False
        else:
            self._sink.body(body)

    def on_message_complete(self) -> None:
        self._progressed = True
        self.done = self.done or self._is_final

    def _begin_response(
        self, sink: ResponseSink, status: int, headers: Headers, framing: Mapping[bytes, bytes]
    ) -> None:
        coding, length = framing.get(b"transfer-encoding"), framing.get(b"content-length")
        version = self._parser.get_http_version()
        if status > 599 or version not in {"1.0", "1.1"}:
            raise InvalidResponse("an unknown status or version")
        if coding is not None and (coding.lower() != b"chunked" or version == "1.0"):
            raise InvalidResponse("an unknown transfer coding")
        has_body = not self._bodiless and status not in {204, 304}
        self._is_final = True
        self.reusable = self._parser.should_keep_alive()
        self.until_close = has_body and not framing
        sink.begin_response(status, headers, None if length is None else int(length), has_body=has_body)
        self.done = self._bodiless
