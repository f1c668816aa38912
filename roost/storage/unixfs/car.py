"""CARs (ipld/car, version 1): a header with roots, then blocks. Written frame by frame; read as the bytes come, in
bounded memory, every block checked against its CID before it counts.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from roost.storage.unixfs import varint
from roost.storage.unixfs.cid import Cid
from roost.storage.unixfs.dagpb import BLOCK_LIMIT
from roost.storage.unixfs.errors import MalformedContent

_HEADER_LIMIT = 64 * 1024
_CID_ROOM = 256  # bytes; a CID before its block is shorter
_VERSION = b"\x67version\x01"
_ROOTS = b"\x65roots"
_TAG_CID = b"\xd8\x2a"


def header(roots: Sequence[Cid]) -> bytes:
    """The frame that a CAR begins with (dag-cbor)."""
    links = b"".join(_TAG_CID + _head(2, len(bytes(cid)) + 1) + b"\0" + bytes(cid) for cid in roots)
    body = b"\xa2" + _ROOTS + _head(4, len(roots)) + links + _VERSION
    return varint.encode(len(body)) + body


def frame(cid: Cid, length: int) -> bytes:
    """What stands before a block of `length` bytes."""
    name = bytes(cid)
    return varint.encode(len(name) + length) + name


@dataclass(frozen=True, slots=True)
class CarBlock:
    """A block of a CAR: `offset` is where its bytes are in the CAR."""

    cid: Cid
    offset: int
    data: bytes


class CarReader:
    """Feed it a CAR in pieces; it gives the blocks that are whole. `roots` is there once the header has come."""

    def __init__(self) -> None:
        self.roots: Sequence[Cid] | None = None
        self._held = bytearray()
        self._at = 0

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[CarBlock]:
        """Take the iterator to its end before feeding more. Raises Malformed."""
        self._held += data
        while (body := self._frame()) is not None:
            start, content = body
            if self.roots is None:
                self.roots = _roots(content)
                continue
            cid, begin = Cid.read(content)
            block = content[begin:]
            if not cid.names(block):
                raise MalformedContent(f"A block of the CAR is not what its CID says: {cid}")
            yield CarBlock(cid, start + begin, block)

    def finish(self) -> None:
        """Raises Malformed for a CAR that is cut off."""
        if self._held or self.roots is None:
            raise MalformedContent("The CAR is cut off")

    def _frame(self) -> tuple[int, bytes] | None:
        """Where the next frame's content is in the CAR, and the content, if it is whole."""
        if not self._held or (len(self._held) < 9 and self._held[-1] > 0x7F and all(b > 0x7F for b in self._held)):
            return None
        length, begin = varint.decode(bytes(self._held[:9]))
        most = _HEADER_LIMIT if self.roots is None else BLOCK_LIMIT + _CID_ROOM
        if not 0 < length <= most:
            raise MalformedContent("The CAR has an empty or too large section")
        if len(self._held) < begin + length:
            return None
        content = bytes(self._held[begin : begin + length])
        del self._held[: begin + length]
        start = self._at + begin
        self._at = start + length
        return start, content


def written(roots: Sequence[Cid], blocks: Iterable[tuple[Cid, bytes]]) -> Iterator[bytes]:
    """A CAR of these blocks, in pieces."""
    yield header(roots)
    for cid, block in blocks:
        yield frame(cid, len(block))
        yield block


def _head(major: int, number: int) -> bytes:
    """The head of a CBOR item (RFC 8949, 3.1)."""
    if number < 24:
        return bytes((major << 5 | number,))
    size = 1 if number < 1 << 8 else 2 if number < 1 << 16 else 4
    return bytes((major << 5 | {1: 24, 2: 25, 4: 26}[size],)) + number.to_bytes(size, "big")


def _roots(body: bytes) -> Sequence[Cid]:
    """The header's roots: a map of `roots` and `version` 1, in dag-cbor's one order, and nothing else."""
    try:
        return _read_roots(body)
    except IndexError:
        raise MalformedContent("The CAR's header is cut off") from None


def _read_roots(body: bytes) -> Sequence[Cid]:
    if not body.startswith(b"\xa2" + _ROOTS):
        raise MalformedContent("The CAR has no header of version 1")
    count, at = _length(body, 1 + len(_ROOTS), 4)
    roots: list[Cid] = []
    for _ in range(count):
        if body[at : at + 2] != _TAG_CID:
            raise MalformedContent("The CAR names a root that is no CID")
        size, at = _length(body, at + 2, 2)
        if body[at] != 0 or at + size > len(body):
            raise MalformedContent("The CAR names a root that is no CID")
        roots.append(Cid.exactly(body[at + 1 : at + size]))
        at += size
    if body[at:] != _VERSION:
        raise MalformedContent("The CAR has no header of version 1")
    return roots


def _length(body: bytes, at: int, major: int) -> tuple[int, int]:
    first = body[at]
    if first >> 5 != major or first & 31 > 26:
        raise MalformedContent("The CAR's header is not what it should be")
    number = first & 31
    if number < 24:
        return number, at + 1
    size = 1 << number - 24
    return int.from_bytes(body[at + 1 : at + 1 + size], "big"), at + 1 + size
