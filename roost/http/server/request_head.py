"""Request heads, the ones that are rejected, and the limits of a connection. Pure.

The parser (llhttp, strict) rejects bad names, folded lines, bare CR or LF, several or malformed lengths, and a length
beside a transfer coding; this module rejects the rest. Header names are lower-case throughout.
"""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from itertools import chain

Headers = Sequence[tuple[bytes, bytes]]

_SINGLE = frozenset(b"host content-length transfer-encoding upgrade expect".split())
_UNCACHEABLE = frozenset(
    b"range if-range if-match if-none-match if-modified-since if-unmodified-since cache-control service-worker "
    b"upgrade".split()
)
MAX_HEADERS = 256


@dataclass(frozen=True)
class ConnectionLimits:
    """Times in seconds, sizes in bytes."""

    head: int = 64 * 1024
    first_head: float = 10.0  # until a head is complete, and for an unread body
    keep_alive: int = 75
    pipeline: int = 64  # requests that wait behind the current one of a connection
    leftover: int = 64 * 1024**2  # of a body that is discarded after the response, before the connection is closed
    linger: float = 2.0
    body_rate: int = 1024  # minimum bytes a second of an upload after the grace, until the response begins
    taking: float = 30.0  # in each such time a client reads `body_rate` bytes a second of a response of the platform


class InvalidRequestHead(Exception):  # noqa: N818 - a rejection is the expected outcome of hostile input
    """The connection cannot be parsed further: answer with `status` and close it."""

    def __init__(self, status: HTTPStatus, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


class RequestHeaders:
    """Header lines of a request, and what they say about its carriage.

    Most clients repeat all lines with each request of a connection, so all that depends on them alone is kept here. It
    shows in the row `request to an agent's port, CPU` of `bench edge`: without, 5 of 43 us more (docs/decisions/0017).
    Raises InvalidRequestHead.
    """

    def __init__(self, version: str, lines: Headers) -> None:
        self.version, self.lines = version, lines
        if len(lines) > MAX_HEADERS:
            raise InvalidRequestHead(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Request header fields too large")
        seen: dict[bytes, bytes] = {}
        for name, value in lines:
            if name in _SINGLE:
                if name in seen:
                    raise InvalidRequestHead(HTTPStatus.BAD_REQUEST, "Repeated header")
                seen[name] = value
        coding = seen.get(b"transfer-encoding")
        if coding is not None and (coding.lower() != b"chunked" or version == "1.0"):
            raise InvalidRequestHead(HTTPStatus.BAD_REQUEST, "Unsupported transfer coding")
        if b"host" not in seen and version != "1.0":
            raise InvalidRequestHead(HTTPStatus.BAD_REQUEST, "Missing Host header")
        length = seen.get(b"content-length")
        self.size = head_size(lines)
        self.host = seen.get(b"host", b"").decode("latin-1")
        self.length = None if length is None else int(length)
        self.chunked = coding is not None
        self.has_body = self.chunked or bool(self.length)
        self.offers_websocket = (
            seen.get(b"upgrade", b"").lower() == b"websocket" and version != "1.0" and _has_upgrade_option(lines)
        )
        self.expects = seen.get(b"expect", b"").lower() == b"100-continue" and version != "1.0"
        self.forwarded: tuple[Hashable, bytes] | None = None
        """Where the edge keeps the lines that it made of these, with what else they were made of."""

    @cached_property
    def host_name(self) -> str:
        """The host without a port."""
        return self.host.partition(":")[0].rstrip(".").lower()

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """The first value of each name."""
        return {name.decode(): value.decode("latin-1") for name, value in reversed(self.lines)}

    @cached_property
    def cacheable_accept(self) -> str | None:
        """`Accept`, or None if another header may change the response of a storage gateway to GET."""
        if self.has_body or self.expects or self.version == "1.0" or not _UNCACHEABLE.isdisjoint(dict(self.lines)):
            return None
        return ",".join(value.decode("latin-1") for name, value in self.lines if name == b"accept")


@dataclass(slots=True)  # to freeze it would double the time to make one
class RequestHead:
    method: bytes
    target: bytes
    headers: RequestHeaders
    websocket: bool


def inspect_head(
    method: bytes, target: bytes, version: str, lines: Headers, last: RequestHeaders | None = None
) -> RequestHead:
    """Check a request head and return its facts; `last` are the headers before it. Raises InvalidRequestHead."""
    _check_line(method, target, version)
    if last is None or last.lines != lines or last.version != version:
        last = RequestHeaders(version, lines)
    return RequestHead(method, target, last, last.offers_websocket and method == b"GET")


def head_bytes(method: bytes, target: bytes, version: str, headers: Headers) -> bytes:
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"%b %b HTTP/%b\r\n%b\r\n" % (method, target, version.encode(), lines)


def head_size(headers: Headers) -> int:
    return sum(map(len, chain.from_iterable(headers))) + 4 * len(headers)


def _check_line(method: bytes, target: bytes, version: str) -> None:
    if version not in {"1.0", "1.1"}:
        raise InvalidRequestHead(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP version not supported")
    if method == b"CONNECT":
        raise InvalidRequestHead(HTTPStatus.METHOD_NOT_ALLOWED, "Method not allowed")
    if b"#" in target or not target.isascii():
        raise InvalidRequestHead(HTTPStatus.BAD_REQUEST, "Malformed request target")
    if not target.startswith(b"/") and (method, target) != (b"OPTIONS", b"*"):
        raise InvalidRequestHead(HTTPStatus.MISDIRECTED_REQUEST, "Only the origin form of a request target is served")


def _has_upgrade_option(headers: Headers) -> bool:
    """Return whether `Connection` makes `Upgrade` count; a proxy may have passed on one that was meant for itself."""
    values = (value for name, value in headers if name == b"connection")
    return any(option.strip().lower() == b"upgrade" for value in values for option in value.split(b","))
