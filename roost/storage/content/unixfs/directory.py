"""Folders: one node with a link for each entry, or a tree of shards (HAMT) for large ones.

Names are any UTF-8 without a slash; callers restrict names from clients further.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import mmh3

from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_PB, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.errors import InvalidEntryName, MalformedContent
from roost.storage.content.unixfs.importer import DagBlock, DagTree
from roost.storage.content.unixfs.profile import SHARD_ABOVE, ImportProfile

MURMUR3_X64_64 = 0x22
FANOUT = 256
HASH_LENGTH = 8
"""Bytes of the hash of a name, each of which selects a slot of one shard."""


@dataclass(frozen=True, slots=True)
class DirectoryEntry:
    """Entry of a folder; `size` is the content below in bytes, `tsize` the same with all nodes."""

    name: str
    cid: Cid
    size: int
    tsize: int


def hash_name(name: str) -> bytes:
    """Return the first 64 bits of MurmurHash3 x64-128; the first byte selects the slot in the first shard."""
    return mmh3.hash64(name.encode(), signed=False)[0].to_bytes(HASH_LENGTH, "big")


def build_folder(profile: ImportProfile, entries: Iterable[DirectoryEntry], mode: int | None = None) -> DagTree:
    """Build the blocks of a folder, without those of its entries. Raises InvalidEntryName, MalformedContent.

    `mode` are its permissions (`0o755`); None stores none.
    """
    try:
        ordered = sorted(entries, key=lambda entry: entry.name.encode())
    except UnicodeEncodeError:  # bytes that are not UTF-8, see entry_name.py
        raise InvalidEntryName from None
    former = ""  # so that an empty name counts as a duplicate
    for entry in ordered:
        if entry.name == former or "/" in entry.name or "\0" in entry.name:
            raise InvalidEntryName
        former = entry.name
    nodes = _nodes(profile, ordered, mode)
    below = sum(entry.tsize for entry in ordered)
    root = nodes[-1]
    own = sum(len(node.data) for node in nodes)
    return DagTree(root.cid, sum(entry.size for entry in ordered), own + below, nodes=nodes)


def _nodes(profile: ImportProfile, entries: Sequence[DirectoryEntry], mode: int | None) -> list[DagBlock]:
    if profile.shard_by_block or _estimate_size(entries) <= SHARD_ABOVE:
        links = [PBLink(entry.cid, entry.name, entry.tsize) for entry in entries]
        data = dagpb.encode_node(links, UnixfsData(UnixfsKind.DIRECTORY, mode=mode))
        if not profile.shard_by_block or len(data) <= SHARD_ABOVE:
            return [DagBlock(Cid.for_block(DAG_PB, data, profile.version), data)]
    nodes: list[DagBlock] = []
    _shard(profile, [(hash_name(entry.name), entry) for entry in entries], 0, nodes, mode)
    return nodes


def _estimate_size(entries: Sequence[DirectoryEntry]) -> int:
    return sum(len(entry.name.encode()) + len(bytes(entry.cid)) for entry in entries)


def _shard(
    profile: ImportProfile,
    entries: Sequence[tuple[bytes, DirectoryEntry]],
    depth: int,
    nodes: list[DagBlock],
    mode: int | None = None,
) -> PBLink:
    """Build the shards of entries whose hashes share `depth` bytes; append them to `nodes`, the root last.

    Only the root has the mode.
    """
    if depth == HASH_LENGTH:  # equal 64-bit hashes are crafted
        raise MalformedContent("Too many names with the same hash")
    places: dict[int, list[tuple[bytes, DirectoryEntry]]] = {}
    for entry in entries:
        places.setdefault(entry[0][depth], []).append(entry)
    links: list[PBLink] = []
    bits = 0
    for place, inside in sorted(places.items()):
        bits |= 1 << place
        if len(inside) == 1:
            entry = inside[0][1]
            links.append(PBLink(entry.cid, f"{place:02X}{entry.name}", entry.tsize))
        else:
            below = _shard(profile, inside, depth + 1, nodes)
            links.append(PBLink(below.cid, f"{place:02X}", below.size))
    field = bits.to_bytes((bits.bit_length() + 7) // 8, "big")
    unixfs = UnixfsData(UnixfsKind.SHARD, field, hash=MURMUR3_X64_64, fanout=FANOUT, mode=mode)
    data = dagpb.encode_node(links, unixfs)
    block = DagBlock(Cid.for_block(DAG_PB, data, profile.version), data)
    nodes.append(block)
    return PBLink(block.cid, "", len(data) + sum(link.size for link in links))
