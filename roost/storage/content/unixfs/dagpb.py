"""Canonical encoder and strict decoder of dag-pb nodes with UnixFS data (ipld/dag-pb, ipfs/unixfs).

The decoder rejects unordered, truncated and unknown fields, so that a block has one meaning.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from roost.storage.content.unixfs import varint
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.errors import MalformedContent

BLOCK_LIMIT = 2 * 1024**2
"""Bytes: the largest block that peers exchange (ipfs/specs, bitswap)."""
_MAX_LINKS = 65_536
_MAX_FIELDS = 2 * _MAX_LINKS
"""Maximum fields of a message; a field of two bytes costs more time than memory."""


class UnixfsKind(IntEnum):
    RAW = 0
    DIRECTORY = 1
    FILE = 2
    METADATA = 3
    SYMLINK = 4
    SHARD = 5


@dataclass(frozen=True, slots=True)
class PBLink:
    """A link; `size` is the declared, unverified size of all blocks below (Tsize), in bytes."""

    cid: Cid
    name: str
    size: int


@dataclass(frozen=True, slots=True)
class UnixfsData:
    """UnixFS data; `sizes` are the content bytes below each link of a file; `hash` and `fanout` are of shards.

    mode: POSIX permissions in the low 12 bits (UnixFS 1.5); the other bits are kept and have no meaning.
    """

    kind: UnixfsKind
    data: bytes = b""
    size: int | None = None
    sizes: Sequence[int] = ()
    hash: int | None = None
    fanout: int | None = None
    mode: int | None = None


@dataclass(frozen=True, slots=True)
class PBNode:
    unixfs: UnixfsData
    links: Sequence[PBLink] = field(default=())


def encode_node(links: Iterable[PBLink], unixfs: UnixfsData) -> bytes:
    varint_of = varint.encode_varint
    parts: list[bytes] = []
    for link in links:  # up to 100,000, so without a call for each field
        cid, name = bytes(link.cid), link.name.encode()
        message = b"\x0a%b%b\x12%b%b\x18%b" % (
            varint_of(len(cid)), cid, varint_of(len(name)), name, varint_of(link.size),
        )  # fmt: skip
        parts.append(b"\x12%b%b" % (varint_of(len(message)), message))
    parts.append(_bytes(1, _data(unixfs)))
    return b"".join(parts)


def leaf_frame(length: int) -> tuple[bytes, bytes]:
    """Return the bytes before and after the content of a dag-pb leaf of `length` bytes."""
    size = _number(3, length)
    before = _number(1, UnixfsKind.FILE) + (b"\x12" + varint.encode_varint(length) if length else b"")
    return b"\x0a" + varint.encode_varint(len(before) + length + len(size)) + before, size


def decode_node(block: bytes) -> PBNode:
    """Decode a node. Raises MalformedContent."""
    links: list[PBLink] = []
    data: bytes | None = None
    before = 0
    for number, value in _fields(block):
        match number, value:
            case 2, bytes() if not before:  # links after the data are an old but valid order
                links.append(_link(value))
            case 1, bytes() if data is None:
                data, before = value, len(links)
            case _:
                raise MalformedContent("a dag-pb node with an unknown or repeated field")
        if len(links) > _MAX_LINKS:
            raise MalformedContent("a dag-pb node with too many links")
    if data is None:
        raise MalformedContent("a dag-pb node without UnixFS data")
    return PBNode(_unixfs(data), links)


def _data(unixfs: UnixfsData) -> bytes:
    out = _number(1, unixfs.kind)
    out += _bytes(2, unixfs.data) if unixfs.data else b""
    out += _number(3, unixfs.size) if unixfs.size is not None else b""
    out += b"".join(_number(4, size) for size in unixfs.sizes)
    out += _number(5, unixfs.hash) if unixfs.hash is not None else b""
    out += _number(6, unixfs.fanout) if unixfs.fanout is not None else b""
    return out + (_number(7, unixfs.mode) if unixfs.mode is not None else b"")


def _number(place: int, value: int) -> bytes:
    return bytes((place << 3,)) + varint.encode_varint(value)


def _bytes(place: int, value: bytes) -> bytes:
    return bytes((place << 3 | 2,)) + varint.encode_varint(len(value)) + value


def _fields(message: bytes) -> Iterable[tuple[int, bytes | int]]:
    """Yield the fields of a protocol buffers message in order."""
    at = count = 0
    while at < len(message):
        if (count := count + 1) > _MAX_FIELDS:
            raise MalformedContent("a message with too many fields")
        key, at = varint.decode_varint(message, at)
        value, at = varint.decode_varint(message, at)
        match key & 7:
            case 0:
                yield key >> 3, value
            case 2 if at + value <= len(message):
                yield key >> 3, message[at : at + value]
                at += value
            case _:
                raise MalformedContent("a field that is cut off or of an unknown type")


def _link(message: bytes) -> PBLink:
    cid, name, size = None, "", 0
    last = 0
    for number, value in _fields(message):
        if number <= last:
            raise MalformedContent("a link with fields out of order")
        last = number
        match number, value:
            case 1, bytes():
                cid = Cid.from_bytes(value)
            case 2, bytes():
                name = _text(value)
            case 3, int():
                size = value
            case _:
                raise MalformedContent("a link with an unknown field")
    if cid is None:
        raise MalformedContent("a link to nothing")
    return PBLink(cid, name, size)


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise MalformedContent("a name that is not UTF-8") from None


def _unixfs(message: bytes) -> UnixfsData:
    kind: UnixfsKind | None = None
    data, sizes = b"", list[int]()
    numbers: dict[int, int] = {}
    for number, value in _fields(message):
        match number, value:
            case 1, int() if kind is None:
                kind = _kind(value)
            case 2, bytes():
                data = value
            case 4, int():
                sizes.append(value)
            case 4, bytes():  # the packed form, which readers must accept
                sizes += _packed(value)
            case ((3 | 5 | 6 | 7), int()):
                numbers[number] = value
            case 8, bytes():
                continue  # modification time, not used
            case _:
                raise MalformedContent("UnixFS data with an unknown field")
    if kind is None:
        raise MalformedContent("UnixFS data of no kind")
    return UnixfsData(kind, data, numbers.get(3), sizes, numbers.get(5), numbers.get(6), numbers.get(7))


def _kind(value: int) -> UnixfsKind:
    try:
        return UnixfsKind(value)
    except ValueError:
        raise MalformedContent("UnixFS data of an unknown kind") from None


def _packed(data: bytes) -> list[int]:
    found: list[int] = []
    at = 0
    while at < len(data):
        value, at = varint.decode_varint(data, at)
        found.append(value)
        if len(found) > _MAX_LINKS:
            raise MalformedContent("a message with too many fields")
    return found
