"""Stored trees: their content, and their differences, found by CIDs: a folder that is the same is not entered."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal

from roost.agents.workspace.snapshots.diff import DIFF_LIMIT, unified_diff
from roost.storage.content.model import BlockLocation, BlockMatch, ContentScope
from roost.storage.content.reader import ContentReader, ContentStat
from roost.storage.content.tree_walk import MemberKind, TreeMember, describe_member, walk_tree
from roost.storage.content.unixfs.cid import RAW, Cid
from roost.storage.content.unixfs.entry_name import decode_entry_name

BATCH_SIZE = 500
"""Members that are read at once."""
_CHANGES_LIMIT = 1000
_BINARY = b"\0"
MemberContent = tuple[TreeMember, ContentStat, bytes | AsyncIterable[bytes]]
_ChangedName = tuple[str, Cid | None, Cid | None]
"""A path, and what it was and is."""


@dataclass(frozen=True)
class PathDifference:
    """A path that differs; `old` or `new` is None if it exists in one tree only."""

    path: str
    old: TreeMember | None
    new: TreeMember | None


@dataclass(frozen=True)
class ComparedFile:
    path: str
    change: Literal["added", "deleted", "changed"]


@dataclass(frozen=True)
class SnapshotComparison:
    """At most 1,000 files and links that differ; `diff` is the unified diff of the file that was asked for."""

    changes: Sequence[ComparedFile]
    truncated: bool
    diff: str | None


@dataclass(frozen=True)
class StoredTrees:
    """The trees of a scope."""

    _reader: ContentReader
    _scope: ContentScope

    async def compare(self, old: Cid, new: Cid, path: str | None = None) -> SnapshotComparison:
        """Compare two trees; with `path`, also the text of that file."""
        changes: list[ComparedFile] = []
        diff: str | None = None
        is_truncated = False
        async with aclosing(self.list_differences(old, new)) as differences:
            async for difference in differences:
                if _is_folder(difference.new or difference.old):
                    continue
                if path is not None and difference.path == path:
                    before, after = await self._read_text(difference.old), await self._read_text(difference.new)
                    diff = await asyncio.to_thread(unified_diff, before, after, path)
                if len(changes) < _CHANGES_LIMIT:
                    changes.append(ComparedFile(difference.path, _name_change(difference)))
                elif diff is not None or path is None:
                    is_truncated = True
                    break
        return SnapshotComparison(sorted(changes, key=attrgetter("path")), is_truncated, diff)

    async def list_differences(
        self, old: Cid | None, new: Cid, *, enters_removed: bool = True
    ) -> AsyncGenerator[PathDifference]:
        """Yield what differs between two folders, a folder before its entries; without `old`, all that is in `new`.

        Without `enters_removed`, a removed folder stands for its entries. Raises the errors of `walk_tree`.
        """
        if old is None:
            async for change in self._list_subtree(new, "", is_new=True):
                yield change
            return
        folders = [("", *await self._describe_all([old, new]))]
        while folders:
            changed: list[_ChangedName] = []
            for path, one, other in folders:
                changed += await self._compare_folders(path, one, other)
            folders.clear()
            for start in range(0, len(changed), BATCH_SIZE):
                async for path, one, other in self._describe_changes(changed[start : start + BATCH_SIZE]):
                    before, after = one and describe_member(path, one), other and describe_member(path, other)
                    if one and other and _is_folder(before) and _is_folder(after):
                        folders.append((path, one, other))
                        continue
                    async for change in self._list_change(before, after, enters_removed=enters_removed):
                        yield change

    async def read_members(self, members: Sequence[TreeMember]) -> AsyncGenerator[MemberContent]:
        """Yield files and links with their content, or the target of a link, with few queries and few reads of packs.

        Of each batch, files of one block come last, read together. Read a content before the next is taken.
        Raises ContentNotFound, ContentDamaged, MalformedContent, BlobStoreFailed.
        """
        for start in range(0, len(members), BATCH_SIZE):
            batch = members[start : start + BATCH_SIZE]
            blocks = await self._reader.find_blocks(self._scope, [member.cid for member in batch])
            slices: list[tuple[TreeMember, BlockMatch]] = []
            for member, block in zip(batch, blocks, strict=True):
                if block.row.location is BlockLocation.SLICE and member.cid.codec == RAW:
                    slices.append((member, block))
                    continue
                found = await self._reader.describe_block(block)
                if member.kind is MemberKind.LINK:
                    yield member, found, member.target
                else:
                    async with aclosing(self._reader.stream_file(self._scope, found)) as content:
                        yield member, found, content
            async with aclosing(self._reader.read_slices([block for _, block in slices])) as contents:
                async for index, data in contents:
                    member, block = slices[index]
                    yield member, await self._reader.describe_block(block), data

    async def _read_text(self, member: TreeMember | None) -> bytes:
        """Return what a diff shows of a file or link; of a large file a part that is shown as binary."""
        if member is None:
            return b""
        if member.kind is MemberKind.LINK:
            return member.target
        if member.size > DIFF_LIMIT:
            return _BINARY
        file = await self._reader.stat(self._scope, member.cid)
        async with aclosing(self._reader.stream_file(self._scope, file)) as content:
            return b"".join([piece async for piece in content])

    async def _list_change(
        self, old: TreeMember | None, new: TreeMember | None, *, enters_removed: bool
    ) -> AsyncGenerator[PathDifference]:
        """Yield the change of a path with what is below it, unless it was and is a folder; another kind replaces it."""
        if old and (new is None or _is_folder(old) or _is_folder(new)):
            if enters_removed:
                async for change in self._list_subtree(old.cid, old.path, is_new=False):
                    yield change
            else:
                yield PathDifference(old.path, old, None)
            old = None
        if new and _is_folder(new):
            async for change in self._list_subtree(new.cid, new.path, is_new=True):
                yield change
        elif new:
            yield PathDifference(new.path, old, new)

    async def _compare_folders(self, path: str, old: ContentStat, new: ContentStat) -> Sequence[_ChangedName]:
        before, after = await self._read_names(old), await self._read_names(new)
        return [
            (f"{path}/{name}" if path else name, before.get(name), after.get(name))
            for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name)
        ]

    async def _describe_changes(
        self, changes: Sequence[_ChangedName]
    ) -> AsyncGenerator[tuple[str, ContentStat | None, ContentStat | None]]:
        """Yield the changes with what stands behind their CIDs, found together."""
        cids = [cid for _, *both in changes for cid in both if cid is not None]
        found = iter(await self._describe_all(cids))
        for path, *both in changes:
            one, other = (None if cid is None else next(found) for cid in both)
            yield path, one, other

    async def _describe_all(self, cids: Sequence[Cid]) -> Sequence[ContentStat]:
        return [await self._reader.describe_block(one) for one in await self._reader.find_blocks(self._scope, cids)]

    async def _list_subtree(self, root: Cid, path: str, *, is_new: bool) -> AsyncGenerator[PathDifference]:
        """Yield all of a file, link or folder as added or removed; the root of all is no change."""
        async for member in walk_tree(self._reader, self._scope, root, finds_leaves=False):
            inside = "/".join(part for part in (path, member.path) if part)
            if inside:
                found = replace(member, path=inside)
                yield PathDifference(inside, None, found) if is_new else PathDifference(inside, found, None)

    async def _read_names(self, folder: ContentStat) -> dict[str, Cid]:
        links = self._reader.list_entries(self._scope, folder)
        return {decode_entry_name(link.name): link.cid async for link in links}


def _name_change(difference: PathDifference) -> Literal["added", "deleted", "changed"]:
    if difference.old is None:
        return "added"
    return "deleted" if difference.new is None else "changed"


def _is_folder(member: TreeMember | None) -> bool:
    return member is not None and member.kind is MemberKind.FOLDER
