"""CARs (ipld/car): header and frames of version 1 to write, and a reader of versions 1 and 2 that verifies every block.

The reader's memory is bounded. The index of a CAR of version 2 is not read: blocks are found by their own bytes.
"""

import struct
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from roost.storage.content.unixfs import varint
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.dagpb import BLOCK_LIMIT
from roost.storage.content.unixfs.errors import MalformedContent

_HEADER_LIMIT = 64 * 1024
_MAX_CID_BYTES = 256  # bytes
_VERSION = b"\x67version\x01"
_ROOTS = b"\x65roots"
_TAG_CID = b"\xd8\x2a"
_PRAGMA_2 = b"\x0a\xa1\x67version\x02"
_HEADER_2 = struct.Struct("<16xQQQ")  # characteristics, offset and size of the CAR of version 1, offset of the index
_HEAD_SIZE_2 = len(_PRAGMA_2) + _HEADER_2.size


def encode_header(roots: Sequence[Cid]) -> bytes:
    """Encode the header of a CAR (dag-cbor) with its length."""
    links = b"".join(_TAG_CID + _cbor_head(2, len(bytes(cid)) + 1) + b"\0" + bytes(cid) for cid in roots)
    body = b"\xa2" + _ROOTS + _cbor_head(4, len(roots)) + links + _VERSION
    return varint.encode_varint(len(body)) + body


def encode_frame(cid: Cid, length: int) -> bytes:
    """Encode the bytes before a block of `length` bytes."""
    name = bytes(cid)
    return varint.encode_varint(len(name) + length) + name


@dataclass(frozen=True, slots=True)
class CarBlock:
    """A block of a CAR; `offset` is the position of its data in the CAR."""

    cid: Cid
    offset: int
    data: bytes


class CarReader:
    """Incremental CAR parser; `roots` is set after the header."""

    def __init__(self) -> None:
        self.roots: Sequence[Cid] | None = None
        self._buffer = bytearray()
        self._at = 0
        self._received = 0
        self._payload: range | None = None
        self._min_size = 0

    def feed(self, data: bytes | bytearray | memoryview) -> Iterator[CarBlock]:
        """Yield the blocks that `data` completes; exhaust it before the next call. Raises MalformedContent."""
        self._buffer += data
        self._received += len(data)
        if not self._keep_payload():
            return
        while (body := self._frame()) is not None:
            start, content = body
            if self.roots is None:
                self.roots = _decode_header(content)
                continue
            cid, begin = Cid.read(content)
            block = content[begin:]
            if not cid.is_verifiable:
                raise MalformedContent(
                    f"A block of the CAR has the hash function {cid.hash:#x}; it must be sha2-256: {cid}"
                )
            if not cid.matches(block):
                raise MalformedContent(f"A block of the CAR does not match its CID {cid}")
            yield CarBlock(cid, start + begin, block)

    def finish(self) -> None:
        """Raise MalformedContent if the CAR is cut off."""
        if self._buffer or self.roots is None or self._received < self._min_size:
            raise MalformedContent("The CAR is cut off")

    def _keep_payload(self) -> bool:
        """Drop what one of version 2 has around its CAR of version 1; return whether the place of that is known."""
        if self._payload is None:
            self._payload = self._locate_payload()
        if self._payload is None:
            return False
        before = min(max(0, self._payload.start - self._at), len(self._buffer))
        del self._buffer[:before]
        self._at += before
        del self._buffer[max(0, self._payload.stop - self._at) :]
        return True

    def _locate_payload(self) -> range | None:
        head = bytes(self._buffer[:_HEAD_SIZE_2])
        if not head.startswith(_PRAGMA_2[: len(head)]):
            return range(sys.maxsize)  # version 1
        if len(head) < _HEAD_SIZE_2:
            return None
        offset, size, index = _HEADER_2.unpack_from(head, len(_PRAGMA_2))
        end = offset + size
        if offset < _HEAD_SIZE_2 or end > sys.maxsize or 0 < index < end:
            raise MalformedContent("The CAR's header of version 2 has a wrong offset")
        self._min_size = max(end, index + 1 if index else 0)
        return range(offset, end)

    def _frame(self) -> tuple[int, bytes] | None:
        """Return the offset and the content of the next frame, if it is complete."""
        # A varint has at most 9 bytes; as long as each byte says that another one follows, its value is not known.
        if not self._buffer or (
            len(self._buffer) < 9 and self._buffer[-1] > 0x7F and all(b > 0x7F for b in self._buffer)
        ):
            return None
        length, begin = varint.decode_varint(bytes(self._buffer[:9]))
        most = _HEADER_LIMIT if self.roots is None else BLOCK_LIMIT + _MAX_CID_BYTES
        if not 0 < length <= most:
            raise MalformedContent("The CAR has an empty or too large section")
        if len(self._buffer) < begin + length:
            return None
        content = bytes(self._buffer[begin : begin + length])
        del self._buffer[: begin + length]
        start = self._at + begin
        self._at = start + length
        return start, content


def _cbor_head(major: int, number: int) -> bytes:
    """Encode the head of a CBOR item (RFC 8949, 3.1)."""
    if number < 24:
        return bytes((major << 5 | number,))
    size = 1 if number < 1 << 8 else 2 if number < 1 << 16 else 4
    return bytes((major << 5 | {1: 24, 2: 25, 4: 26}[size],)) + number.to_bytes(size, "big")


def _decode_header(body: bytes) -> Sequence[Cid]:
    """Decode the roots of a header: a canonical dag-cbor map of `roots` and `version` 1."""
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
        roots.append(Cid.from_bytes(body[at + 1 : at + size]))
        at += size
    if body[at:] != _VERSION:
        raise MalformedContent("The CAR has no header of version 1")
    return roots


def _length(body: bytes, at: int, major: int) -> tuple[int, int]:
    first = body[at]
    if first >> 5 != major or first & 31 > 26:
        raise MalformedContent("The CAR's header is not canonical dag-cbor")
    number = first & 31
    if number < 24:
        return number, at + 1
    size = 1 << number - 24
    return int.from_bytes(body[at + 1 : at + 1 + size], "big"), at + 1 + size
