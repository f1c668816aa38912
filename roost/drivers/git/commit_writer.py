"""The objects of a commit: its changes as blobs of a pack, the changed trees, and the commit itself.

Of the tree that changes, only the folders on the way to a change are read and written.
"""

import asyncio
import re
from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from datetime import datetime

from roost.drivers.git import scripts
from roost.drivers.git.contract import GitChange, GitDeletion, GitFailed, GitFile, GitLink, UnknownCommit, is_git_path
from roost.drivers.git.pack_writer import ObjectKind, PackWriter, object_id
from roost.drivers.git.runner import GitRunner, check_object_id, check_status
from roost.drivers.git.scripts import GitScript
from roost.drivers.sandbox.contract import CommandProcess

_AUTHOR = re.compile(r"(?P<name>[^<>]*)(?:<(?P<address>[^<>]*)>)?\s*")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f<>]")
_FILE_MODE, _EXECUTABLE_MODE, _LINK_MODE, _FOLDER_MODE = b"100644", b"100755", b"120000", b"40000"
_BATCH_BYTES = 1024**2
_MAX_OBJECT_BYTES = 64 * 1024**2
_TREE_LINE = len(b"tree ") + 40

_Blob = tuple[str, bytes, bytes]  # path, mode and content

ReadTree = Callable[[bytes], Awaitable[bytes]]
"""Reads the tree with a binary id."""
AddObject = Callable[[ObjectKind, bytes], bytes]
"""Adds an object and returns its binary id."""


class _Folder:
    """A tree that was read or is new. oid: id of the tree that was read."""

    def __init__(self, data: bytes = b"", oid: bytes = b"") -> None:
        self.oid = oid
        self.entries = _parse_entries(data)


_Entry = tuple[bytes, bytes] | _Folder
"""Mode and binary id, or a folder on the way to a change."""


class TreeEditor:
    def __init__(self, read_tree: ReadTree) -> None:
        self._read_tree = read_tree
        self._root = _Folder()

    async def open_tree(self, root: bytes) -> None:
        """Begin with the tree `root` instead of an empty one."""
        self._root = _Folder(await self._read_tree(root), root)

    async def put_entry(self, path: str, mode: bytes, oid: bytes) -> None:
        """Add a file or link; it replaces an entry with the same path. Raises GitFailed for an invalid path."""
        *folders, name = split_path(path)
        folder = self._root
        for part in folders:
            entry = await self._enter(folder, part)
            if entry is None:
                entry = folder.entries[part] = _Folder()
            folder = entry
        folder.entries[name] = (mode, oid)

    async def remove_entry(self, path: str) -> None:
        """Remove a file, or a folder with all below it, if it is there. Raises GitFailed for an unfit path."""
        *folders, name = split_path(path)
        folder: _Folder | None = self._root
        for part in folders:
            if (folder := await self._enter(folder, part)) is None:
                return
        folder.entries.pop(name, None)

    def write_trees(self, add_object: AddObject) -> bytes:
        """Add the trees that differ from those that were read, and return the id of the root. Blocking."""
        return _write_folder(self._root, add_object) or add_object(ObjectKind.TREE, b"")

    async def _enter(self, folder: _Folder, name: bytes) -> _Folder | None:
        entry = folder.entries.get(name)
        if entry is None or isinstance(entry, _Folder):
            return entry
        mode, oid = entry
        if not _is_folder(mode):
            return None
        found = folder.entries[name] = _Folder(await self._read_tree(oid), oid)
        return found


