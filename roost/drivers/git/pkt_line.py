"""The pkt-line format of Git's protocols (gitprotocol-common(5)), and requests of version 2."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from enum import Enum

from roost.drivers.git.remote_contract import RemoteRefused

_MAX_LINE = 65520
_HEAD = 4
_REMARK_CHARACTERS = 1000
_PACKFILE = b"000dpackfile\n"
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
        head = self._take(_HEAD)
        if not _HEX.issuperset(head):
            raise MalformedPacket
        size = int(head, 16)
        if size <= PacketMarker.RESPONSE_END.value:
            return PacketMarker(size)
        if not _HEAD < size <= _MAX_LINE or not await self._fill(size - _HEAD):
            raise MalformedPacket
        return self._take(size - _HEAD)

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


async def insert_remark(response: AsyncIterable[bytes], remark: str) -> AsyncGenerator[bytes]:
    """Yield the response to a fetch of version 2 with a remark that Git shows as `remote: ...`.

    It goes to the second channel of the section `packfile` (gitprotocol-v2(5), output of fetch); a response without one
    stays as it is.
    """
    data = f"\x02{remark[:_REMARK_CHARACTERS]}\n".encode()
    packet, head = b"%04x%b" % (len(data) + _HEAD, data), b""
    is_begun = False
    async for chunk in response:
        if is_begun:
            yield chunk
            continue
        head += chunk
        before, line, after = head.partition(_PACKFILE)
        if line or len(head) > _MAX_LINE:
            is_begun = True
            yield before + line + packet + after if line else head
    if not is_begun and head:
        yield head


def _encode_line(text: str) -> bytes:
    data = f"{text}\n".encode()
    return b"%04x%b" % (len(data) + _HEAD, data)
