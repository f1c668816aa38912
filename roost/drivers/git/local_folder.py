"""A folder of this machine in the place of a repository: templates of the package, and those that authors check."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from roost.drivers.git.contract import EntryKind, GitBlob, GitEntry
from roost.drivers.git.remote_contract import (
    MAX_REMOTE_BYTES,
    MAX_REMOTE_ENTRIES,
    FetchedCommit,
    RemoteRefs,
    RemoteRefused,
    RemoteRepositories,
)

_GIT_FOLDER = ".git"
_ANY_EXECUTES = 0o111


class LocalFolder(FetchedCommit):
    """The files of a folder, without a commit. Raises RemoteRefused for a folder that is too large or unreadable."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        entries: list[GitEntry] = []
        size = 0
        for entry in _walk_folder(folder, ""):
            entries.append(entry)
            size += entry.size or 0
            if len(entries) > MAX_REMOTE_ENTRIES or size > MAX_REMOTE_BYTES:
                limits = f"{MAX_REMOTE_ENTRIES:,} files and {MAX_REMOTE_BYTES // 1024**2} MiB"
                raise RemoteRefused(f"A template has at most {limits}")
        super().__init__("", entries)

    async def read_blobs(self, entries: Sequence[GitEntry]) -> AsyncGenerator[GitBlob]:
        for entry in entries:
            path = self._folder / entry.path
            try:
                content = os.fsencode(path.readlink()) if entry.kind is EntryKind.LINK else path.read_bytes()
            except OSError as error:
                raise RemoteRefused(f"{entry.path}: {error.strerror}") from None
            yield GitBlob("", len(content), _iterate_once(content))


class LocalRepository(RemoteRepositories):
    """One folder as a repository without references; it knows no URLs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def list_refs(self, subject: str, url: str) -> RemoteRefs:
        del subject, url
        return RemoteRefs()

    @asynccontextmanager
    async def fetch(self, subject: str, url: str, ref: str | None) -> AsyncGenerator[FetchedCommit]:
        del subject, url, ref
        yield LocalFolder(self._folder)


def _walk_folder(folder: Path, prefix: str) -> Iterator[GitEntry]:
    """Yield files and links as Git sees them: without empty folders and its own data, in order."""
    try:
        found = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError as error:
        raise RemoteRefused(f"{folder}: {error.strerror}") from None
    for entry in found:
        path, status = f"{prefix}{entry.name}", entry.stat(follow_symlinks=False)
        if entry.is_symlink():
            yield GitEntry(path, EntryKind.LINK, "", status.st_size)
        elif entry.is_dir():
            if entry.name != _GIT_FOLDER:
                yield from _walk_folder(Path(entry.path), f"{path}/")
        elif entry.is_file():
            kind = EntryKind.EXECUTABLE if status.st_mode & _ANY_EXECUTES else EntryKind.FILE
            yield GitEntry(path, kind, "", status.st_size)


async def _iterate_once(content: bytes) -> AsyncIterator[bytes]:
    yield content
