"""Reading of what Git prints about trees and blobs; all of it may come from hostile objects."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence

from roost.drivers.git.contract import EntryKind, GitBlob, GitEntry, GitFailed

_READ_BYTES = 256 * 1024
_KINDS = {
    b"100644": EntryKind.FILE,
    b"100664": EntryKind.FILE,  # of old versions of Git
    b"100755": EntryKind.EXECUTABLE,
    b"120000": EntryKind.LINK,
    b"160000": EntryKind.SUBMODULE,
}


async def parse_tree(reader: asyncio.StreamReader) -> AsyncGenerator[GitEntry]:
    """Parse `git ls-tree -r -l -z`. Raises GitFailed."""
    while entry := await _read_field(reader):
        head, _, path = entry.partition(b"\t")
        match head.split():
            case [mode, b"blob" | b"commit", blob, size] if mode in _KINDS:
                yield GitEntry(_path(path), _KINDS[mode], blob.decode(), int(size) if size.isdigit() else None)
            case _:
                raise GitFailed("A tree has an entry that is neither a file nor a link")


async def parse_changes(reader: asyncio.StreamReader) -> AsyncGenerator[GitEntry]:
    """Parse `git diff-tree -r -z --no-renames`. Raises GitFailed."""
    while head := await _read_field(reader):
        path = _path(await _read_field(reader))
        match head.split():
            case [_, _, _, _, b"D"]:
                yield GitEntry(path, EntryKind.DELETED, "")
            case [_, mode, _, blob, _] if mode in _KINDS:
                yield GitEntry(path, _KINDS[mode], blob.decode())
            case _:
                raise GitFailed("A tree has an entry that is neither a file nor a link")


async def parse_blobs(reader: asyncio.StreamReader, blobs: Sequence[str]) -> AsyncGenerator[GitBlob]:
    """Parse `git cat-file --batch` for these blobs. Raises GitFailed."""
    for blob in blobs:
        match (await reader.readline()).split():
            case [name, b"blob", size] if name.decode() == blob:
                content = _BlobContent(reader, int(size))
            case _:
                raise GitFailed(f"The repository has no blob {blob}")
        yield GitBlob(blob, int(size), content)
        async for _ in content:  # the rest
            pass
        await reader.readexactly(1)


class _BlobContent(AsyncIterator[bytes]):
    def __init__(self, reader: asyncio.StreamReader, size: int) -> None:
        self._reader = reader
        self._left = size

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        chunk = await self._reader.read(min(self._left, _READ_BYTES))
        if not chunk:
            raise GitFailed("Git ended in the middle of a blob")
        self._left -= len(chunk)
        return chunk


async def _read_field(reader: asyncio.StreamReader) -> bytes:
    """Return the next field without its NUL, empty at the end."""
    try:
        return (await reader.readuntil(b"\0"))[:-1]
    except asyncio.IncompleteReadError as error:
        if error.partial:
            raise GitFailed("Git ended in the middle of a tree") from None
        return b""
    except asyncio.LimitOverrunError:
        raise GitFailed("A tree has a path that is too long") from None


def _path(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")
