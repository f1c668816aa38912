"""Response heads: the parts of a gateway's response that clients get. Pure.

A gateway is hostile: framing is always rewritten, hop-by-hop headers are dropped, and so are cookies that replace
the gateway token or reach beyond the agent's own host, and `NEL`, by which browsers report URLs, also with a token.
"""

from html import escape
from http import HTTPStatus

from starlette.responses import HTMLResponse, Response

from roost.http.edge.forwarded_head import COOKIE, connection_options
from roost.http.server.own_response import status_line
from roost.http.server.request_head import Headers
from roost.net.hop_by_hop import HOP_BY_HOP

NO_REFERRER = b"referrer-policy: no-referrer\r\n"
_DROPPED = HOP_BY_HOP | {b"content-length", b"nel", b"set-cookie2", b"x-request-id"}
_SIGN_IN_ADVICE = (
    "<p>This is the address of an agent. A link signs a browser in: <code>roost open AGENT</code>, or &ldquo;Open its "
    "own page&rdquo; in the dashboard. A program sends the agent's gateway token, which <code>roost agents token AGENT"
    "</code> prints: <code>Authorization: Bearer TOKEN</code>.</p>\n"
)


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
