"""The pkt-line format of Git's protocols (gitprotocol-common(5)), and requests of version 2."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from contextlib import suppress
from enum import Enum

from roost.drivers.git.remote_contract import RemoteRefused

_MAX_LINE = 65520
_HEAD = 4
_REMARK_CHARACTERS = 1000
_CHANNELS = b"\x01\x02\x03"
_HEX = frozenset(b"0123456789abcdefABCDEF")


class PacketMarker(Enum):
    """A packet without data; the value is its length field."""

    FLUSH = 0
    DELIMITER = 1
    RESPONSE_END = 2


class MalformedPacket(RemoteRefused):
    message = "The server does not answer in version 2 of Git's protocol"


class PacketReader:
    """Reads packets from the chunks of a response. Every method raises MalformedPacket."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = bytearray()

    async def read(self) -> bytes | PacketMarker | None:
        """Return the data of the next packet, a marker, or None at the end of the response."""
        if not await self._fill(_HEAD):
            if self._buffer:
                raise MalformedPacket
            return None
        head = bytes(self._buffer[:_HEAD])
        if not _HEX.issuperset(head):
            raise MalformedPacket
        size = int(head, 16)
        if size <= PacketMarker.RESPONSE_END.value:
            self._take(_HEAD)
            return PacketMarker(size)
        if not _HEAD < size <= _MAX_LINE or not await self._fill(size):
            raise MalformedPacket
        return self._take(size)[_HEAD:]

    async def read_rest(self) -> AsyncGenerator[bytes]:
        """Yield all bytes after the last packet, also those of one that is malformed."""
        yield self._take(len(self._buffer))
        async for chunk in self._chunks:
            yield chunk

    async def read_lines(self) -> AsyncGenerator[bytes]:
        """Yield the lines up to a marker or the end of the response. Raises RemoteRefused if a line is an error."""
        while isinstance(line := await self.read(), bytes):
            if line.startswith(b"ERR "):
                raise RemoteRefused("The server of the Git repository refuses the request")
            yield line.removesuffix(b"\n")

    async def _fill(self, size: int) -> bool:
        while len(self._buffer) < size:
            try:
                self._buffer += await anext(self._chunks)
            except StopAsyncIteration:
                return False
        return True

    def _take(self, size: int) -> bytes:
        taken = bytes(self._buffer[:size])
        del self._buffer[:size]
        return taken


def encode_command(command: str, capabilities: Iterable[str], arguments: Iterable[str]) -> bytes:
    """Return a request of version 2 (gitprotocol-v2(5), Command Request)."""
    head = b"".join(map(_encode_line, (f"command={command}", *capabilities)))
    return head + b"0001" + b"".join(map(_encode_line, arguments)) + b"0000"


def format_advertisement(ref: str, commit: str | None, capabilities: str) -> bytes:
    """Return a repository's only reference, or that it has none (gitprotocol-pack(5), Reference Discovery)."""
    listed = f"{commit} {ref}" if commit else f"{'0' * 40} capabilities^{{}}"
    return _encode_line(f"{listed}\0{capabilities}") + b"0000"


async def insert_remark(response: AsyncIterable[bytes], remark: str) -> AsyncGenerator[bytes]:
    """Yield the response to a fetch of any version with a remark that Git shows as `remote: ...`.

    It goes to the second channel, before the first packet of a channel (gitprotocol-pack(5), Packfile Data); a response
    without channels stays as it is.
    """
    reader = PacketReader(aiter(response))
    is_before = True
    with suppress(MalformedPacket):  # a response without packets, such as a bare pack, passes as it is
        while is_before and (packet := await reader.read()) is not None:
            if isinstance(packet, PacketMarker):
                yield b"%04x" % packet.value
                continue
            if packet[0] in _CHANNELS:
                is_before = False
                yield _encode_packet(f"\x02{remark[:_REMARK_CHARACTERS]}\n".encode())
            yield _encode_packet(packet)
    async for chunk in reader.read_rest():
        yield chunk


def _encode_line(text: str) -> bytes:
    return _encode_packet(f"{text}\n".encode())


def _encode_packet(data: bytes) -> bytes:
    return b"%04x%b" % (len(data) + _HEAD, data)
