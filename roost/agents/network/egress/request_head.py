"""Parse the head of a proxy request (RFC 9112) strictly: an ambiguous head is refused.

The forwarded head is rewritten: without hop-by-hop fields, with `Host` from the target and with our own framing of
the body, so that nothing hidden in a head reaches the upstream.
"""

import asyncio
import re
from dataclasses import dataclass

from roost.agents.network.egress.errors import HeadTooLarge, HeadTooSlow, InvalidProxyRequest
from roost.net.host_port import HostPort, parse_host_port
from roost.net.http_request import HOP_BY_HOP

MAX_HEAD = 32 * 1024

_TOKEN = rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_REQUEST_LINE = re.compile(rb"(" + _TOKEN + rb") ([\x21-\x7e]+) (HTTP/1\.[01])")
_FIELD = re.compile(rb"(" + _TOKEN + rb"):([\t\x20-\x7e\x80-\xff]*)")
_ABSOLUTE = re.compile(rb"http://([^/?#]+)([/?][^#]*)?", re.IGNORECASE)
_LENGTH = re.compile(rb"[0-9]{1,18}")
_NOT_FORWARDED = HOP_BY_HOP | {b"content-length", b"host"}

Fields = list[tuple[bytes, bytes]]


@dataclass(frozen=True)
class ProxyRequestHead:
    """Parsed head.

    length: bytes of the body; None for a chunked one.
    onward: the head for the upstream; empty when the client asked for a tunnel.
    """

    target: HostPort
    length: int | None = 0
    onward: bytes = b""

    @property
    def tunnel(self) -> bool:
        return not self.onward


async def read_head(reader: asyncio.StreamReader, timeout: float) -> bytes:  # noqa: ASYNC109 - one deadline for the whole head
    """Read the head including its empty line.

    Raises HeadTooSlow, HeadTooLarge, and EOFError when the client left.
    """
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


def parse_head(head: bytes) -> ProxyRequestHead:
    """Parse a request head. Raises InvalidTarget."""
    first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    found = _REQUEST_LINE.fullmatch(first)
    if found is None:
        raise InvalidProxyRequest
    method, target, version = found.groups()
    fields = [_field(line) for line in lines]
    length = _body_length(fields, version)
    if method == b"CONNECT":
        if length != 0:
            raise InvalidProxyRequest("A CONNECT request must not have a body")
        return ProxyRequestHead(parse_host_port(target.decode("ascii")))
    return _absolute(method, target, version, fields, length)


def _absolute(method: bytes, target: bytes, version: bytes, fields: Fields, length: int | None) -> ProxyRequestHead:
    found = _ABSOLUTE.fullmatch(target)
    if found is None:
        raise InvalidProxyRequest
    authority, path = found[1], found[2] or b"/"
    if path.startswith(b"?"):
        path = b"/" + path
    lines = [b"%b %b %b" % (method, path, version), b"Host: " + authority]
    dropped = _NOT_FORWARDED.union(*(_listed(value) for name, value in fields if name.lower() == b"connection"))
    lines += [b"%b: %b" % field for field in fields if field[0].lower() not in dropped]
    if length is None:
        lines.append(b"Transfer-Encoding: chunked")
    elif length or any(name.lower() == b"content-length" for name, _ in fields):
        lines.append(b"Content-Length: %d" % length)
    lines.append(b"Connection: close")
    return ProxyRequestHead(parse_host_port(authority.decode("ascii"), 80), length, b"\r\n".join(lines) + b"\r\n\r\n")


def _field(line: bytes) -> tuple[bytes, bytes]:
    found = _FIELD.fullmatch(line)  # a folded line starts with a blank, and so does not match
    if found is None:
        raise InvalidProxyRequest("A header line is not `name: value`")
    return found[1], found[2].strip(b" \t")


def _body_length(fields: Fields, version: bytes) -> int | None:
    """RFC 9112 section 6 without its leniencies: one Content-Length or one plain `chunked`, never both or twice."""
    lengths = [value for name, value in fields if name.lower() == b"content-length"]
    codings = [value.lower() for name, value in fields if name.lower() == b"transfer-encoding"]
    hosts = [value for name, value in fields if name.lower() == b"host"]
    if len(lengths) + len(codings) > 1 or len(hosts) > 1:
        raise InvalidProxyRequest("Content-Length, Transfer-Encoding or Host appears twice, or both lengths are given")
    if codings:
        if codings != [b"chunked"] or version == b"HTTP/1.0":
            raise InvalidProxyRequest("The only supported transfer coding is chunked, in HTTP/1.1")
        return None
    if lengths and not _LENGTH.fullmatch(lengths[0]):
        raise InvalidProxyRequest("Content-Length is not an integer of at most 18 digits")
    return int(lengths[0]) if lengths else 0


def _listed(value: bytes) -> set[bytes]:
    return {item.strip().lower() for item in value.split(b",")}
