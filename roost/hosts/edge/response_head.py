"""Response heads: what a gateway's answer may carry out, and our own short answers. Pure.

Whatever comes from a gateway is hostile: framing is always written anew, hop-by-hop headers stay behind, and no
cookie leaves that is ours or reaches beyond the agent's own host.
"""

from collections.abc import Iterable, Mapping
from http import HTTPStatus

from starlette.responses import JSONResponse, Response

from roost.hosts.edge.request_head import COOKIE, Headers, nominated
from roost.net.hop_by_hop import HOP_BY_HOP

CLOSE = b"connection: close\r\n"
CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
_DROPPED = HOP_BY_HOP | {b"content-length", b"set-cookie2", b"x-request-id"}
_PHRASES: Mapping[int, bytes] = {status.value: status.phrase.encode() for status in HTTPStatus}


def carry(status: int, headers: Headers, host: str, request_id: str, framing: bytes) -> bytes:
    """The head for the client. `framing` is whole header lines: what delimits the body, and what becomes of the
    connection.
    """
    return b"".join(
        (
            _status_line(status),
            *_carried(headers, host),
            b"x-request-id: %b\r\n%b\r\n" % (request_id.encode(), framing),
        )
    )


def switch(headers: Headers, host: str, request_id: str) -> bytes:
    """The head of a 101 answer to a WebSocket handshake."""
    return carry(101, headers, host, request_id, b"connection: Upgrade\r\nupgrade: websocket\r\n")


def interim(status: int, headers: Headers, host: str) -> bytes:
    """The head of an informational answer, which has no body."""
    return b"".join((_status_line(status), *_carried(headers, host), b"\r\n"))


def error(status: int, message: str, request_id: str, *, close: bool = False, head: bool = False) -> bytes:
    """An error of our own, in the contract's form."""
    return of(JSONResponse({"error": message}, status), request_id, close=close, head=head)


def of(response: Response, request_id: str, *, close: bool = False, head: bool = False) -> bytes:
    """A whole answer of our own. `head` when a HEAD was asked, so that no body may follow."""
    return b"".join(
        (
            _status_line(response.status_code),
            *(b"%b: %b\r\n" % header for header in response.raw_headers),
            b"x-request-id: %b\r\n" % request_id.encode(),
            CLOSE if close else b"",
            b"\r\n",
            b"" if head else bytes(response.body),
        )
    )


def _status_line(status: int) -> bytes:
    return b"HTTP/1.1 %d %b\r\n" % (status, _PHRASES.get(status, b""))


def _carried(headers: Headers, host: str) -> Iterable[bytes]:
    dropped = nominated(headers)
    for name, value in headers:
        if name in _DROPPED or name in dropped or (name == b"set-cookie" and not _may_set(value, host)):
            continue
        yield b"%b: %b\r\n" % (name, value)


def _may_set(cookie: bytes, host: str) -> bool:
    """Whether a gateway may set this cookie: not ours (nor one without a name that a browser would send as ours),
    and not for a parent domain, which other agents share.
    """
    pair, *attributes = cookie.split(b";")
    name, equals, value = pair.partition(b"=")
    shown = name.strip() if equals and name.strip() else (value if equals else name).strip().partition(b"=")[0].strip()
    if shown == COOKIE:
        return False
    domains = [value.strip().lstrip(b".").lower() for key, _, value in map(_attribute, attributes) if key == b"domain"]
    return all(domain in {b"", host.encode("latin-1")} for domain in domains)


def _attribute(text: bytes) -> tuple[bytes, bytes, bytes]:
    key, equals, value = text.partition(b"=")
    return key.strip().lower(), equals, value
