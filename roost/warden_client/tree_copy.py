"""Copy the workspace and the home of one container to another one, in two passes.

The first pass reads files that programs write meanwhile; the second one copies what may have changed since then. A
write through a mapping changes the times of a file only if the page was clean. So each pass first writes all pages to
disk, and only a file that was last changed before that counts as copied.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping
from contextlib import aclosing

from roost.core.problem import Problem
from roost.warden_client.changes import PutFile, PutFolder, PutLink, RemovePath, TreeChange
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import (
    PathRefused,
    WardenFailed,
    WardenFileNotFound,
    WardenNotAFile,
    WardenTreeChanged,
)
from roost.warden_client.files import Root
from roost.warden_client.tree import FileReading, ScanEntry

_ROOTS: tuple[Root, ...] = ("workspace", "home")
_SYNC = 'date +%s%N && sync -f . && sync -f "$HOME"'
_SYNC_SECONDS = 600.0
_CLOCK_TICK_NS = 100_000_000
"""Files of the last 0.1 s before a moment may have its time, because clocks of file systems are coarse."""
_PERMISSIONS = 0o777
_MISSING = (WardenFileNotFound, WardenNotAFile, PathRefused)
_ZEROS = bytes(64 * 1024)


class TreeCopy:
    """Copy from `source` to `target`, whose folders are empty at first.

    Sockets, pipes and devices are left out. Links within the trees are kept as links, hard links become files of their
    own, and files get new times.
    """

    def __init__(self, source: WardenClient, target: WardenClient) -> None:
        self._source = source
        self._target = target
        self._copied: Mapping[Root, dict[str, ScanEntry]] = {root: {} for root in _ROOTS}
        self._unsettled = set[tuple[Root, str]]()
        """Files that have to be copied again, whatever their times."""

    async def run(self, *, is_final: bool = False) -> None:
        """Make the trees of the target equal to those of the source; `is_final`: nothing writes to the source.

        Raises PathRefused for what cannot be read, WardenTreeChanged if something wrote to it all the same, and the
        errors of `WardenTree.scan` and `WardenTree.apply`. What a first pass cannot read is left to the final one.
        """
        synced_ns = await self._sync()
        for root in _ROOTS:
            await self._copy_tree(root, synced_ns, is_final=is_final)

    async def _sync(self) -> int:
        """Write the source's pages to disk; return the time of its clock before that, in nanoseconds."""
        result = await self._source.exec(["/bin/sh", "-c", _SYNC], timeout=_SYNC_SECONDS, output_limit=256)
        if result.exit_code or not result.stdout.split(b"\n")[0].isdigit():
            raise WardenFailed
        return int(result.stdout.split(b"\n")[0])

    async def _copy_tree(self, root: Root, synced_ns: int, *, is_final: bool) -> None:
        found: dict[str, ScanEntry] = {}
        async with aclosing(self._source.tree.scan(root)) as batches:
            async for batch in batches:
                for entry in batch:
                    if entry.error and is_final:
                        raise PathRefused(f"{entry.path[:200]!a} cannot be read")
                    if entry.kind != "other":
                        found[entry.path] = entry
        await self._target.tree.apply(self._list_changes(root, found, is_final=is_final), root, with_stamps=False)
        for entry in found.values():
            if entry.kind == "file" and not 0 < entry.stamp.ctime_ns < synced_ns - _CLOCK_TICK_NS:
                self._unsettled.add((root, entry.path))
        self._copied[root].clear()
        self._copied[root].update(found)

    async def _list_changes(
        self, root: Root, found: Mapping[str, ScanEntry], *, is_final: bool
    ) -> AsyncGenerator[TreeChange]:
        copied = self._copied[root]
        for path in copied.keys() - found.keys():
            yield RemovePath(path)
        files: list[str] = []
        for path, entry in found.items():
            before = copied.get(path)
            if entry.kind == "folder":
                if before is None or (before.kind, before.mode) != (entry.kind, entry.mode):
                    yield PutFolder(path, entry.mode & _PERMISSIONS)
            elif before != entry or (root, path) in self._unsettled:
                if entry.kind == "link":
                    yield PutLink(path, entry.target)
                else:
                    files.append(path)
        self._unsettled -= {(root, path) for path in files}
        async with aclosing(self._put_files(root, files, found, is_final=is_final)) as changes:
            async for change in changes:
                yield change

    async def _put_files(
        self, root: Root, paths: Iterable[str], found: Mapping[str, ScanEntry], *, is_final: bool
    ) -> AsyncGenerator[PutFile]:
        async with aclosing(self._source.tree.read_files(paths, root)) as batches:
            async for batch in batches:
                for file in batch:
                    if file.error is None:
                        yield PutFile(file.path, file.mode & _PERMISSIONS, file.size, _pad_content(file))
                    elif is_final or not isinstance(file.error, _MISSING):
                        raise _name_error(file.path, file.error)
                    if is_final and file.is_changed:
                        raise WardenTreeChanged
                    if file.error is not None or file.is_changed or file.stamp != found[file.path].stamp:
                        self._unsettled.add((root, file.path))


async def _pad_content(file: FileReading) -> AsyncIterator[bytes]:
    """Yield the content, with zeros in the place of what was cut off since the file was opened."""
    remaining = file.size
    if isinstance(file.content, memoryview):
        remaining -= len(file.content)
        yield bytes(file.content)
    else:
        async for chunk in file.content:
            remaining -= len(chunk)
            yield chunk
    if remaining:
        file.is_changed = True
    while remaining > 0:
        padding = _ZEROS[:remaining]
        remaining -= len(padding)
        yield padding


def _name_error(path: str, error: Problem) -> Problem:
    return PathRefused(f"{path[:200]!a} cannot be read") if isinstance(error, _MISSING) else error
