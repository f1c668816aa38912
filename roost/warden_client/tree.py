"""Whole trees of a container's workspace and home: scan, read and change them (`docs/builders/warden-protocol.md`).

Paths are relative to the root, with `/` between their parts; bytes that are not UTF-8 are lone surrogates
(`os.fsdecode`).
"""

import asyncio
import json
import stat
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from roost.core.problem import Problem
from roost.warden_client.changes import (
    MAX_BATCH_CHARACTERS,
    MAX_PATH_CHARACTERS,
    MAX_TARGET_BYTES,
    TreeChange,
    read_stamps,
    send_changes,
)
from roost.warden_client.connection import (
    Frame,
    WardenConnector,
    read_frames,
    reply_errors,
    run_meanwhile,
    send_and_receive,
    send_frame,
)
from roost.warden_client.errors import PROBLEMS, WardenFailed, WardenTooManyEntries
from roost.warden_client.files import TREE_SECONDS, Root, Stamp

STAGING_NAME = ".roost-staging"
"""Folder of `apply` at a root; entries of the root whose names begin with it are never scanned."""

_ENTRIES, _WATCH_SECONDS = 1_000_000, 60.0
_Row = tuple[int, str, int, int, int, int, int]  # depth, name, mode, size and stamp
EntryKind = Literal["file", "folder", "link", "other"]
_NO_CONTENT = memoryview(b"")
_KINDS: dict[int, EntryKind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}


class ScanEntry(NamedTuple):
    """Entry of a tree; `error` is a code of the protocol for a folder that the agent closed, or empty."""

    path: str
    kind: EntryKind
    size: int
    mode: int
    stamp: Stamp
    target: str = ""
    error: str = ""


@dataclass
class FileReading:
    """File of `WardenTree.read_files`: its status when it was opened, and its content, or an error.

    The content of a large file comes in chunks. Once it has ended, `is_changed` tells whether the file changed while
    it was read.
    """

    path: str
    error: Problem | None
    size: int
    mode: int
    stamp: Stamp
    content: memoryview | AsyncIterator[bytes] = _NO_CONTENT
    is_changed: bool = False


@dataclass(frozen=True)
class ChangedPaths:
    """Paths of entries that were created, changed, moved or deleted; a folder stands for all entries below it.

    If they are not complete, any entry may have changed.
    """

    paths: frozenset[str]
    is_complete: bool


