"""The protocol of the egress proxy: heads of requests, errors, and streams of bytes.

A head is parsed strictly (RFC 9112): an ambiguous one is refused. The forwarded head is rewritten: without hop-by-hop
fields, with `Host` from the target and with our own framing of the body, so that nothing hidden in a head reaches the
upstream. Streams are bounded in memory (a slow reader slows the sender), counted, and end when idle.
"""

import asyncio
import re
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field

from roost.core import clock
from roost.core.problem import ProblemKind
from roost.net.errors import EgressProblem, InvalidTarget
from roost.net.host_port import HostPort, parse_host_port
from roost.net.http_request import HOP_BY_HOP


class InvalidProxyRequest(InvalidTarget):
    message = "This is an HTTP proxy: send CONNECT host:port or an absolute http:// URL"


class HeadTooLarge(EgressProblem):
    kind = ProblemKind.TOO_LARGE
    reason = "head_too_large"
    message = "The request's head is too large"


class HeadTooSlow(EgressProblem):
    kind = ProblemKind.INVALID
    reason = "head_too_slow"
    message = "The request's head took too long"


class TooManyConnections(EgressProblem):
    kind = ProblemKind.LIMITED
    reason = "too_many_connections"
    message = "This agent has too many connections open"


class ConnectionIdle(EgressProblem):
    kind = ProblemKind.UNAVAILABLE
    reason = "idle"
    message = "Nothing moved on the connection for too long"


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


Count = Callable[[int], None]

_BLOCK_BYTES = 128 * 1024
_MAX_LINE = 4096  # a chunk's size line, a trailer line
_MAX_TRAILERS = 64
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\t\x20-\x7e\x80-\xff]*)?\r\n")


@dataclass
class ByteCounts:
    """Bytes that an agent sent (`up`) and received (`down`), and the time of the last transfer."""

    up: int = 0
    down: int = 0
    moved_at: float = field(default_factory=clock.monotonic_seconds)

    def add_sent(self, count: int) -> None:
        self.up += count
        self.moved_at = clock.monotonic_seconds()

    def add_received(self, count: int) -> None:
        self.down += count
        self.moved_at = clock.monotonic_seconds()


async def copy_bytes(source: asyncio.StreamReader, sink: asyncio.StreamWriter, count: Count) -> None:
    """Copy until the source ends."""
    while data := await source.read(_BLOCK_BYTES):
        await _write(sink, data)
        count(len(data))


async def copy_bytes_and_end(source: asyncio.StreamReader, sink: asyncio.StreamWriter, count: Count) -> None:
    """Copy until the source ends and forward the end; the other direction stays open."""
    await copy_bytes(source, sink, count)
    if not sink.is_closing():
        sink.write_eof()


async def pump_body(source: asyncio.StreamReader, sink: asyncio.StreamWriter, length: int | None, count: Count) -> None:
    """Copy a request body of `length` bytes, or a chunked one.

    Raises InvalidProxyRequest; EOFError when the source ends early.
    """
    if length is not None:
        return await _copy_exactly(source, sink, length, count)
    while size := await _read_chunk_size(source):
        await _write(sink, b"%x\r\n" % size)
        await _copy_exactly(source, sink, size, count)
        if await source.readexactly(2) != b"\r\n":
            raise InvalidProxyRequest("A chunk is longer than its declared size")
        await _write(sink, b"\r\n")
    for _ in range(_MAX_TRAILERS):
        if await _read_line(source) == b"\r\n":
            return await _write(sink, b"0\r\n\r\n")  # no trailers: they could smuggle fields past the head
    raise InvalidProxyRequest(f"The body has more than {_MAX_TRAILERS} trailer lines")


async def run_both(
    up: Coroutine[None, None, None],
    down: Coroutine[None, None, None],
    traffic: ByteCounts,
    idle: float,
    *,
    until_down: bool = False,
) -> None:
    """Run both directions until both have ended (or, with `until_down`, until the second has).

    The first failure ends the other direction and is raised. Raises ConnectionIdle when nothing moved for `idle`
    seconds.
    """
    tasks = [asyncio.create_task(up), asyncio.create_task(down)]
    pending = set(tasks)
    try:
        while tasks[1] in pending or (pending and not until_down):
            rest = traffic.moved_at + idle - clock.monotonic_seconds()
            if rest <= 0:
                raise ConnectionIdle
            done, pending = await asyncio.wait(pending, timeout=rest, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for task in pending:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def close_gracefully(writer: asyncio.StreamWriter, seconds: float) -> None:
    """Close after the pending output is sent; drop the rest after `seconds`."""
    writer.close()
    try:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(seconds):
                await writer.wait_closed()
    finally:
        writer.transport.abort()


async def _copy_exactly(source: asyncio.StreamReader, sink: asyncio.StreamWriter, length: int, count: Count) -> None:
    while length:
        data = await source.read(min(length, _BLOCK_BYTES))
        if not data:
            raise EOFError
        await _write(sink, data)
        length -= len(data)
        count(len(data))


async def _write(sink: asyncio.StreamWriter, data: bytes) -> None:
    if sink.is_closing():
        raise ConnectionResetError  # asyncio raises in drain, uvloop refuses the write as a programming error
    sink.write(data)
    await sink.drain()


async def _read_chunk_size(source: asyncio.StreamReader) -> int:
    found = _CHUNK_SIZE.fullmatch(await _read_line(source))
    if found is None:
        raise InvalidProxyRequest("A chunk size is not a hexadecimal number")
    return int(found[1], 16)


async def _read_line(source: asyncio.StreamReader) -> bytes:
    try:
        line = await source.readuntil(b"\r\n")
    except asyncio.LimitOverrunError:
        line = b""
    if not 0 < len(line) <= _MAX_LINE:
        raise InvalidProxyRequest(f"A chunk size or trailer line is longer than {_MAX_LINE} bytes")
    return line
