"""Request heads: the ones that are rejected, and the form in which an agent's gateway gets them. Pure.

The parser (llhttp, strict) rejects bad names, folded lines, bare CR or LF, several or malformed lengths, and a length
beside a transfer coding; this module rejects the rest. Header names are lower-case throughout.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from http import HTTPStatus
from itertools import chain
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from roost.http.stack.client_address import forwarded_client_ip
from roost.identity import credentials
from roost.identity.gateway_tokens import GATEWAY_TOKEN_PREFIX
from roost.net.hop_by_hop import HOP_BY_HOP

Headers = Sequence[tuple[bytes, bytes]]

COOKIE = b"gw_token"
SESSION_COOKIE = credentials.SESSION_COOKIE.encode()
_TOKEN_PREFIX = GATEWAY_TOKEN_PREFIX.encode()
_OWN = HOP_BY_HOP | frozenset(b"authorization content-length expect forwarded host x-real-ip x-request-id".split())
_SINGLE = frozenset(b"host content-length transfer-encoding upgrade expect".split())
_UNCACHEABLE = frozenset(
    b"range if-range if-match if-none-match if-modified-since if-unmodified-since cache-control service-worker "
    b"upgrade".split()
)
MAX_HEADERS = 256


class InvalidRequestHead(Exception):  # noqa: N818 - a rejection is the expected outcome of hostile input
    """The connection cannot be parsed further: answer with `status` and close it."""

    def __init__(self, status: HTTPStatus, message: str, code: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.code = status, message, code


class _ForwardContext(NamedTuple):
    """What is the same for the requests of a connection to one program. `client` is an IP address."""

    client: str
    scheme: str
    credential_name: bytes
    prefix: bytes
    is_open: bool


class RequestHeaders:
    """Header lines of a request, and what they say about its carriage.

    Most clients repeat all lines with each request of a connection, so all that depends on them alone is kept here.
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
        self._forwarded: tuple[_ForwardContext, bytes] | None = None

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

    def forwarded_lines(self, context: "_ForwardContext") -> bytes:
        """Return the lines that a program gets with each request that has these headers."""
        if self._forwarded is None or self._forwarded[0] != context:
            self._forwarded = context, b"".join(_forwarded(self, context))
        return self._forwarded[1]


@dataclass(slots=True)  # to freeze it would double the time to make one
class RequestHead:
    """Request line and headers."""

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
    """Return the bytes of a request head."""
    lines = b"".join(b"%b: %b\r\n" % header for header in headers)
    return b"%b %b HTTP/%b\r\n%b\r\n" % (method, target, version.encode(), lines)


def head_size(headers: Headers) -> int:
    """Return the bytes of header lines."""
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


def forward_request(
    head: RequestHead,
    *,
    client: str,
    scheme: str,
    request_id: str,
    credential: tuple[bytes, bytes] | None,
    prefix: bytes = b"",
    is_open: bool = False,
) -> bytes:
    """Return the head for a gateway, with the edge's own credential, or for a program, without `prefix` in its path.

    `is_open`: the program is open to anyone; a `token` of its own stays in the query.
    """
    headers = head.headers
    target = strip_token(head.target, only_gateway_tokens=is_open)
    if prefix:
        target = target[len(prefix) :] if target[len(prefix) :].startswith(b"/") else b"/" + target[len(prefix) :]
    context = _ForwardContext(client, scheme, b"" if credential is None else credential[0], prefix, is_open)
    lines = [
        b"%b %b HTTP/1.1\r\n" % (head.method, target),
        headers.forwarded_lines(context),
        b"" if credential is None else b"%b: %b\r\n" % credential,
        b"x-request-id: %b\r\n" % request_id.encode(),
    ]
    if head.websocket:
        lines.append(b"connection: Upgrade\r\nupgrade: websocket\r\n")
    elif headers.chunked:
        lines.append(b"transfer-encoding: chunked\r\n")
    elif headers.length is not None:
        lines.append(b"content-length: %d\r\n" % headers.length)
    lines.append(b"\r\n")
    return b"".join(lines)


