"""Make a workspace equal to a stored tree: write what differs, all of it before the first path changes."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager

from roost.agents.workspace.snapshots.index import IndexedEntry, WorkspaceIndex, settled_stamp
from roost.agents.workspace.snapshots.model import FILE_MODE, FOLDER_MODE
from roost.agents.workspace.snapshots.state_tree import StateTree
from roost.agents.workspace.snapshots.stored_trees import BATCH_SIZE, StoredTrees
from roost.drivers.runtime.contract import RuntimeFailed
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader, ContentStat
from roost.storage.content.tree_walk import MemberKind, TreeMember, walk_tree
from roost.storage.content.unixfs.cid import DAG_PB, Cid
from roost.warden_client.changes import PutFile, PutFolder, PutLink, RemovePath, TreeChange
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import ContainerNotRunning
from roost.warden_client.tree import ScanEntry, WardenTree
from roost.warden_client.tree_rules import TreeRules

_PERMISSIONS = 0o777


@asynccontextmanager
async def open_to_write(
    workspace: AbstractAsyncContextManager[WardenClient], *, has_begun: bool
) -> AsyncGenerator[WardenClient]:
    """Open a workspace; once writing has begun, a container that does not start means another attempt."""
    try:
        async with workspace as warden:
            yield warden
    except RuntimeFailed as problem:
        if not has_begun:
            raise
        raise ContainerNotRunning from problem


async def restore_tree(
    tree: WardenTree | StateTree, reader: ContentReader, scope: ContentScope, root: Cid, index: WorkspaceIndex
) -> WorkspaceIndex:
    """Restore a tree, and return the index of its files and links. `index` is of the last reading.

    What that reading left out (sockets, files with secrets) stays, unless the tree has something in its place.
    Raises TreeRefused, before anything is written, and the errors of `WardenTree.apply` and of the reader.
    """
    present: dict[str, ScanEntry] = {}
    async with aclosing(tree.scan()) as batches:
        async for batch in batches:
            present.update((entry.path, entry) for entry in batch)
    restore = _Restore(StoredTrees(reader, scope), present, index)
    async with aclosing(walk_tree(reader, scope, root, finds_leaves=False)) as members:
        async for member in members:
            restore.add_member(member)
    stamps = await tree.apply(restore.changes())
    return {
        path: entry._replace(stamp=settled_stamp(stamps[path])) if path in stamps else entry
        for path, entry in restore.restored.items()
    }


class _Restore:
    """What differs between a present tree and the members of another one."""

    def __init__(self, trees: StoredTrees, present: Mapping[str, ScanEntry], index: WorkspaceIndex) -> None:
        self._trees = trees
        self._present = present
        self._index = index
        self._wanted: set[str] = set()
        self._rules = TreeRules(max_path_bytes=None)
        self._written: list[TreeMember] = []
        self.restored: dict[str, IndexedEntry] = {}
        """Files and links of the tree; complete once `changes` has ended."""

    def add_member(self, member: TreeMember) -> None:
        """Add a member of the wanted tree. Raises TreeRefused."""
        if member.path:
            self._rules.check_entry(member.path, member.kind.value, target_size=member.size)
            self._rules.check_target(member.path, member.target)
        self._wanted.add(member.path)
        now, known = self._present.get(member.path), self._index.get(member.path)
        if member.kind is MemberKind.FOLDER:
            if member.path and not (
                now and now.kind == "folder" and now.mode & _PERMISSIONS == get_member_mode(member)
            ):
                self._written.append(member)
        elif now and known and known.cid == bytes(member.cid) and _is_unchanged(now, known):
            self.restored[member.path] = known
        else:
            self._written.append(member)

    async def changes(self) -> AsyncGenerator[TreeChange]:
        kept = self._find_kept()
        for path in self._present:
            if path not in self._wanted and path not in kept:
                yield RemovePath(path)
        for start in range(0, len(self._written), BATCH_SIZE):
            async with aclosing(self._put_members(self._written[start : start + BATCH_SIZE])) as changes:
                async for change in changes:
                    yield change

    async def _put_members(self, members: Sequence[TreeMember]) -> AsyncGenerator[TreeChange]:
        for member in members:
            if member.kind is MemberKind.FOLDER:
                yield PutFolder(member.path, get_member_mode(member))
        files = [member for member in members if member.kind is not MemberKind.FOLDER]
        async with aclosing(self._trees.read_members(files)) as contents:
            async for member, found, content in contents:
                self.restored[member.path] = _index_member(member, found)
                if member.kind is MemberKind.LINK:
                    yield PutLink(member.path, member.target.decode("utf-8", "surrogateescape"))
                else:
                    yield PutFile(member.path, get_member_mode(member), found.size or 0, content)

    def _find_kept(self) -> set[str]:
        """Return the paths that no reading knows, with the folders around them."""
        kept: set[str] = set()
        for path, entry in self._present.items():
            if entry.kind != "folder" and path not in self._index:
                while path and path not in kept:
                    kept.add(path)
                    path = path.rpartition("/")[0]  # noqa: PLW2901 - the walk to the root
        return kept


def _is_unchanged(now: ScanEntry, known: IndexedEntry) -> bool:
    if known.kind == "link":
        return now.kind == "link" and now.target == known.target
    return now.kind == "file" and known.is_current(now.stamp, now.size, now.mode & _PERMISSIONS)


def _index_member(member: TreeMember, found: ContentStat) -> IndexedEntry:
    size = member.size if member.kind is MemberKind.LINK else found.size or 0
    below = 0 if found.node is None else sum(link.size for link in found.node.links)
    own = found.block.row.length if member.cid.codec == DAG_PB else size
    return IndexedEntry(
        "link" if member.kind is MemberKind.LINK else "file",
        bytes(member.cid),
        size,
        own + below,
        found.block.pack_id,
        0 if member.kind is MemberKind.LINK else get_member_mode(member),
        target=member.target.decode("utf-8", "surrogateescape"),
    )


def get_member_mode(member: TreeMember) -> int:
    """Return the permissions that a restored file or folder gets."""
    if member.mode is not None:
        return member.mode & _PERMISSIONS
    return FOLDER_MODE if member.kind is MemberKind.FOLDER else FILE_MODE
