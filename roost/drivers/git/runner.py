"""Runs scripts on repositories in a folder of this machine, each in a sandbox of its own.

All that Git prints about trees and blobs may come from hostile objects.
"""

import asyncio
import os
import re
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from roost.core import log
from roost.core.machine.disk_space import read_disk_space
from roost.core.sanitize import sanitize_line
from roost.drivers.git import scripts
from roost.drivers.git.contract import (
    MAIN,
    MAX_PACK_BYTES,
    MAX_REPOSITORY_BYTES,
    EntryKind,
    GitBlob,
    GitDiskFull,
    GitEntry,
    GitFailed,
    GitUnavailable,
    PushUnfinished,
    RepositoryUsage,
    UnknownCommit,
)
from roost.drivers.git.repository_files import list_packs, read_reference
from roost.drivers.git.scripts import GitScript, sandbox_command
from roost.drivers.runtime.contract import RuntimeFailed
from roost.drivers.sandbox.contract import CommandProcess, Sandbox

PROBE = ".probe"
"""A name that no agent has, for the repository of a probe."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,63}")
_OBJECT_ID = re.compile(r"[0-9a-f]{40}")
_READ_BYTES = 256 * 1024
_MAX_FIELD_BYTES = 1024**2
_KINDS = {
    b"100644": EntryKind.FILE,
    b"100664": EntryKind.FILE,  # of old versions of Git
    b"100755": EntryKind.EXECUTABLE,
    b"120000": EntryKind.LINK,
    b"160000": EntryKind.SUBMODULE,
}

_log = log.get_logger("git")


class GitRunner:
    """Sandboxed commands by agent. `writers` counts those that may write; `dirty` names repositories with remains."""

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self._folder = folder
        self._sandbox = sandbox
        self.writers = Counter[str]()
        self.dirty = set[str]()

    @asynccontextmanager
    async def run(self, agent_id: str, script: GitScript) -> AsyncGenerator[CommandProcess]:
        """Run a script until the block ends. Raises GitUnavailable, GitFailed."""
        self.writers[agent_id] += script.is_writable  # before the first wait, so that no collection begins meanwhile
        try:
            try:
                process = await self._sandbox.run(sandbox_command(self.path(agent_id), script))
            except RuntimeFailed as error:
                _log.error("git.start_failed", reason=error.message)  # it may name paths of this machine
                raise GitUnavailable from None
            try:
                yield process
            except BaseException:
                if script.is_writable:
                    self.dirty.add(agent_id)
                raise
            finally:
                await process.kill()
        finally:
            self.writers[agent_id] -= script.is_writable

    async def query(self, agent_id: str, script: GitScript) -> str:
        """Run a script and return its short answer. Raises as `check_status`."""
        async with self.run(agent_id, script) as process:
            answer = await process.reader.read()
            await check_status(process)
        return answer.decode(errors="replace").strip()

    async def read_head(self, agent_id: str) -> str | None:
        """Return the commit of `main` in the folder, without a command unless Git has packed it."""
        path = self.path(agent_id)
        head = read_reference(path, MAIN)
        if head or not any(map(os.path.lexists, (path / MAIN, path / "packed-refs"))):
            return head
        return await self.query(agent_id, GitScript(scripts.SHOW_HEAD)) or None

    async def list_tree(self, agent_id: str, commit: str) -> AsyncGenerator[GitEntry]:
        """Yield the entries of a commit."""
        script = GitScript(scripts.LIST_TREE, (check_object_id(commit),))
        async with self.run(agent_id, script) as process:
            async for entry in _parse_tree(process.reader):
                yield entry
            await check_status(process)

    async def read_blobs(self, agent_id: str, blobs: Sequence[str]) -> AsyncGenerator[GitBlob]:
        """Yield blobs."""
        async with self.run(agent_id, GitScript(scripts.READ_BLOBS)) as process, feed_command(process, id_lines(blobs)):
            async for blob in parse_blobs(process.reader, blobs):
                yield blob
            await check_status(process)

    def prepare_folder(self) -> None:
        """Create the folder of all repositories, which their users may enter but not list."""
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o711)

    def check_disk(self) -> None:
        """Raise GitDiskFull unless the disk has space for a push."""
        if not read_disk_space(self._folder).leaves(MAX_PACK_BYTES):
            raise GitDiskFull

    def has_space(self, agent_id: str) -> bool:
        """Return whether a repository may become larger."""
        return sum(list_packs(self.path(agent_id)).values()) < MAX_REPOSITORY_BYTES

    def measure_usage(self, agent_id: str) -> RepositoryUsage | None:
        """Return what a repository takes, None if there is none."""
        folder = self.path(agent_id)
        try:
            changed, collected = (
                datetime.fromtimestamp((folder / name).lstat().st_mtime, UTC)
                for name in ("objects/pack", scripts.COLLECTED)
            )
            return RepositoryUsage(sum(list_packs(folder).values()), changed, collected)
        except OSError:
            return None

    async def remove(self, agent_id: str) -> None:
        """Remove a repository. Raises GitFailed."""
        try:
            await self._sandbox.remove_folder(self.path(agent_id))
        except OSError as error:
            _log.error("git.removal_failed", reason=str(error))
            raise GitFailed from None

    def path(self, agent_id: str) -> Path:
        """Return the folder of a repository. Raises GitFailed for what is no agent's id."""
        if agent_id != PROBE and not _NAME.fullmatch(agent_id):
            raise GitFailed(f"{agent_id!a} cannot be the name of a repository")
        return self._folder / agent_id


