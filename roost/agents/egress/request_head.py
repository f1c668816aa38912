"""The head of a proxy request (RFC 9112), read strictly: what could be understood in two ways is refused.

The head that goes on is written anew from what was understood. Hop-by-hop fields and the proxy's own end here; `Host`
comes from the target; the framing of the body is ours. So nothing that a client hides in a head reaches the upstream.
"""

import asyncio
import re
from dataclasses import dataclass

from roost.agents.egress.errors import HeadTooLarge, HeadTooSlow, InvalidProxyRequest
from roost.agents.egress.host_port import HostPort, parse

MAX_HEAD = 32 * 1024

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE = re.compile(rb"(" + _TOKEN + rb") ([\x21-\x7e]+) (HTTP/1\.[01])")
_FIELD = re.compile(rb"(" + _TOKEN + rb"):([\t\x20-\x7e\x80-\xff]*)")
_ABSOLUTE = re.compile(rb"http://([^/?#]+)([/?][^#]*)?", re.IGNORECASE)
_LENGTH = re.compile(rb"[0-9]{1,18}")
_ENDS_HERE = frozenset(
    [
        b"connection",
        b"content-length",
        b"host",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    ]
)

Fields = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class ProxyRequestHead:
    """`length` is that of the body in bytes; None for a chunked one.

    `onward` is the head for the upstream, and empty when the client asked for a tunnel.
    """

    target: HostPort
    length: int | None = 0
    onward: bytes = b""

    @property
    def tunnel(self) -> bool:
        return not self.onward


async def read(reader: asyncio.StreamReader, timeout: float) -> bytes:  # noqa: ASYNC109 - one deadline for the whole head
    """The head up to and with its empty line. Raises HeadTooSlow, HeadTooLarge, and EOFError when the client left."""
    try:
        async with asyncio.timeout(timeout):
            head = await reader.readuntil(b"\r\n\r\n")
    except TimeoutError:
        raise HeadTooSlow from None
    except asyncio.LimitOverrunError:
        raise HeadTooLarge from None
    if len(head) > MAX_HEAD:
        raise HeadTooLarge
    return head


def understand(head: bytes) -> ProxyRequestHead:
    """Raises BadRequest."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    found = _REQUEST_LINE.fullmatch(first)
    if found is None:
        raise InvalidProxyRequest
    method, target, version = found.groups()
    fields = [_field(line) for line in lines]
    length = _body_length(fields, version)
    if method == b"CONNECT":
        if length != 0:
            raise InvalidProxyRequest("CONNECT has no body")
        return ProxyRequestHead(parse(target.decode("ascii")))
    return _absolute(method, target, version, fields, length)


def _absolute(method: bytes, target: bytes, version: bytes, fields: Fields, length: int | None) -> ProxyRequestHead:
    found = _ABSOLUTE.fullmatch(target)
    if found is None:
        raise InvalidProxyRequest
    authority, path = found[1], found[2] or b"/"
    if path.startswith(b"?"):
        path = b"/" + path
    lines = [b"%b %b %b" % (method, path, version), b"Host: " + authority]
    dropped = _ENDS_HERE.union(*(_listed(value) for name, value in fields if name.lower() == b"connection"))
    lines += [b"%b: %b" % field for field in fields if field[0].lower() not in dropped]
    if length is None:
        lines.append(b"Transfer-Encoding: chunked")
    elif length or any(name.lower() == b"content-length" for name, _ in fields):
        lines.append(b"Content-Length: %d" % length)
    lines.append(b"Connection: close")
    return ProxyRequestHead(parse(authority.decode("ascii"), 80), length, b"\r\n".join(lines) + b"\r\n\r\n")


def _field(line: bytes) -> tuple[bytes, bytes]:
    found = _FIELD.fullmatch(line)  # a folded line starts with a blank, and so does not match
    if found is None:
        raise InvalidProxyRequest("A header line is malformed")
    return found[1], found[2].strip(b" \t")


def _body_length(fields: Fields, version: bytes) -> int | None:
    """RFC 9112 section 6 without its leniencies: one Content-Length or one plain `chunked`, never both or twice."""
    lengths = [value for name, value in fields if name.lower() == b"content-length"]
    codings = [value.lower() for name, value in fields if name.lower() == b"transfer-encoding"]
    hosts = [value for name, value in fields if name.lower() == b"host"]
    if len(lengths) + len(codings) > 1 or len(hosts) > 1:
        raise InvalidProxyRequest("Content-Length, Transfer-Encoding and Host exclude each other or stand twice")
    if codings:
        if codings != [b"chunked"] or version == b"HTTP/1.0":
            raise InvalidProxyRequest("Only the chunked transfer coding is understood")
        return None
    if lengths and not _LENGTH.fullmatch(lengths[0]):
        raise InvalidProxyRequest("Content-Length is not a number")
    return int(lengths[0]) if lengths else 0


def _listed(value: bytes) -> set[bytes]:
    return {item.strip().lower() for item in value.split(b",")}
