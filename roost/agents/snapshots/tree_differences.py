"""Differences of two stored trees, found by their CIDs: a folder that is the same in both is not entered."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass, replace

from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.tree_walk import MemberKind, TreeMember, walk_tree
from roost.storage.unixfs.cid import Cid
from roost.storage.unixfs.entry_name import decode_entry_name


@dataclass(frozen=True)
class PathDifference:
    """A path that differs; `old` or `new` is None if it exists in one tree only."""

    path: str
    old: TreeMember | None
    new: TreeMember | None


async def list_differences(
    reader: ContentReader, scope: ContentScope, old: Cid | None, new: Cid
) -> AsyncGenerator[PathDifference]:
    """Yield what differs between two folders, a folder before its entries; without `old`, all that is in `new`.

    Raises the errors of `walk_tree`.
    """
    if old is None:
        async for change in _list_subtree(reader, scope, new, "", is_new=True):
            yield change
        return
    pending = [("", old, new)]
    while pending:
        path, old, new = pending.pop()
        before, after = await _read_names(reader, scope, old), await _read_names(reader, scope, new)
        for name in sorted(before.keys() | after.keys()):
            one, other = before.get(name), after.get(name)
            if one == other:
                continue
            inside = f"{path}/{name}" if path else name
            one_member = None if one is None else await _describe(reader, scope, inside, one)
            other_member = None if other is None else await _describe(reader, scope, inside, other)
            if _is_folder(one_member) and _is_folder(other_member) and one and other:
                pending.append((inside, one, other))
                continue
            if one_member and (other_member is None or _is_folder(one_member) or _is_folder(other_member)):
                async for change in _list_subtree(reader, scope, one_member.cid, inside, is_new=False):
                    yield change
                one_member = None
            if other_member and _is_folder(other_member):
                async for change in _list_subtree(reader, scope, other_member.cid, inside, is_new=True):
                    yield change
            elif other_member:
                yield PathDifference(inside, one_member, other_member)


async def _list_subtree(
    reader: ContentReader, scope: ContentScope, root: Cid, path: str, *, is_new: bool
) -> AsyncGenerator[PathDifference]:
    """Yield all of a file, link or folder as added or removed; the root of all is no change."""
    async for member in walk_tree(reader, scope, root):
        inside = "/".join(part for part in (path, member.path) if part)
        if inside:
            found = replace(member, path=inside)
            yield PathDifference(inside, None, found) if is_new else PathDifference(inside, found, None)


async def _read_names(reader: ContentReader, scope: ContentScope, folder: Cid) -> dict[str, Cid]:
    found = await reader.stat(scope, folder)
    return {decode_entry_name(link.name): link.cid async for link in reader.list_entries(scope, found)}


async def _describe(reader: ContentReader, scope: ContentScope, path: str, cid: Cid) -> TreeMember:
    """Return the member, without what is below it."""
    async for member in walk_tree(reader, scope, cid):
        return replace(member, path=path)
    raise AssertionError("a tree has its root")


def _is_folder(member: TreeMember | None) -> bool:
    return member is not None and member.kind is MemberKind.FOLDER
