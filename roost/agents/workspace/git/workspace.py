"""Applies a pushed commit to the files of an agent."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing

from roost.drivers.git.contract import EntryKind, GitEntry, GitRepositories
from roost.warden_client.changes import ExpectEntry, PutFile, PutLink, RemovePath, TreeChange
from roost.warden_client.tree import WardenTree

ExpectEntries = Callable[[Iterable[str]], Awaitable[Sequence[ExpectEntry]]]
"""Describes paths of a workspace as a commit has them."""


async def apply_commit(
    repositories: GitRepositories,
    tree: WardenTree,
    agent_id: str,
    old: str | None,
    new: str,
    expect: ExpectEntries | None = None,
) -> int:
    """Change the workspace by what differs between two commits, and return the number of changes.

    Repeat it without `expect` to complete a change that a crash interrupted. Raises as `WardenTree.apply`.
    """
    entries = [entry async for entry in repositories.list_changes(agent_id, old, new)]
    expected = await expect([entry.path for entry in entries]) if expect else ()
    async with aclosing(_tree_changes(repositories, agent_id, entries, expected)) as changes:
        await tree.apply(changes)
    return len(entries)


async def _tree_changes(
    repositories: GitRepositories, agent_id: str, entries: Sequence[GitEntry], expected: Sequence[ExpectEntry]
) -> AsyncGenerator[TreeChange]:
    for condition in expected:
        yield condition
    for entry in entries:
        if entry.kind is EntryKind.DELETED:
            yield RemovePath(entry.path)
    written = [entry for entry in entries if entry.kind is not EntryKind.DELETED]
    async with aclosing(repositories.read_blobs(agent_id, [entry.blob for entry in written])) as blobs:
        position = iter(written)
        async for blob in blobs:
            entry = next(position)
            if entry.kind is EntryKind.LINK:
                target = b"".join([chunk async for chunk in blob.content])
                yield PutLink(entry.path, target.decode(errors="surrogateescape"))
            else:
                mode = 0o755 if entry.kind is EntryKind.EXECUTABLE else 0o644
                yield PutFile(entry.path, mode, blob.size, blob.content)