class ObjectReader(AsyncExitStack):
    """Reader of commits and trees of one repository, verified by their ids.

    All come from one `git cat-file --batch` (git-cat-file(1)), which starts when the first object is read.
    """

    def __init__(self, runner: GitRunner, agent_id: str) -> None:
        super().__init__()
        self._runner = runner
        self._agent_id = agent_id
        self._process: CommandProcess | None = None

    async def find_tree(self, commit: str) -> bytes:
        """Return the binary id of a commit's tree. Raises UnknownCommit, GitFailed."""
        data = await self._read_object(ObjectKind.COMMIT, bytes.fromhex(check_object_id(commit)))
        if data is None:
            raise UnknownCommit
        try:
            return bytes.fromhex(data[5:_TREE_LINE].decode())
        except ValueError:
            raise GitFailed("A commit is malformed") from None

    async def read_tree(self, tree: bytes) -> bytes:
        """Return the content of a tree. Raises GitFailed."""
        data = await self._read_object(ObjectKind.TREE, tree)
        if data is None:
            raise GitFailed("The repository lacks a tree")
        return data

    async def _read_object(self, kind: ObjectKind, oid: bytes) -> bytes | None:
        """Return an object, None if there is none of that kind."""
        if self._process is None:
            script = GitScript(scripts.READ_OBJECTS)
            self._process = await self.enter_async_context(self._runner.run(self._agent_id, script))
        reader = self._process.reader
        try:
            await self._process.send(b"%b\n" % oid.hex().encode())
            head = (await reader.readline()).split()
            if head[1:] == [b"missing"]:
                return None
            _, found, size = head
            if int(size) > _MAX_OBJECT_BYTES:
                raise GitFailed("The repository has a tree that is too large")
            data = (await reader.readexactly(int(size) + 1))[:-1]
        except (ConnectionError, EOFError, ValueError):
            await check_status(self._process)
            raise GitFailed from None
        if found != kind.name.lower().encode():
            return None
        if object_id(kind, data) != oid:
            raise GitFailed("The repository has a damaged object")
        return data


def format_commit(tree: bytes, parent: str | None, message: str, author: str, time: datetime) -> bytes:
    """Return the content of a commit. The author is a name, or a name with an address in angle brackets."""
    identity = f"{_format_author(author)} {int(time.timestamp())} +0000"
    parents = "" if parent is None else f"parent {parent}\n"
    text = message.replace("\0", "")
    return f"tree {tree.hex()}\n{parents}author {identity}\ncommitter {identity}\n\n{text}".encode(errors="replace")


class ChangeWriter:
    """Makes changes to a tree, with small files packed in a thread while the next ones are read."""

    def __init__(self, pack: PackWriter, editor: TreeEditor) -> None:
        self._pack = pack
        self._editor = editor
        self._batch: list[_Blob] = []
        self._size = 0
        self._adding: asyncio.Task[Sequence[bytes]] | None = None
        self._added: Sequence[_Blob] = ()

    async def write(self, changes: AsyncIterable[GitChange]) -> None:
        """Make the changes. Raises GitFailed for unfit ones."""
        try:
            async for change in changes:
                await self._add_change(change)
            await self._finish_batches()
        finally:
            if self._adding is not None:  # a thread may write to the pack
                await asyncio.wait([self._adding])

    async def _add_change(self, change: GitChange) -> None:
        match change:
            case GitDeletion(path):
                await self._finish_batches()
                await self._editor.remove_entry(path)
            case GitLink(path, target):
                if not is_git_path(path, is_link=True):
                    await self._add_blob(path, _LINK_MODE, target.encode(errors="surrogateescape"))
            case GitFile(path):
                if not is_git_path(path, is_link=False):
                    await self._add_file(change)

    async def _finish_batches(self) -> None:
        await self._start_batch()
        await self._finish_batch()

    async def _add_file(self, file: GitFile) -> None:
        split_path(file.path)
        mode, content = _EXECUTABLE_MODE if file.is_executable else _FILE_MODE, file.content
        if not isinstance(content, bytes):
            if file.size > _BATCH_BYTES:
                await self._finish_batches()
                await self._editor.put_entry(file.path, mode, await self._stream_blob(file, content))
                return
            content = await _read_small(content)
        if len(content) != file.size:
            raise _wrong_size(file)
        await self._add_blob(file.path, mode, content)

    async def _stream_blob(self, file: GitFile, content: AsyncIterable[bytes]) -> bytes:
        blob = self._pack.begin_blob(file.size)
        try:
            async for chunk in content:
                await asyncio.to_thread(blob.write_part, chunk)
            return await asyncio.to_thread(blob.finish)
        except ValueError:
            raise _wrong_size(file) from None

    async def _add_blob(self, path: str, mode: bytes, data: bytes) -> None:
        self._batch.append((path, mode, data))
        self._size += len(data)
        if self._size >= _BATCH_BYTES:
            await self._start_batch()

    async def _start_batch(self) -> None:
        """Begin to pack the batch, once the one before is packed."""
        await self._finish_batch()
        self._added, self._batch, self._size = self._batch, [], 0
        self._adding = asyncio.create_task(asyncio.to_thread(self._pack_blobs, self._added))

    async def _finish_batch(self) -> None:
        if self._adding is not None:
            ids = await asyncio.shield(self._adding)
            self._adding = None
            for (path, mode, _), oid in zip(self._added, ids, strict=True):
                await self._editor.put_entry(path, mode, oid)

    def _pack_blobs(self, blobs: Sequence[_Blob]) -> Sequence[bytes]:
        return [self._pack.add_object(ObjectKind.BLOB, data) for _, _, data in blobs]


