"""Packs of Git objects and their indexes, both of version 2 (gitformat-pack(5)). Objects are whole, without deltas."""

import hashlib
import struct
import zlib
from collections.abc import Iterable
from enum import IntEnum
from functools import partial
from io import BufferedRandom

_HEADER = struct.Struct(">4sII")
_INDEX_HEADER = b"\xfftOc\x00\x00\x00\x02"
_LARGE_OFFSET = 1 << 31
_LEVEL, _STORED = 1, 0
_BLOCK_BYTES = 65_535
_SAMPLE_BYTES, _RANDOM_BYTES = 512, 200  # so many random bytes have 221 values; text and machine code have half of them


_new_sha1 = partial(hashlib.sha1, usedforsecurity=False)


class ObjectKind(IntEnum):
    COMMIT = 1
    TREE = 2
    BLOB = 3


class PackWriter:
    """Writes objects, each once, to an empty file that is open for reading too. Blocking."""

    def __init__(self, file: BufferedRandom) -> None:
        self._file = file
        self._objects: dict[bytes, tuple[int, int]] = {}  # checksum and offset by id
        self._end = file.write(bytes(_HEADER.size))

    @property
    def count(self) -> int:
        return len(self._objects)

    def add_object(self, kind: ObjectKind, data: bytes) -> bytes:
        """Add an object and return its id."""
        found = object_id(kind, data)
        if found not in self._objects:
            compressed = zlib.compress(data, _LEVEL) if _is_compressible(data) else _store_bytes(data)
            entry = _entry_header(kind, len(data)) + compressed
            self._objects[found] = (zlib.crc32(entry), self._end)
            self._end += self._file.write(entry)
        return found

    def begin_blob(self, size: int) -> "LargeBlob":
        """Begin a blob of `size` bytes that arrives in parts. Nothing else can be added before its end."""
        return LargeBlob(self, self._file, size)

    def finish_blob(self, found: bytes, checksum: int, end: int) -> None:
        """Record the blob that was written behind the last object, or take it back if the pack has it."""
        if found in self._objects:
            self._file.seek(self._end)
            self._file.truncate()
        else:
            self._objects[found] = (checksum, self._end)
            self._end = end

    def finish_pack(self) -> tuple[str, bytes]:
        """Complete the file, and return its checksum, which names it, and its index."""
        self._file.seek(0)
        self._file.write(_HEADER.pack(b"PACK", 2, len(self._objects)))
        self._file.seek(0)
        checksum = hashlib.file_digest(self._file, _new_sha1).digest()
        self._file.write(checksum)
        self._file.flush()
        index = b"".join(_index_parts(self._objects)) + checksum
        return checksum.hex(), index + _new_sha1(index).digest()


class LargeBlob:
    """A blob that a pack gets in parts."""

    def __init__(self, pack: PackWriter, file: BufferedRandom, size: int) -> None:
        self._pack = pack
        self._file = file
        self._size = self._left = size
        self._hash = _new_sha1(b"blob %d\0" % size)
        self._compressor = zlib.compressobj(_LEVEL)
        self._checksum = 0
        self._write(_entry_header(ObjectKind.BLOB, size))

    def write_part(self, part: bytes) -> None:
        """Write the next part. Raises ValueError beyond the size."""
        if self._left == self._size and not _is_compressible(part):
            self._compressor = zlib.compressobj(_STORED)
        self._left -= len(part)
        if self._left < 0:
            raise ValueError("A blob is longer than its size")
        self._hash.update(part)
        self._write(self._compressor.compress(part))

    def finish(self) -> bytes:
        """Return the id. Raises ValueError before the whole size was written."""
        if self._left:
            raise ValueError("A blob is shorter than its size")
        self._write(self._compressor.flush())
        found = self._hash.digest()
        self._pack.finish_blob(found, self._checksum, self._file.tell())
        return found

    def _write(self, data: bytes) -> None:
        self._checksum = zlib.crc32(data, self._checksum)
        self._file.write(data)


def object_id(kind: ObjectKind, data: bytes) -> bytes:
    """Return the id of an object, in binary."""
    digest = _new_sha1(b"%b %d\0" % (kind.name.lower().encode(), len(data)))
    digest.update(data)
    return digest.digest()


def _entry_header(kind: ObjectKind, size: int) -> bytes:
    """Return the header of an object: kind and size, seven bits a byte after the first four."""
    header = bytearray((kind << 4 | size & 15,))
    size >>= 4
    while size:
        header[-1] |= 128
        header.append(size & 127)
        size >>= 7
    return bytes(header)


def _is_compressible(data: bytes) -> bool:
    """Guess from a sample of the middle, because compressing random bytes takes most of the time of a pack."""
    begin = max(0, len(data) - _SAMPLE_BYTES) // 2
    return len(data) < _SAMPLE_BYTES or len(set(data[begin : begin + _SAMPLE_BYTES])) < _RANDOM_BYTES


def _store_bytes(data: bytes) -> bytes:
    """Return a zlib stream of stored blocks (RFC 1950, RFC 1951), without the initialisation of a compressor."""
    parts = [b"\x78\x01"]
    for begin in range(0, len(data), _BLOCK_BYTES):
        block = data[begin : begin + _BLOCK_BYTES]
        is_last = begin + _BLOCK_BYTES >= len(data)
        parts += [struct.pack("<BHH", is_last, len(block), len(block) ^ 0xFFFF), block]
    return b"".join((*parts, zlib.adler32(data).to_bytes(4, "big")))


def _index_parts(objects: dict[bytes, tuple[int, int]]) -> Iterable[bytes]:
    """Yield an index up to its checksums."""
    ids = sorted(objects)
    counts = [0] * 256
    for found in ids:
        counts[found[0]] += 1
    fanout = [sum(counts[: first + 1]) for first in range(256)]
    offsets = [objects[found][1] for found in ids]
    large = [offset for offset in offsets if offset >= _LARGE_OFFSET]
    positions = iter(range(len(large)))
    short = [offset if offset < _LARGE_OFFSET else _LARGE_OFFSET | next(positions) for offset in offsets]
    yield _INDEX_HEADER
    yield struct.pack(">256I", *fanout)
    yield b"".join(ids)
    yield struct.pack(f">{len(ids)}I", *(objects[found][0] for found in ids))
    yield struct.pack(f">{len(ids)}I", *short)
    yield struct.pack(f">{len(large)}Q", *large)
