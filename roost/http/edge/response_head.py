"""Response heads: the parts of a gateway's response that clients get, and the edge's own short responses. Pure.

A gateway is hostile: framing is always rewritten, hop-by-hop headers are dropped, and so are cookies that replace
the gateway token or reach beyond the agent's own host, and `NEL`, by which browsers report URLs, also with a token.
"""

from collections.abc import Mapping
from functools import lru_cache
from html import escape
from http import HTTPStatus

from starlette.responses import HTMLResponse, Response

from roost.http.server.request_head import COOKIE, Headers, connection_options
from roost.net.hop_by_hop import HOP_BY_HOP
from roost.web import errors
from roost.web.url_rule import ErrorForm

CLOSE = b"connection: close\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
NO_REFERRER = b"referrer-policy: no-referrer\r\n"
_DROPPED = HOP_BY_HOP | {b"content-length", b"nel", b"set-cookie2", b"x-request-id"}
_FORWARDED_METHODS = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"
_ERROR_HEADERS: Mapping[int, Mapping[str, str]] = {
    HTTPStatus.METHOD_NOT_ALLOWED: {"Allow": _FORWARDED_METHODS},
    HTTPStatus.TOO_MANY_REQUESTS: {"Retry-After": "1"},  # to requests beyond those that may wait on a connection
}
_SIGN_IN_ADVICE = (
    "<p>This is the address of an agent. A link signs a browser in: <code>roost open AGENT</code>, or &ldquo;Open its "
    "own page&rdquo; in the dashboard. A program sends the agent's gateway token, which <code>roost agents token AGENT"
    "</code> prints: <code>Authorization: Bearer TOKEN</code>.</p>\n"
)
_PHRASES: Mapping[int, bytes] = {status.value: status.phrase.encode() for status in HTTPStatus}


def forward_response(status: int, headers: Headers, host: str, own_lines: bytes, cookie_prefix: bytes = b"") -> bytes:
    """Return the head for the client. `own_lines`: whole header lines of the edge."""
    dropped = connection_options(headers)
    parts = [_status_line(status)]
    for name, value in headers:
        if name in _DROPPED or name in dropped:
            continue
        if name != b"set-cookie":
            parts += (name, b": ", value, b"\r\n")
        elif _may_set(value, host):
            parts += (name, b": ", cookie_prefix, value.lstrip(), b"\r\n")
    parts += (own_lines, b"\r\n")
    return b"".join(parts)


def rejection_bytes(status: int, message: str, request_id: str, code: str | None = None) -> bytes:
    """Return the last response of a connection: an error in the form of the agents API."""
    error = errors.status_response(ErrorForm.AGENTS, status, message, _ERROR_HEADERS.get(status), code)
    return response_bytes(error, request_id, close=True)


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


def response_bytes(response: Response, request_id: str, *, close: bool = False, head: bool = False) -> bytes:
    """Return a whole response; `head` leaves out the body of a response to HEAD."""
    return b"".join(
        (
            _status_line(response.status_code),
            *(b"%b: %b\r\n" % header for header in response.raw_headers),
            b"x-request-id: %b\r\n%b\r\n" % (request_id.encode(), CLOSE if close else b""),
            b"" if head else bytes(response.body),
        )
    )


@lru_cache(maxsize=600)
def _status_line(status: int) -> bytes:
    return b"HTTP/1.1 %d %b\r\n" % (status, _PHRASES.get(status, b""))


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