class WardenTree:
    """Trees of one container; every call may also raise ContainerNotRunning, WardenBusy and WardenFailed."""

    def __init__(self, warden: WardenConnector) -> None:
        self._warden = warden

    async def scan(self, root: Root = "workspace") -> AsyncGenerator[Sequence[ScanEntry]]:
        """Yield all entries below a root in batches: depth first, a folder before its entries, names in byte order.

        Entries that are deleted or replaced during the walk may be missing. Links are not followed.
        Raises PathRefused if the root cannot be read, and WardenTooManyEntries: at most 256 parts of a path, 100,000
        entries of a folder, 1,000,000 in all.
        """
        parser = _ScanParser()
        async with self._warden.request("scan", root=root) as (_, (reader, _)):
            async for _, data in read_frames(reader):
                with reply_errors():
                    entries = parser.parse_batch(data)
                yield entries

    async def read_files(self, paths: Iterable[str], root: Root = "workspace") -> AsyncGenerator[Sequence[FileReading]]:
        """Yield files in the order of their paths, in batches, over one connection. No link is followed.

        Only the last file of a batch may be large: read it before the next batch is taken; the rest of it is skipped.
        A content has at most the size that the file had when it was opened. Errors: WardenFileNotFound,
        WardenNotAFile, PathRefused, WardenBusy.
        """
        pending = deque(paths)
        async with self._warden.request("read_files", root=root) as (_, (reader, writer)):
            sending = _send_paths(writer, tuple(pending))  # a copy, because `pending` becomes shorter meanwhile
            async with run_meanwhile(sending), aclosing(read_frames(reader)) as frames:
                async for kind, data in frames:
                    if kind != b"f":
                        raise WardenFailed
                    files, is_last_large = await _read_batch(data, frames, pending)
                    if not is_last_large:
                        yield files
                        continue
                    async with aclosing(_read_parts(files[-1], frames)) as files[-1].content:
                        yield files
                        async for _ in files[-1].content:
                            continue
        if pending:
            raise WardenFailed

    async def apply(
        self, changes: AsyncIterable[TreeChange], root: Root = "workspace", *, with_stamps: bool = True
    ) -> dict[str, Stamp]:
        """Change a tree, and return the stamps of the files written; one that changed again at once has none.

        `with_stamps=False` returns none, which is faster: a stamp takes two ticks of the clock.

        All files and links are written and durable before the first path changes, and everything is durable on return:
        an error of `changes`, content of another size (ValueError) or a disconnect before their end change nothing.
        Repeat the changes to complete an apply that a crash interrupted.

        Removals come first, then folders, then files and links. Missing parents are made (0755); a file or link in the
        way of a folder and a folder in the way of a file are replaced. No link is followed. Folders without write
        permission are changed all the same and keep their modes.

        Raises PathRefused, WardenTreeChanged, WardenBusy (another apply of that root), WardenDiskFull,
        WardenFileTooLarge (delete-only) and WardenTooManyEntries (1,000,000 changes).
        """
        files: list[str] = []
        async with self._warden.request("apply", TREE_SECONDS, root=root, stamps=with_stamps) as (_, (reader, writer)):
            sending = send_changes(writer, changes, files)
            stamps = await send_and_receive(sending, read_stamps(reader), TREE_SECONDS)
        with reply_errors():
            return {path: stamp for path, stamp in zip(files, stamps, strict=True) if stamp} if with_stamps else {}

    async def watch(
        self, root: Root = "workspace", checks: AsyncIterable[object] | None = None
    ) -> AsyncGenerator[ChangedPaths]:
        """Yield changes about 0.1 s after they happen, until the consumer closes it.

        The first item has no paths: from then on no change is missed. Each item of `checks` is answered by one without
        paths, after all changes from before it; a program that could write through a mapping of a file is one.
        Raises WardenWatchRefused, also later: the tree has too many folders for it, so the consumer has to scan.
        """
        async with (
            self._warden.request("watch", _WATCH_SECONDS, root=root) as (_, (reader, writer)),
            run_meanwhile(None if checks is None else _send_checks(writer, checks)),
        ):
            yield ChangedPaths(frozenset(), is_complete=True)
            async for _, data in read_frames(reader, idle=None):
                with reply_errors():
                    changes = _parse_changes(data)
                yield changes


class _ScanParser:
    """Parser of a scan's batches, which checks their paths and order."""

    def __init__(self) -> None:
        self._prefixes: list[str] = [""]  # of the folders on the way to the last row
        self._last_names = [b""]
        self._count = 0

    def parse_batch(self, data: bytes) -> Sequence[ScanEntry]:
        batch: tuple[list[_Row], list[tuple[int, str]], list[tuple[int, str]]] = json.loads(data)
        rows, targets, errors = batch
        self._count += len(rows)
        if self._count > _ENTRIES:
            raise WardenTooManyEntries
        entries = self._parse_rows(rows) if rows else []
        for index, target in targets:
            if "\0" in target or len(_encode_text(target)) > MAX_TARGET_BYTES:
                raise WardenFailed
            entries[index] = entries[index]._replace(target=target)
        for index, error in errors:
            if error not in PROBLEMS:
                raise WardenFailed
            entries[index] = entries[index]._replace(error=error)
        return entries

    def _parse_rows(self, rows: list[_Row]) -> list[ScanEntry]:
        names = _check_columns(rows)
        prefixes, last_names = self._prefixes, self._last_names
        entries: list[ScanEntry] = []
        for (depth, name, mode, size, *stamp), encoded in zip(rows, names, strict=True):
            if depth >= len(prefixes):
                raise WardenFailed
            if depth + 1 < len(prefixes):
                del prefixes[depth + 1 :], last_names[depth + 1 :]
            if encoded <= last_names[depth]:
                raise WardenFailed
            last_names[depth] = encoded
            path = prefixes[depth] + name
            kind = _KINDS.get(stat.S_IFMT(mode), "other")
            if kind == "folder":
                prefixes.append(f"{path}/")
                last_names.append(b"")
            entries.append(ScanEntry(path, kind, size, mode & 0o7777, Stamp._make(stamp)))
        return entries


