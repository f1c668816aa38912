"""Strict reader of zip archives (PKWARE APPNOTE 6.3) that are wholly in memory. Pure.

The archive must be exactly its entries, in any order but without gaps and overlaps, the central directory, and the end
record. So two readers cannot see different files in it, and no entry is read twice. Links, devices, encryption, zip64
and methods other than store and deflate are refused. Declared sizes are checked against the bytes that come out.
"""

import stat
import struct
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from roost.agents.library.skills.errors import InvalidBundle

ENTRIES_LIMIT = 1000
"""Maximum number of entries, folders included."""
COMMENT_LIMIT = 1024
"""Maximum bytes of the comment at the end, where Git writes the id of a commit."""

_END = struct.Struct("<4s4H2LH")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_EXTRA = struct.Struct("<2H")
_DESCRIPTOR_SIGNATURE = b"PK\x07\x08"

_ENCRYPTED, _HAS_DESCRIPTOR, _PATCHED, _STRONG, _MASKED = 1, 1 << 3, 1 << 5, 1 << 6, 1 << 13
_REFUSED_FLAGS = {_ENCRYPTED: "encrypted", _STRONG: "encrypted", _MASKED: "encrypted", _PATCHED: "a patch"}
_STORED, _DEFLATED = 0, 8
_NEWEST_VERSION = 63
_ZIP64, _UNICODE_PATH = 0x0001, 0x7075
_UNIX, _MACOS = 3, 19
_SYMLINK_ADVICE = {stat.S_IFLNK: "a symbolic link", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket"}


@dataclass(frozen=True)
class ZipEntry:
    """A file, or a folder with an empty content; `path` has no slash at its end."""

    path: str
    content: bytes
    is_folder: bool
    is_executable: bool


@dataclass(frozen=True)
class _CentralRecord:
    name: bytes
    path: str
    flags: int
    method: int
    crc: int
    packed_size: int
    size: int
    offset: int
    mode: int


def read_zip_entries(data: bytes, size_limit: int) -> Iterator[ZipEntry]:
    """Yield the entries of an archive; holds one content at a time. Raises InvalidBundle.

    size_limit: maximum bytes of all contents.
    """
    start, end, count = _read_end(data)
    records = _with_slashes(sorted(_read_directory(data, start, end, count), key=lambda record: record.offset))
    if sum(record.size for record in records) > size_limit:
        raise InvalidBundle(f"The files are larger than {size_limit // 1000**2} MB in all")
    at = 0
    for record in records:
        if record.offset != at:
            raise InvalidBundle(f"{record.path!r}: entries overlap or leave a gap")
        begin = _check_local_header(data, record)
        at = _skip_descriptor(data, begin + record.packed_size, record)
        if at > start:
            raise InvalidBundle(f"{record.path!r} reaches into the directory of the archive")
        content = _unpack(memoryview(data)[begin : begin + record.packed_size], record)
        is_folder = record.path.endswith("/")
        yield ZipEntry(record.path.removesuffix("/"), content, is_folder, not is_folder and bool(record.mode & 0o111))
    if at != start:
        raise InvalidBundle("The archive has bytes that belong to no entry")


def _with_slashes(records: Sequence[_CentralRecord]) -> Sequence[_CentralRecord]:
    """Take backslashes as separators, as tools of Windows write them, unless a name has both kinds."""
    if any("\\" in record.path and "/" in record.path for record in records):
        return records
    changed = [replace(record, path=record.path.replace("\\", "/")) for record in records]
    for record in changed:
        _check_record(record)
    return changed


def _read_end(data: bytes) -> tuple[int, int, int]:
    """Return where the central directory starts and ends, and the number of its records."""
    end = data.rfind(b"PK\x05\x06", -_END.size - COMMENT_LIMIT)
    if not data.startswith(b"PK") or end < 0 or end + _END.size > len(data):
        raise InvalidBundle("Not a zip archive, or one that is cut off")
    _, disk, first_disk, here, count, size, start, comment = _END.unpack_from(data, end)
    if end + _END.size + comment != len(data):
        raise InvalidBundle("The archive has bytes behind its end")
    if 0xFFFF in (here, count) or 0xFFFFFFFF in (size, start):
        raise InvalidBundle("zip64 archives are not supported")
    if disk or first_disk or here != count:
        raise InvalidBundle("Archives in parts are not supported")
    if count > ENTRIES_LIMIT:
        raise InvalidBundle(f"More than {ENTRIES_LIMIT} entries")
    if start + size != end:
        raise InvalidBundle("The directory of the archive is not at its end")
    return start, end, count


def _read_directory(data: bytes, at: int, end: int, count: int) -> Iterator[_CentralRecord]:
    for _ in range(count):
        if at + _CENTRAL.size > end:
            raise InvalidBundle("The directory of the archive is cut off")
        fields = _CENTRAL.unpack_from(data, at)
        signature, made_by, needed, flags, method, _, _, crc, packed_size, size = fields[:10]
        name_size, extra_size, comment_size, disk, _, attributes, offset = fields[10:]
        at += _CENTRAL.size
        name = data[at : at + name_size]
        extra = data[at + name_size : at + name_size + extra_size]
        at += name_size + extra_size + comment_size
        if signature != b"PK\x01\x02" or disk or at > end:
            raise InvalidBundle("The directory of the archive is malformed")
        if needed & 0xFF > _NEWEST_VERSION:
            raise InvalidBundle(f"The archive needs a reader of version {(needed & 0xFF) / 10}")
        path = _read_path(name)
        _check_extra(extra, path, name)
        mode = attributes >> 16 if made_by >> 8 in (_UNIX, _MACOS) else 0
        record = _CentralRecord(name, path, flags, method, crc, packed_size, size, offset, mode)
        _check_record(record)
        yield record
    if at != end:
        raise InvalidBundle("The directory of the archive has more bytes than records")


def _read_path(name: bytes) -> str:
    """Decode a name as UTF-8, flagged or not: that is how archivers of today write it."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        raise InvalidBundle(f"{name[:100]!r} is not UTF-8") from None


def _check_extra(extra: bytes, path: str, name: bytes) -> None:
    at = 0
    while at < len(extra):
        if at + _EXTRA.size > len(extra):
            raise InvalidBundle(f"{path!r} has a malformed extra field")
        kind, size = _EXTRA.unpack_from(extra, at)
        value = extra[at + _EXTRA.size : at + _EXTRA.size + size]
        at += _EXTRA.size + size
        if at > len(extra):
            raise InvalidBundle(f"{path!r} has a malformed extra field")
        if kind == _ZIP64:
            raise InvalidBundle(f"{path!r}: zip64 entries are not supported")
        if kind == _UNICODE_PATH and value[5:] != name:  # behind a version and a checksum
            raise InvalidBundle(f"{path!r} has a second name")


def _check_record(record: _CentralRecord) -> None:
    for flag, reason in _REFUSED_FLAGS.items():
        if record.flags & flag:
            raise InvalidBundle(f"{record.path!r} is {reason}")
    if record.method not in (_STORED, _DEFLATED):
        raise InvalidBundle(f"{record.path!r} is compressed by method {record.method}; store and deflate are supported")
    if 0xFFFFFFFF in (record.size, record.packed_size, record.offset):
        raise InvalidBundle(f"{record.path!r}: zip64 entries are not supported")
    is_folder = record.path.endswith("/")
    kind = stat.S_IFMT(record.mode)
    if kind not in (0, stat.S_IFDIR if is_folder else stat.S_IFREG):
        raise InvalidBundle(f"{record.path!r} is {_SYMLINK_ADVICE.get(kind, 'not a file')}")
    if is_folder and record.size:
        raise InvalidBundle(f"{record.path!r} is a folder with content")


def _check_local_header(data: bytes, record: _CentralRecord) -> int:
    """Compare the entry's own header with its record; return where its data begin."""
    at = record.offset
    if at + _LOCAL.size > len(data):
        raise InvalidBundle(f"{record.path!r} is cut off")
    signature, _, flags, method, _, _, crc, packed_size, size, name_size, extra_size = _LOCAL.unpack_from(data, at)
    at += _LOCAL.size
    name, extra = data[at : at + name_size], data[at + name_size : at + name_size + extra_size]
    found = (crc, packed_size, size)
    wanted = (record.crc, record.packed_size, record.size)
    is_deferred = record.flags & _HAS_DESCRIPTOR and found == (0, 0, 0)
    is_same = name == record.name and method == record.method and flags == record.flags
    if signature != b"PK\x03\x04" or not is_same or (found != wanted and not is_deferred):
        raise InvalidBundle(f"{record.path!r}: the entry and the directory of the archive differ")
    _check_extra(extra, record.path, name)
    return at + name_size + extra_size


def _skip_descriptor(data: bytes, at: int, record: _CentralRecord) -> int:
    """Return the position behind the sizes that follow the data of an entry written as a stream."""
    if not record.flags & _HAS_DESCRIPTOR:
        return at
    sizes = struct.pack("<3L", record.crc, record.packed_size, record.size)
    for descriptor in (_DESCRIPTOR_SIGNATURE + sizes, sizes):
        if data.startswith(descriptor, at):
            return at + len(descriptor)
    raise InvalidBundle(f"{record.path!r}: the entry and the directory of the archive differ")


def _unpack(packed: memoryview, record: _CentralRecord) -> bytes:
    """Decompress at most the declared size, and compare size and checksum."""
    if record.method == _STORED:
        content = bytes(packed)
    else:
        decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
        try:
            content = decompressor.decompress(packed, record.size + 1)  # a byte more shows that it is longer
        except zlib.error:
            raise InvalidBundle(f"{record.path!r} cannot be decompressed") from None
        if not decompressor.eof or decompressor.unused_data or decompressor.unconsumed_tail:
            raise InvalidBundle(f"{record.path!r} does not have its declared size")
    if len(content) != record.size:
        raise InvalidBundle(f"{record.path!r} does not have its declared size")
    if zlib.crc32(content) != record.crc:
        raise InvalidBundle(f"{record.path!r} does not have its checksum")
    return content