def _forwarded(headers: RequestHeaders, context: _ForwardContext) -> Iterable[bytes]:
    host, address = headers.host.encode("latin-1"), forwarded_client_ip(context.client).encode("latin-1")
    yield b"host: %b\r\n" % host
    dropped = connection_options(headers.lines) | {context.credential_name.lower()}
    yield from _carried(headers.lines, dropped, is_open=context.is_open)
    if context.prefix:
        yield b"x-forwarded-prefix: %b\r\n" % context.prefix
    yield b"x-forwarded-for: %b\r\nx-real-ip: %b\r\n" % (address, address)
    yield b"x-forwarded-proto: %b\r\nx-forwarded-host: %b\r\n" % (context.scheme.encode(), host)


def _carried(headers: Headers, dropped: frozenset[bytes], *, is_open: bool) -> Iterable[bytes]:
    """Yield the client's own lines; `Authorization`, unless it is a gateway token, only to a program open to anyone."""
    for name, value in headers:
        if is_open and name == b"authorization" and name not in dropped:
            if not _is_gateway_token(value):
                yield b"authorization: %b\r\n" % value
            continue
        if name in dropped or _is_own(name):
            continue
        if name == b"cookie":
            if kept := strip_cookie(value):
                yield b"cookie: %b\r\n" % kept
        else:
            yield b"%b: %b\r\n" % (name, strip_token(value) if name == b"referer" else value)


@lru_cache(maxsize=1024)
def _is_own(name: bytes) -> bool:
    """Return whether only the edge writes this header: a client must not speak in its name."""
    plain = name.replace(b"_", b"-")  # many servers read `_` in a name as `-`
    return plain in _OWN or plain.startswith(b"x-forwarded")


def connection_options(headers: Headers) -> frozenset[bytes]:
    """Return the header names that `Connection` declares to be for one hop only."""
    named: set[bytes] = set()
    for name, value in headers:
        if name == b"connection" and value.lower() not in {b"keep-alive", b"close", b"upgrade"}:
            named.update(token.strip().lower() for token in value.split(b","))
    return frozenset(named)


def _has_upgrade_option(headers: Headers) -> bool:
    """Return whether `Connection` makes `Upgrade` count; a proxy may have passed on one that was meant for itself."""
    values = (value for name, value in headers if name == b"connection")
    return any(option.strip().lower() == b"upgrade" for value in values for option in value.split(b","))


def _is_gateway_token(authorization: bytes) -> bool:
    """Return whether a value of `Authorization` has a gateway token, as a bearer or as a password (HTTP Basic)."""
    scheme, _, value = authorization.partition(b" ")
    if scheme.lower() == b"basic":
        try:
            value = base64.b64decode(value + b"==")  # a program may read one without its padding
        except ValueError:
            return False
    return _TOKEN_PREFIX in value


def strip_token(target: bytes, *, only_gateway_tokens: bool = False) -> bytes:
    """Return `target` (or a URL) without the query parameter `token`, else unchanged byte for byte."""
    path, mark, query = target.partition(b"?")
    if not mark or (b"token" not in query and b"%" not in query):
        return target
    parts = query.split(b"&")
    kept = [part for part in parts if not _is_token(part, only_gateway_tokens=only_gateway_tokens)]
    if len(kept) == len(parts):
        return target
    return path + b"?" + b"&".join(kept) if kept else path


def _is_token(parameter: bytes, *, only_gateway_tokens: bool) -> bool:
    name, value = map(unquote_to_bytes, parameter.partition(b"=")[::2])
    return name == b"token" and (not only_gateway_tokens or value.startswith(_TOKEN_PREFIX))


def strip_cookie(value: bytes) -> bytes:
    """Return a `Cookie` value without the gateway token and the dashboard's session."""
    if COOKIE not in value and SESSION_COOKIE not in value:
        return value
    pairs = (pair.strip() for pair in value.split(b";"))
    return b"; ".join(pair for pair in pairs if not _is_credential(pair.partition(b"=")[0].strip()))


def _is_credential(name: bytes) -> bool:
    return name == COOKIE or name.endswith(SESSION_COOKIE)  # with the prefixes of HTTPS and of ports
