"""Reads the answers that a gateway sends over one connection. No I/O: bytes in, calls on a sink out.

The parser is llhttp, strict. Heads, hints and stalls are bounded; whatever follows an answer that nobody asked for
makes the connection unfit for another request. So a gateway cannot put words into an answer that is not its own.
"""

from typing import Protocol

import httptools

from roost.hosts.edge.request_head import Headers

_MOST_HINTS = 16


class InvalidResponse(Exception):  # noqa: N818 - the expected outcome of a hostile answer
    """What came is no answer that can be carried."""


class ResponseSink(Protocol):
    """Who asked. `switch` raises BadAnswer when no switch of protocols was asked for."""

    def hint(self, status: int, headers: Headers) -> None: ...
    def switch(self, headers: Headers) -> None: ...
    def answer(self, status: int, headers: Headers, length: int | None, *, has_body: bool) -> None: ...
    def body(self, data: bytes) -> None: ...


class ResponseParser:
    def __init__(self, head_limit: int) -> None:
        self._limit = head_limit
        self._parser = httptools.HttpResponseParser(self)
        self._sink: ResponseSink | None = None
        self._headers: list[tuple[bytes, bytes]] = []
        self._bodiless = self._is_final = self._in_head = self._moved = False
        self._hints = self._size = self._stalled = 0
        self.done = True
        """The answer is complete."""
        self.reusable = False
        """Once done: another request may follow on this connection."""
        self.until_close = False
        """The end of the connection is the end of the answer."""

    def expect(self, sink: ResponseSink, *, bodiless: bool) -> None:
        """An answer for `sink` comes next; `bodiless` when a HEAD was asked."""
        if self._bodiless:  # the parser cannot be told of HEAD, so it still waits for a body
            self._parser = httptools.HttpResponseParser(self)
        self._sink = sink
        self._bodiless = bodiless
        self._is_final = self.done = self.reusable = self.until_close = False
        self._hints = self._stalled = 0

    def feed(self, data: bytes) -> bytes | None:
        """Read on. Returns what follows a switch of protocols, None when there was none. Raises BadAnswer."""
        self._moved = False
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as switch:
            return data[switch.args[0] :]
        except httptools.HttpParserError as error:
            if isinstance(error, httptools.HttpParserCallbackError) and not isinstance(
                error.__context__, InvalidResponse
            ):
                raise
            self.reusable = False
            if not self.done:
                raise InvalidResponse(str(error)) from error
        self._stalled = 0 if self._moved else self._stalled + len(data)
        if self._stalled > self._limit:
            raise InvalidResponse("too much that is neither head nor body")
        return None

    # What the parser calls

    def on_message_begin(self) -> None:
        self.reusable = False
        self._headers = []
        self._in_head = True
        self._size = 0

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._in_head:  # trailers are not carried
            self._size += len(name) + len(value) + 4
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._in_head, self._moved = False, True
        if self.done or self._sink is None:
            return
        if self._size > self._limit:
            raise InvalidResponse("the head is too large")
        status = self._parser.get_status_code()
        if status == 101:
            self._sink.switch(self._headers)
        elif status < 200:
            self._hint(self._sink, status)
        else:
            self._answer(self._sink, status)

    def on_body(self, body: bytes) -> None:
        self._moved = True
        if self.done or self._sink is None:
            self.reusable = False
        else:
            self._sink.body(body)

    def on_message_complete(self) -> None:
        self._moved = True
        if self._is_final:
            self.done = True

    def _hint(self, sink: ResponseSink, status: int) -> None:
        self._hints += 1
        framed = any(name in {b"content-length", b"transfer-encoding"} for name, _ in self._headers)
        if status < 100 or framed or self._hints > _MOST_HINTS:
            raise InvalidResponse("an informational answer that is none")
        sink.hint(status, self._headers)

    def _answer(self, sink: ResponseSink, status: int) -> None:
        framing = {name: value for name, value in self._headers if name in {b"content-length", b"transfer-encoding"}}
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
        sink.answer(status, self._headers, None if length is None else int(length), has_body=has_body)
        self.done = self._bodiless
