"""Request heads: what is refused, and what an agent's gateway gets to see. Pure.

The parser (llhttp, strict) refuses bad names, folded lines, bare CR or LF, several or malformed lengths, and a length
beside a transfer coding. This refuses what it lets through. Header names are lower-case throughout.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import unquote_to_bytes

from roost.hosts.client_address import seen_from_outside
from roost.net.hop_by_hop import HOP_BY_HOP

Headers = Sequence[tuple[bytes, bytes]]

COOKIE = b"gw_token"
_MOST_HEADERS = 256

# Written by us or by nobody: a caller must not speak in our name.
_OURS = HOP_BY_HOP | {
    b"authorization",
    b"content-length",
    b"expect",
    b"forwarded",
    b"host",
    b"x-real-ip",
    b"x-request-id",
}


class InvalidRequestHead(Exception):  # noqa: N818 - a refusal is the expected outcome of hostile input
    """The connection cannot be understood further: answer with `status` and close it."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        self.status = status
        self.message = message
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class RequestHead:
    """What decides how a request is carried. `length` is None without Content-Length."""

    host: str
    length: int | None
    chunked: bool
    websocket: bool
    expects: bool

    @property
    def has_body(self) -> bool:
        return self.chunked or bool(self.length)


def inspect(method: bytes, target: bytes, version: str, headers: Headers) -> RequestHead:
    """The facts of a request head. Raises Refused."""
    seen: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _SINGLE:
            if name in seen:
                raise InvalidRequestHead(HTTPStatus.BAD_REQUEST, "Repeated header")
            seen[name] = value
    _check_line(method, target, version)
    if len(headers) > _MOST_HEADERS:
        raise InvalidRequestHead(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Request header fields too large")
    coding = seen.get(b"transfer-encoding")
    if coding is not None and (coding.lower() != b"chunked" or version == "1.0"):
        raise InvalidRequestHead(HTTPStatus.BAD_REQUEST, "Unsupported transfer coding")
    if b"host" not in seen and version != "1.0":
        raise InvalidRequestHead(HTTPStatus.BAD_REQUEST, "Missing Host header")
    length = seen.get(b"content-length")
    return RequestHead(
        host=seen.get(b"host", b"").decode("latin-1"),
        length=None if length is None else int(length),
        chunked=coding is not None,
        websocket=seen.get(b"upgrade", b"").lower() == b"websocket" and method == b"GET" and version != "1.0",
        expects=seen.get(b"expect", b"").lower() == b"100-continue" and version != "1.0",
    )


_SINGLE = frozenset((b"host", b"content-length", b"transfer-encoding", b"upgrade", b"expect"))


def _check_line(method: bytes, target: bytes, version: str) -> None:
    if version not in {"1.0", "1.1"}:
        raise InvalidRequestHead(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "HTTP version not supported")
    if method in {b"CONNECT", b"TRACE"}:
        raise InvalidRequestHead(HTTPStatus.METHOD_NOT_ALLOWED, "Method not allowed")
    if b"#" in target or not target.isascii():
        raise InvalidRequestHead(HTTPStatus.BAD_REQUEST, "Malformed request target")
    if not target.startswith(b"/") and (method, target) != (b"OPTIONS", b"*"):
        raise InvalidRequestHead(HTTPStatus.MISDIRECTED_REQUEST, "Only the origin form of a request target is served")


@dataclass(frozen=True, slots=True)
class ForwardContext:
    """What we say of a request to the gateway, in our own name."""

    peer: str
    scheme: str
    request_id: str
    credential: tuple[bytes, bytes]


def forward(method: bytes, target: bytes, facts: RequestHead, headers: Headers, onward: ForwardContext) -> bytes:
    """The head for the gateway: ours in place of the caller's credential and of all that tells where it came from."""
    host, (credential_name, credential) = facts.host.encode("latin-1"), onward.credential
    peer, scheme = seen_from_outside(onward.peer).encode("latin-1"), onward.scheme.encode()
    lines = [
        b"%b %b HTTP/1.1\r\nhost: %b\r\n" % (method, without_token(target), host),
        *_carried(headers, nominated(headers) | {credential_name.lower()}),
        b"%b: %b\r\nx-request-id: %b\r\n" % (credential_name, credential, onward.request_id.encode()),
        b"x-forwarded-for: %b\r\nx-real-ip: %b\r\nx-forwarded-proto: %b\r\nx-forwarded-host: %b\r\n"
        % (peer, peer, scheme, host),
    ]
    if facts.websocket:
        lines.append(b"connection: Upgrade\r\nupgrade: websocket\r\n")
    elif facts.chunked:
        lines.append(b"transfer-encoding: chunked\r\n")
    elif facts.length is not None:
        lines.append(b"content-length: %d\r\n" % facts.length)
    lines.append(b"\r\n")
    return b"".join(lines)


def _carried(headers: Headers, dropped: frozenset[bytes]) -> Iterable[bytes]:
    for name, value in headers:
        if name in _OURS or name in dropped or _is_spoof(name):
            continue
        if name == b"cookie":
            kept = without_cookie(value)
            if not kept:
                continue
            yield b"cookie: %b\r\n" % kept
        elif name == b"referer":
            yield b"referer: %b\r\n" % without_token(value)
        else:
            yield b"%b: %b\r\n" % (name, value)


def _is_spoof(name: bytes) -> bool:
    """Many servers read `_` in a name as `-`; so do we where it would pass for a header of ours."""
    if b"_" in name:
        name = name.replace(b"_", b"-")
        return name in _OURS or name.startswith(b"x-forwarded")
    return name.startswith(b"x-forwarded")


def nominated(headers: Headers) -> frozenset[bytes]:
    """The header names that `Connection` declares to be for one hop only."""
    named: set[bytes] = set()
    for name, value in headers:
        if name == b"connection" and value.lower() not in {b"keep-alive", b"close", b"upgrade"}:
            named.update(token.strip().lower() for token in value.split(b","))
    return frozenset(named)


def without_token(target: bytes) -> bytes:
    """`target` (or a URL) without the query parameter `token`; all else stays as it was, byte for byte."""
    path, mark, query = target.partition(b"?")
    if not mark or (b"token" not in query and b"%" not in query):
        return target
    parts = query.split(b"&")
    kept = [part for part in parts if unquote_to_bytes(part.partition(b"=")[0]) != b"token"]
    if len(kept) == len(parts):
        return target
    return path + b"?" + b"&".join(kept) if kept else path


def without_cookie(value: bytes) -> bytes:
    """A `Cookie` value without ours."""
    if COOKIE not in value:
        return value
    pairs = (pair.strip() for pair in value.split(b";"))
    return b"; ".join(pair for pair in pairs if pair.partition(b"=")[0].strip() != COOKIE)
