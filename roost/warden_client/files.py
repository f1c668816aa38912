"""Files of a container's workspace and home, in any size and number (`docs/builders/warden-protocol.md`)."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

from roost.warden_client.connection import (
    Json,
    WardenConnector,
    read_frames,
    reply_errors,
    send_and_receive,
    send_frames,
)
from roost.warden_client.errors import WardenFailed

Root = Literal["workspace", "home"]

TREE_SECONDS = 600.0  # to delete a folder with all its entries


@dataclass(frozen=True)
class FolderEntry:
    """Entry of a folder; bytes of `name` that are not UTF-8 are lone surrogates (`os.fsdecode`)."""

    name: str
    kind: Literal["file", "folder", "link", "other"]
    size: int
    mode: int
    modified_at: datetime


@dataclass(frozen=True)
class FileStat:
    """Size in bytes, permission bits, time and stamp of a file, when it was opened.

    Containers that run since before an update of the server have no stamp.
    """

    size: int
    mode: int
    modified_at: datetime
    stamp: "Stamp | None" = None


class Stamp(NamedTuple):
    """Version of an entry, which changes whenever the content may have changed.

    An entry that changed within the last 20 ms has the ctime 0, because another change could have the same time.
    """

    mtime_ns: int
    ctime_ns: int
    inode: int


class WardenFiles:
    """Files of one container; every call may also raise ContainerNotRunning, WardenBusy and WardenFailed."""

    def __init__(self, warden: WardenConnector) -> None:
        self._warden = warden

    async def tree(
        self, path: str = ".", *, root: Root = "workspace", after: str = "", recursive: bool = True, limit: int = 1000
    ) -> Sequence[FolderEntry]:
        """Return at most `limit` (10,000) entries below a folder, with paths from the root as names.

        A folder precedes its entries, which are in the order of their names; `after` is the last entry of the page
        before. Raises PathRefused, WardenFileNotFound, WardenNotAFile and WardenTooManyEntries.
        """
        request = {"path": path, "root": root, "after": after, "recursive": recursive, "limit": limit}
        return await self._warden.read_items(parse_folder_entry, "tree", **request)

    @asynccontextmanager
    async def download(
        self, path: str, *, root: Root = "workspace", offset: int = 0, length: int | None = None
    ) -> AsyncGenerator[tuple[FileStat, AsyncIterator[bytes]]]:
        """Open a regular file of any size, and yield its status and at most `length` bytes from `offset`.

        A negative offset counts from the end.
        Raises PathRefused, WardenFileNotFound, WardenNotAFile.
        """
        request = {"path": path, "root": root, "offset": offset, "length": length}
        async with self._warden.request("download", **request) as (reply, (reader, _)):
            with reply_errors():
                found = _parse_stat(reply)
            async with aclosing(_read_content(reader)) as content:
                yield found, content

    async def upload(
        self,
        path: str,
        content: AsyncIterable[bytes],
        *,
        root: Root = "workspace",
        mode: int = 0o644,
        expected: Sequence[Stamp] | None = None,
    ) -> int:
        """Write a file of any size as `write` does, once `content` has ended, and return its size.

        With `expected` only in place of a file that has one of these stamps; if that is empty, of any file.
        Raises PathRefused, WardenNotAFile, WardenFileTooLarge, WardenDiskFull, WardenTreeChanged and the errors of
        `content`; WardenRequestUnknown for `expected` in containers that run since before an update of the server.
        """
        operation, condition = ("upload", {}) if expected is None else ("replace", {"expected": expected})
        request = {"path": path, "root": root, "mode": mode, **condition}
        async with self._warden.request(operation, **request) as (_, (reader, writer)):
            end = await send_and_receive(send_frames(writer, b"d", content), _read_end(reader), TREE_SECONDS)
            with reply_errors():
                return int(end["size"])

    async def delete(self, path: str, *, root: Root = "workspace", recursive: bool = False) -> None:
        """Delete a file, a link or a folder, which must be empty unless `recursive`.

        Raises PathRefused, WardenFileNotFound, WardenFolderNotEmpty.
        """
        async with self._warden.request("delete", TREE_SECONDS, path=path, root=root, recursive=recursive):
            return

    async def move(self, path: str, target: str, *, root: Root = "workspace") -> None:
        """Rename a file, a link or a folder. Raises PathRefused, WardenFileNotFound, WardenFileExists."""
        async with self._warden.request("move", path=path, target=target, root=root):
            return

    async def make_folder(self, path: str, *, root: Root = "workspace") -> None:
        """Create a folder with missing parents; an existing one is kept. Raises PathRefused, WardenNotAFile."""
        async with self._warden.request("make_folder", path=path, root=root):
            return


async def _read_content(reader: asyncio.StreamReader) -> AsyncGenerator[bytes]:
    async for kind, data in read_frames(reader):
        if kind == b"d":
            yield data


async def _read_end(reader: asyncio.StreamReader) -> Json:
    """Return the last frame of a reply without other frames."""
    async for kind, data in read_frames(reader, idle=None, last=True):
        if kind == b"x":
            return json.loads(data)
    raise WardenFailed


def _parse_stat(reply: Json) -> FileStat:
    stamp = Stamp(*map(int, reply["stamp"])) if "stamp" in reply else None
    return FileStat(int(reply["size"]), int(reply["mode"]), parse_time(reply["time"]), stamp)


def parse_folder_entry(item: Any) -> FolderEntry:
    """Parse an entry of a reply. Raises WardenFailed and errors of its parts."""
    name, kind, size, mode, modified = item
    if kind not in {"file", "folder", "link", "other"} or not name or "\0" in name:
        raise WardenFailed
    return FolderEntry(str(name), kind, int(size), int(mode), parse_time(modified))


def parse_time(seconds: Any) -> datetime:
    """Return the time of Unix seconds."""
    return datetime.fromtimestamp(float(seconds), UTC)