def _check_columns(rows: list[Any]) -> list[bytes]:
    """Check the values of rows, and return their names as bytes. Raises WardenFailed and ValueError."""
    depths, names, modes, sizes, *stamps = zip(*rows, strict=True)
    joined = "\0".join(names)
    if "/" in joined or joined.count("\0") >= len(names) or not {"", ".", ".."}.isdisjoint(names):
        raise WardenFailed
    for column in (depths, modes, sizes, *stamps):
        if set(map(type, column)) != {int} or max(column) >= 1 << 64:
            raise WardenFailed
    if min(*depths, *modes, *sizes) < 0 or len(stamps) != len(Stamp._fields):
        raise WardenFailed
    return _encode_text(joined).split(b"\0")


def _parse_changes(data: bytes) -> ChangedPaths:
    changes: tuple[list[str], bool] = json.loads(data)
    paths, is_complete = changes
    for path in paths:
        if "\0" in path or not {"", ".", ".."}.isdisjoint(path.split("/")):
            raise WardenFailed
        _encode_text(path)
    return ChangedPaths(frozenset(paths), is_complete is True)


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


async def _send_paths(writer: asyncio.StreamWriter, paths: Iterable[str]) -> None:
    """Send paths in frames, and an empty one for their end."""
    batch: list[str] = []
    characters = 0
    for path in paths:
        batch.append(path if len(path) <= MAX_PATH_CHARACTERS else "")  # the warden refuses both
        characters += len(batch[-1]) + 4
        if characters > MAX_BATCH_CHARACTERS // 2:
            await send_frame(writer, b"d", json.dumps(batch).encode())
            batch, characters = [], 0
    if batch:
        await send_frame(writer, b"d", json.dumps(batch).encode())
    await send_frame(writer, b"d")


async def _send_checks(writer: asyncio.StreamWriter, checks: AsyncIterable[object]) -> None:
    async for _ in checks:
        await send_frame(writer, b"c")


async def _read_batch(
    data: bytes, frames: AsyncGenerator[Frame], paths: deque[str]
) -> tuple[Sequence[FileReading], bool]:
    """Return the files of a frame of rows, and whether the content of the last one follows in frames of its own."""
    with reply_errors():
        rows: list[Any] = json.loads(data)
        files = [_parse_file(paths.popleft(), row) for row in rows]
        lengths = [-1 if file.error else int(row[5]) for file, row in zip(files, rows, strict=True)]
    large = [index for index, file in enumerate(files) if lengths[index] < 0 and not file.error]
    if not files or large not in ([], [len(files) - 1]):
        raise WardenFailed
    content, start = memoryview((await _next_frame(frames, b"d"))[1] if max(lengths) >= 0 else b""), 0
    for file, length in zip(files, lengths, strict=True):
        if length >= 0:
            file.content = content[start : start + length]
            start += length
    if start != len(content):
        raise WardenFailed
    return files, bool(large)


def _parse_file(path: str, row: Any) -> FileReading:
    """Parse the row of a file. Raises WardenFailed and errors of its parts."""
    if len(row) == 1:
        return FileReading(path, PROBLEMS.get(row[0], WardenFailed)(), 0, 0, Stamp(0, 0, 0))
    size, mode, mtime, ctime, inode, length, _ = map(int, row)
    if not -1 <= length <= size < 1 << 63:
        raise WardenFailed
    return FileReading(path, None, size, mode & 0o7777, Stamp(mtime, ctime, inode), is_changed=row[6] is not False)


async def _read_parts(file: FileReading, frames: AsyncGenerator[Frame]) -> AsyncGenerator[bytes]:
    remaining = file.size
    while True:
        kind, data = await _next_frame(frames, b"de")
        if kind == b"e":
            file.is_changed = data != b"false"
            return
        remaining -= len(data)
        if remaining < 0:
            raise WardenFailed
        yield data


async def _next_frame(frames: AsyncGenerator[Frame], kinds: bytes) -> Frame:
    async for kind, data in frames:
        if kind in kinds:
            return kind, data
        break
    raise WardenFailed
