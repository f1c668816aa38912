"""The objects of a commit: its changes as blobs of a pack, the changed trees, and the commit itself."""

import asyncio
import re
from collections.abc import AsyncIterable, Sequence
from datetime import datetime

from roost.drivers.git.contract import GitChange, GitDeletion, GitFailed, GitFile, GitLink, is_git_path
from roost.drivers.git.pack_writer import ObjectKind, PackWriter
from roost.drivers.git.tree_editor import TreeEditor, split_path

_AUTHOR = re.compile(r"(?P<name>[^<>]*)(?:<(?P<address>[^<>]*)>)?\s*")
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f<>]")
_FILE_MODE, _EXECUTABLE_MODE, _LINK_MODE = b"100644", b"100755", b"120000"
_BATCH_BYTES = 1024**2

_Blob = tuple[str, bytes, bytes]  # path, mode and content


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