def split_path(path: str) -> list[bytes]:
    """Return the parts of a path. Raises GitFailed for one that is no relative path of a tree."""
    parts = path.encode(errors="surrogateescape").split(b"/")
    if "\0" in path or not {b"", b".", b".."}.isdisjoint(parts):
        raise GitFailed(f"{path!a} cannot be a path in a commit")
    return parts


def _parse_entries(data: bytes) -> dict[bytes, _Entry]:
    """Parse a tree, which may be hostile. Raises GitFailed."""
    entries: dict[bytes, _Entry] = {}
    position = 0
    while position < len(data):
        end = data.find(b"\0", position)
        mode, _, name = data[position:end].partition(b" ")
        position = end + 21
        if end < 0 or position > len(data) or not name:
            raise GitFailed("A tree is malformed")
        entries[name] = (mode, data[end + 1 : position])
    return entries


def _write_folder(folder: _Folder, add_object: AddObject) -> bytes | None:
    """Return the id of the tree, None if it is empty: Git knows no empty folders."""
    rows: list[tuple[bytes, bytes]] = []
    for name, entry in folder.entries.items():
        if isinstance(entry, _Folder):
            if (written := _write_folder(entry, add_object)) is None:
                continue
            mode, oid = _FOLDER_MODE, written
        else:
            mode, oid = entry
        rows.append((name + b"/" if _is_folder(mode) else name, b"%b %b\0%b" % (mode, name, oid)))
    data = b"".join(row for _, row in sorted(rows))
    if not data or object_id(ObjectKind.TREE, data) == folder.oid:
        return folder.oid if data else None
    return add_object(ObjectKind.TREE, data)


def _is_folder(mode: bytes) -> bool:
    return mode.lstrip(b"0") == _FOLDER_MODE


async def _read_small(content: AsyncIterable[bytes]) -> bytes:
    """Return the content of a small file, or the first part of one that is larger than it should be."""
    data = b""
    async for chunk in content:
        data += chunk
        if len(data) > _BATCH_BYTES:
            break
    return data


def _wrong_size(file: GitFile) -> GitFailed:
    return GitFailed(f"The content of {file.path!a} has another size than it was said to have")


def _format_author(author: str) -> str:
    found = _AUTHOR.fullmatch(author)
    name, address = (found["name"], found["address"] or "") if found else (author, "")
    return f"{_FORBIDDEN.sub('', name).strip(' .,:;') or 'agent'} <{_FORBIDDEN.sub('', address).strip()}>"
