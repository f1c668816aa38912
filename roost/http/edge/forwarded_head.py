"""Heads of requests as an agent's gateway or program gets them, and of its responses as clients get them. Pure.

Those of requests that another server answers, and of its responses, keep all but what concerns one connection.

A gateway is hostile: framing is always rewritten, hop-by-hop headers are dropped, and so are cookies that replace
the gateway token or reach beyond the agent's own host, and `NEL`, by which browsers report URLs, also with a token.
"""

import base64
from collections.abc import Iterable
from functools import lru_cache
from html import escape
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from starlette.responses import HTMLResponse, Response

from roost.http.server.own_response import status_line
from roost.http.server.request_head import Headers, RequestHead, RequestHeaders
from roost.http.stack.client_address import forwarded_client_ip
from roost.identity import credentials
from roost.identity.gateway_tokens import GATEWAY_TOKEN_PREFIX
from roost.net.http_request import HOP_BY_HOP

COOKIE = b"gw_token"
SESSION_COOKIE = credentials.SESSION_COOKIE.encode()
_TOKEN_PREFIX = GATEWAY_TOKEN_PREFIX.encode()
HOPS = b"x-roost-hops"
"""Says to another server how many servers have passed a request on; one from a client is dropped."""
_OWN = HOP_BY_HOP | {HOPS, *b"authorization content-length expect forwarded host x-real-ip x-request-id".split()}
NO_REFERRER = b"referrer-policy: no-referrer\r\n"
_PASSED = frozenset({b"authorization", b"host"})
_DROPPED = HOP_BY_HOP | {b"content-length", b"nel", b"set-cookie2", b"x-request-id"}
_SIGN_IN_ADVICE = (
    "<p>This is the address of an agent. A link signs a browser in: <code>roost open AGENT</code>, or &ldquo;Open its "
    "own page&rdquo; in the dashboard. A program sends the agent's gateway token, which <code>roost agents token AGENT"
    "</code> prints: <code>Authorization: Bearer TOKEN</code>.</p>\n"
)


class _ForwardContext(NamedTuple):
    """What is the same for the requests of a connection to one program. `client` is an IP address."""

    client: str
    scheme: str
    credential_name: bytes
    prefix: bytes
    is_open: bool


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
        _forwarded_lines(headers, context),
        b"" if credential is None else b"%b: %b\r\n" % credential,
        b"x-request-id: %b\r\n" % request_id.encode(),
    ]
    lines += (_framing_lines(head), b"\r\n")
    return b"".join(lines)


def pass_request(head: RequestHead, client: str, request_id: str, hops: int) -> bytes:
    """Return the head for another server, to which this one is a proxy that it trusts."""
    dropped = connection_options(head.headers.lines)
    kept = b"".join(
        b"%b: %b\r\n" % (name, value)
        for name, value in head.headers.lines
        if name in _PASSED or not (name in dropped or _is_own(name))
    )
    lines = b"%b %b HTTP/1.1\r\n%b" % (head.method, head.target, kept)
    lines += b"x-forwarded-for: %b\r\nx-request-id: %b\r\n" % (client.encode("latin-1"), request_id.encode())
    return b"%b%b: %d\r\n%b\r\n" % (lines, HOPS, hops, _framing_lines(head))


def _framing_lines(head: RequestHead) -> bytes:
    if head.websocket:
        return b"connection: Upgrade\r\nupgrade: websocket\r\n"
    if head.headers.chunked:
        return b"transfer-encoding: chunked\r\n"
    return b"" if head.headers.length is None else b"content-length: %d\r\n" % head.headers.length


def _forwarded_lines(headers: RequestHeaders, context: _ForwardContext) -> bytes:
    """Return the lines that a program gets with each request that has these headers."""
    if headers.forwarded is None or headers.forwarded[0] != context:
        headers.forwarded = context, b"".join(_forwarded(headers, context))
    return headers.forwarded[1]


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


def select_cookies(headers: Headers, prefix: str) -> list[tuple[bytes, bytes]]:
    """Return the headers of a request with the cookies of one port alone, under the names that its agent knows.

    Browsers send the cookies of a host to all of its ports (RFC 6265, 8.5), so the names of each port's cookies get a
    prefix, and neither an agent nor its programs get the cookies of another one.
    """
    start = prefix.encode()
    selected: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name != b"cookie":
            selected.append((name, value))
            continue
        own = [pair.strip().removeprefix(start) for pair in value.split(b";") if pair.strip().startswith(start)]
        if own:
            selected.append((name, b"; ".join(own)))
    return selected


def forward_response(status: int, headers: Headers, host: str, own_lines: bytes, cookie_prefix: bytes = b"") -> bytes:
    """Return the head for the client. `own_lines`: whole header lines of the edge."""
    dropped = connection_options(headers)
    parts = [status_line(status)]
    for name, value in headers:
        if name in _DROPPED or name in dropped:
            continue
        if name != b"set-cookie":
            parts += (name, b": ", value, b"\r\n")
        elif _may_set(value, host):
            parts += (name, b": ", cookie_prefix, value.lstrip(), b"\r\n")
    parts += (own_lines, b"\r\n")
    return b"".join(parts)


def pass_response(status: int, headers: Headers, own_lines: bytes) -> bytes:
    """Return the head of another server's response for the client. `own_lines`: whole header lines of this server."""
    dropped = connection_options(headers) | HOP_BY_HOP | {b"content-length", b"x-request-id"}
    kept = b"".join(b"%b: %b\r\n" % (name, value) for name, value in headers if name not in dropped)
    return b"%b%b%b\r\n" % (status_line(status), kept, own_lines)


def error_page(error: Response, message: str) -> Response:
    """Return an error as a page for people, with its status and headers."""
    title = f"{error.status_code} {HTTPStatus(error.status_code).phrase}"
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width">'
        f"<h1>{title}</h1><p>{escape(message)}</p>\n"
    )
    if error.status_code == HTTPStatus.UNAUTHORIZED:
        page += _SIGN_IN_ADVICE
    kept = {name: value for name, value in error.headers.items() if not name.startswith("content-")}
    policy = {"Content-Security-Policy": "default-src 'none'", "Cache-Control": "no-store"}
    return HTMLResponse(page, error.status_code, kept | policy)


def _may_set(cookie: bytes, host: str) -> bool:
    """Return whether a gateway may set this cookie.

    It must not be the gateway token, nor nameless (browsers would send its value as a name), nor for a parent domain.
    """
    if COOKIE not in cookie and b"domain" not in cookie.lower():
        return True
    pair, *attributes = cookie.split(b";")
    name, equals, value = pair.partition(b"=")
    shown = name.strip() if equals and name.strip() else (value if equals else name).strip().partition(b"=")[0].strip()
    if shown == COOKIE:
        return False
    parts = (attribute.partition(b"=") for attribute in attributes)
    domains = [value.strip().lstrip(b".").lower() for key, _, value in parts if key.strip().lower() == b"domain"]
    return all(domain in {b"", host.encode("latin-1")} for domain in domains)