@asynccontextmanager
async def feed_command(process: CommandProcess, body: AsyncIterable[bytes] | None) -> AsyncGenerator[None]:
    """Send the body to a command while its output is read; the reading fails as the body does."""
    if body is None:
        process.send_eof()
        yield
        return
    feeding = asyncio.create_task(_feed(process, body))
    try:
        yield
    finally:
        feeding.cancel()
        await asyncio.wait([feeding])


async def send_input(process: CommandProcess, parts: AsyncIterable[bytes]) -> None:
    """Send the whole input of a command, as far as it reads it; if it has ended, its status says why."""
    async for part in parts:
        try:
            await process.send(part)
        except ConnectionError:
            return
    process.send_eof()


async def _feed(process: CommandProcess, body: AsyncIterable[bytes]) -> None:
    try:
        await send_input(process, body)
    except Exception as error:  # noqa: BLE001 - raised where the output is read
        process.reader.set_exception(error)


async def read_status(process: CommandProcess) -> int | None:
    """Wait for the end of a script and return its status, None if it was killed."""
    word = await process.control[0].readline()
    return int(word[5:]) if word.startswith(b"exit ") else None


async def check_status(process: CommandProcess) -> None:
    """Wait for the end of a script. Raises GitFailed, UnknownCommit, PushUnfinished."""
    status = await read_status(process)
    if status == scripts.UNKNOWN_COMMIT:
        raise UnknownCommit
    if status == scripts.PUSH_UNFINISHED:
        raise PushUnfinished
    if status != 0:
        _log.warning("git.command_failed", reason=sanitize_line(process.read_error()), status=status)
        raise GitFailed


async def id_lines(ids: Sequence[str]) -> AsyncGenerator[bytes]:
    """Yield the ids of objects as lines of input. Raises UnknownCommit."""
    for value in ids:
        yield f"{check_object_id(value)}\n".encode()


def check_object_id(value: str) -> str:
    """Return the id of an object. Raises UnknownCommit for anything else."""
    if not _OBJECT_ID.fullmatch(value):
        raise UnknownCommit
    return value


async def _parse_tree(reader: asyncio.StreamReader) -> AsyncGenerator[GitEntry]:
    """Parse `git ls-tree -r -l -z`. Raises GitFailed."""
    async for entry in _read_fields(reader):
        head, _, path = entry.partition(b"\t")
        match head.split():
            case [mode, b"blob" | b"commit", blob, size] if mode in _KINDS:
                yield GitEntry(_path(path), _KINDS[mode], blob.decode(), int(size) if size.isdigit() else None)
            case _:
                raise GitFailed("A tree has an entry that is neither a file nor a link")


async def parse_changes(reader: asyncio.StreamReader) -> AsyncGenerator[GitEntry]:
    """Parse `git diff-tree -r -z --no-renames` up to the field `.` or the end. Raises GitFailed."""
    fields = _read_fields(reader)
    async for head in fields:
        if head == b".":
            return
        path = _path(await anext(fields, b""))
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


async def _read_fields(reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
    """Yield the fields without their NULs. Raises GitFailed."""
    rest = b""
    while chunk := await reader.read(_READ_BYTES):
        *fields, rest = (rest + chunk).split(b"\0")
        if len(rest) > _MAX_FIELD_BYTES:
            raise GitFailed("A tree has a path that is too long")
        for field in fields:
            yield field
    if rest:
        raise GitFailed("Git ended in the middle of a tree")


def _path(raw: bytes) -> str:
    return raw.decode(errors="surrogateescape")
