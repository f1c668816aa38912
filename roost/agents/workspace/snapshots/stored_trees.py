"""Differences of two stored trees, found by their CIDs: a folder that is the same in both is not entered."""

from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass, replace

from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader, ContentStat
from roost.storage.content.tree_walk import MemberKind, TreeMember, describe_member, walk_tree
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.entry_name import decode_entry_name

_BATCH_SIZE = 500
_ChangedName = tuple[str, Cid | None, Cid | None]
"""A path, and what it was and is."""


@dataclass(frozen=True)
class PathDifference:
    """A path that differs; `old` or `new` is None if it exists in one tree only."""

    path: str
    old: TreeMember | None
    new: TreeMember | None


async def list_differences(
    reader: ContentReader, scope: ContentScope, old: Cid | None, new: Cid, *, enters_removed: bool = True
) -> AsyncGenerator[PathDifference]:
    """Yield what differs between two folders, a folder before its entries; without `old`, all that is in `new`.

    Without `enters_removed`, a removed folder stands for its entries. Raises the errors of `walk_tree`.
    """
    if old is None:
        async for change in _list_subtree(reader, scope, new, "", is_new=True):
            yield change
        return
    folders = [("", *await _describe_all(reader, scope, [old, new]))]
    while folders:
        changed: list[_ChangedName] = []
        for path, one, other in folders:
            changed += await _compare_folders(reader, scope, path, one, other)
        folders.clear()
        for start in range(0, len(changed), _BATCH_SIZE):
            async for path, one, other in _describe_changes(reader, scope, changed[start : start + _BATCH_SIZE]):
                before, after = one and describe_member(path, one), other and describe_member(path, other)
                if one and other and _is_folder(before) and _is_folder(after):
                    folders.append((path, one, other))
                    continue
                async for change in _list_change(reader, scope, before, after, enters_removed=enters_removed):
                    yield change


async def _list_change(
    reader: ContentReader,
    scope: ContentScope,
    old: TreeMember | None,
    new: TreeMember | None,
    *,
    enters_removed: bool,
) -> AsyncGenerator[PathDifference]:
    """Yield the change of a path with what is below it, unless it was and is a folder; another kind replaces it."""
    if old and (new is None or _is_folder(old) or _is_folder(new)):
        if enters_removed:
            async for change in _list_subtree(reader, scope, old.cid, old.path, is_new=False):
                yield change
        else:
            yield PathDifference(old.path, old, None)
        old = None
    if new and _is_folder(new):
        async for change in _list_subtree(reader, scope, new.cid, new.path, is_new=True):
            yield change
    elif new:
        yield PathDifference(new.path, old, new)


async def _compare_folders(
    reader: ContentReader, scope: ContentScope, path: str, old: ContentStat, new: ContentStat
) -> Sequence[_ChangedName]:
    before, after = await _read_names(reader, scope, old), await _read_names(reader, scope, new)
    return [
        (f"{path}/{name}" if path else name, before.get(name), after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    ]


async def _describe_changes(
    reader: ContentReader, scope: ContentScope, changes: Sequence[_ChangedName]
) -> AsyncGenerator[tuple[str, ContentStat | None, ContentStat | None]]:
    """Yield the changes with what stands behind their CIDs, found together."""
    cids = [cid for _, *both in changes for cid in both if cid is not None]
    found = iter(await _describe_all(reader, scope, cids))
    for path, *both in changes:
        one, other = (None if cid is None else next(found) for cid in both)
        yield path, one, other


async def _describe_all(reader: ContentReader, scope: ContentScope, cids: Sequence[Cid]) -> Sequence[ContentStat]:
    return [await reader.describe_block(block) for block in await reader.find_blocks(scope, cids)]


async def _list_subtree(
    reader: ContentReader, scope: ContentScope, root: Cid, path: str, *, is_new: bool
) -> AsyncGenerator[PathDifference]:
    """Yield all of a file, link or folder as added or removed; the root of all is no change."""
    async for member in walk_tree(reader, scope, root, finds_leaves=False):
        inside = "/".join(part for part in (path, member.path) if part)
        if inside:
            found = replace(member, path=inside)
            yield PathDifference(inside, None, found) if is_new else PathDifference(inside, found, None)


async def _read_names(reader: ContentReader, scope: ContentScope, folder: ContentStat) -> dict[str, Cid]:
    return {decode_entry_name(link.name): link.cid async for link in reader.list_entries(scope, folder)}


def _is_folder(member: TreeMember | None) -> bool:
    return member is not None and member.kind is MemberKind.FOLDER
