"""Walk of a whole folder: all files, folders and symbolic links below it, with few queries.

Names are those of files: bytes that are not UTF-8 are lone surrogates (`entry_name.py`). Nodes are verified; the
content of files is not read. Unsafe and repeated names are refused, because the tree may be written to disk.
"""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from roost.storage.content.errors import TooDeep, TooManyEntries
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader, ContentStat
from roost.storage.content.unixfs.cid import DAG_PB, RAW, Cid
from roost.storage.content.unixfs.dagpb import UnixfsKind
from roost.storage.content.unixfs.directory import FANOUT, HASH_LENGTH, hash_name
from roost.storage.content.unixfs.entry_name import decode_entry_name
from roost.storage.content.unixfs.errors import InvalidEntryName, MalformedContent

MAX_ENTRIES = 1_000_000
MAX_DEPTH = 256
_BATCH_SIZE = 500
_LONGEST_NAME = 255
"""Bytes; the limit of Linux."""
_LABEL_LENGTH = 2
_SLOTS = {f"{slot:02X}": bytes((slot,)) for slot in range(FANOUT)}


class MemberKind(StrEnum):
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"


@dataclass(frozen=True, slots=True)
class TreeMember:
    """A file, folder or symbolic link of a tree; the path of the root is empty.

    size: bytes of a file, or of the target of a link; 0 for a folder. mode: permissions, or None if not stored.
    """

    path: str
    kind: MemberKind
    cid: Cid
    size: int = 0
    mode: int | None = None
    target: bytes = b""


_KINDS = {
    UnixfsKind.RAW: MemberKind.FILE,
    UnixfsKind.FILE: MemberKind.FILE,
    UnixfsKind.DIRECTORY: MemberKind.FOLDER,
    UnixfsKind.SHARD: MemberKind.FOLDER,
    UnixfsKind.SYMLINK: MemberKind.LINK,
}


@dataclass(frozen=True, slots=True)
class _Pending:
    """A node to read: a member of `parent`, or a shard of that member, to which `slots` lead.

    The path is not joined yet, because deep folders have long ones. size: as the link says.
    """

    cid: Cid
    parent: str = ""
    name: str = ""
    depth: int = 0
    size: int = 0
    slots: bytes = b""

    @property
    def path(self) -> str:
        return f"{self.parent}/{self.name}" if self.parent else self.name


async def walk_tree(
    reader: ContentReader,
    scope: ContentScope,
    root: Cid,
    *,
    max_entries: int = MAX_ENTRIES,
    max_depth: int = MAX_DEPTH,
    finds_leaves: bool = True,
) -> AsyncGenerator[TreeMember]:
    """Yield the root and all members below it, a folder before its entries.

    `max_entries` also limits shards, of which regular folders have fewer; `max_depth` is the number of nested folders
    below the root. Without `finds_leaves`, files of one raw block take no query: they may be missing, and have the
    size that the folder says.

    Raises ContentNotFound, ContentDamaged, TooDeep, TooManyEntries, InvalidEntryName, MalformedContent and
    BlobStoreFailed.
    """
    entries = shards = 0
    pending = [_Pending(root)]
    while pending:
        batch = pending[-_BATCH_SIZE:]
        del pending[-_BATCH_SIZE:]
        if not finds_leaves:
            for leaf in filter(_is_leaf, batch):
                yield TreeMember(leaf.path, MemberKind.FILE, leaf.cid, leaf.size)
            batch = [node for node in batch if not _is_leaf(node)]
        blocks = await reader.find_blocks(scope, [node.cid for node in batch])
        for node, block in zip(batch, blocks, strict=True):
            stat = await reader.describe_block(block)
            if not node.slots:
                member = describe_member(node.path, stat)
                if member.kind is MemberKind.FOLDER and node.depth > max_depth:
                    raise TooDeep
                yield member
                if member.kind is not MemberKind.FOLDER:
                    continue
            children = _list_children(node, stat)
            new_shards = sum(child.slots != b"" for child in children)
            entries, shards = entries + len(children) - new_shards, shards + new_shards
            if max(entries, shards) > max_entries:
                raise TooManyEntries
            pending += children


def describe_member(path: str, stat: ContentStat) -> TreeMember:
    """Return a member without what is below it. Raises MalformedContent."""
    kind = _KINDS.get(stat.kind)
    if kind is None or stat.cid.codec not in {RAW, DAG_PB}:
        raise MalformedContent(f"The folder has an entry that is neither a file, a folder nor a link: {stat.cid}")
    target = stat.node.unixfs.data if kind is MemberKind.LINK and stat.node is not None else b""
    size = len(target) if kind is MemberKind.LINK else stat.size or 0
    return TreeMember(path, kind, stat.cid, size, stat.mode, target)


def _is_leaf(node: _Pending) -> bool:
    return node.cid.codec == RAW and bool(node.name) and not node.slots


def _list_children(node: _Pending, stat: ContentStat) -> Sequence[_Pending]:
    """Return the entries and shards below a node of a folder."""
    if stat.node is None or (node.slots and stat.kind is not UnixfsKind.SHARD):
        raise MalformedContent(f"A shard of the folder is no shard: {stat.cid}")
    links, path, depth = stat.node.links, node.path, node.depth + 1
    if len({link.name for link in links}) != len(links):
        raise InvalidEntryName
    if stat.kind is UnixfsKind.DIRECTORY:
        return [_Pending(link.cid, path, _file_name(link.name), depth, link.size) for link in links]
    if stat.node.unixfs.fanout != FANOUT:
        raise MalformedContent(f"A shard of the folder has a fanout other than {FANOUT}: {stat.cid}")
    children: list[_Pending] = []
    for link in links:
        slots = node.slots + _slot(link.name)
        if len(link.name) > _LABEL_LENGTH:
            name = _hashed_name(link.name[_LABEL_LENGTH:], slots)
            children.append(_Pending(link.cid, path, name, depth, link.size))
        elif len(slots) < HASH_LENGTH:
            children.append(_Pending(link.cid, node.parent, node.name, node.depth, slots=slots))
        else:
            raise TooDeep
    return children


def _slot(label: str) -> bytes:
    slot = _SLOTS.get(label[:_LABEL_LENGTH])
    if slot is None:
        raise MalformedContent(f"A shard of the folder has a link with the label {label[:_LABEL_LENGTH]!r}")
    return slot


def _hashed_name(name: str, slots: bytes) -> str:
    """Return the name of a file in its place, so that no name is in two shards. Raises MalformedContent."""
    if hash_name(name)[: len(slots)] != slots:
        raise MalformedContent("A shard of the folder has a name that belongs to another shard")
    return _file_name(name)


def _file_name(name: str) -> str:
    """Return the name of a file. Raises InvalidEntryName for a name that no file can have."""
    decoded = decode_entry_name(name)
    is_valid = decoded not in {"", ".", ".."} and "/" not in decoded and "\0" not in decoded
    if not is_valid or len(decoded.encode("utf-8", "surrogateescape")) > _LONGEST_NAME:
        raise InvalidEntryName
    return decoded
