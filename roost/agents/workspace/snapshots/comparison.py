"""Compare two stored trees: the files that differ, and the text of one of them."""

import asyncio
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal

from roost.agents.workspace.snapshots.diff import DIFF_LIMIT, unified_diff
from roost.agents.workspace.snapshots.stored_trees import PathDifference, list_differences
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.tree_walk import MemberKind, TreeMember
from roost.storage.content.unixfs.cid import Cid

_CHANGES_LIMIT = 1000
_BINARY = b"\0"


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


async def compare_trees(
    reader: ContentReader, scope: ContentScope, old: Cid, new: Cid, path: str | None = None
) -> SnapshotComparison:
    """Compare two trees; with `path`, also the text of that file."""
    changes: list[ComparedFile] = []
    diff: str | None = None
    async with aclosing(list_differences(reader, scope, old, new)) as differences:
        async for difference in differences:
            if _is_folder(difference):
                continue
            if path is not None and difference.path == path:
                before = await _read_text(reader, scope, difference.old)
                after = await _read_text(reader, scope, difference.new)
                diff = await asyncio.to_thread(unified_diff, before, after, path)
            if len(changes) < _CHANGES_LIMIT:
                changes.append(ComparedFile(difference.path, _name_change(difference)))
            elif diff is not None or path is None:
                return SnapshotComparison(sorted(changes, key=attrgetter("path")), True, diff)
    return SnapshotComparison(sorted(changes, key=attrgetter("path")), False, diff)


def _name_change(difference: PathDifference) -> Literal["added", "deleted", "changed"]:
    if difference.old is None:
        return "added"
    return "deleted" if difference.new is None else "changed"


def _is_folder(difference: PathDifference) -> bool:
    member = difference.new or difference.old
    return member is not None and member.kind is MemberKind.FOLDER


async def _read_text(reader: ContentReader, scope: ContentScope, member: TreeMember | None) -> bytes:
    """Return what a diff shows of a file or link; of a large file a part that is shown as binary."""
    if member is None:
        return b""
    if member.kind is MemberKind.LINK:
        return member.target
    if member.size > DIFF_LIMIT:
        return _BINARY
    async with aclosing(reader.stream_file(scope, await reader.stat(scope, member.cid))) as content:
        return b"".join([piece async for piece in content])
