"""Changes of a tree, and how they are sent to a warden (`docs/builders/warden-protocol.md`)."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import dataclass

from roost.warden_client.connection import read_frames, reply_errors, send_frame
from roost.warden_client.errors import PathRefused, WardenFailed
from roost.warden_client.files import Stamp

MAX_PATH_CHARACTERS, MAX_TARGET_BYTES = 65_536, 4096
MAX_BATCH_CHARACTERS = 200_000  # of JSON, before the last item is added

_CONTENT_BYTES, _SMALL_BYTES = 512 * 1024, 128 * 1024
_CHANGES = 1_000_000


@dataclass(frozen=True)
class ExpectEntry:
    """Condition of an apply: what a path has before the first change, or else WardenTreeChanged.

    It has a file with that stamp, a link with that target, or neither (None): it is missing, or a folder of which the
    same changes remove all files and links.
    """

    path: str
    entry: tuple[int, int, int] | str | None


@dataclass(frozen=True)
class RemovePath:
    """Removal of a file, a link or a folder with all below it; a missing one is no error."""

    path: str


@dataclass(frozen=True)
class PutFolder:
    """Folder with permission bits; an existing one keeps its entries."""

    path: str
    mode: int


@dataclass(frozen=True)
class PutLink:
    """Symbolic link."""

    path: str
    target: str


@dataclass(frozen=True)
class PutFile:
    """File with permission bits, and content of `size` bytes."""

    path: str
    mode: int
    size: int
    content: bytes | AsyncIterable[bytes]


TreeChange = ExpectEntry | RemovePath | PutFolder | PutLink | PutFile


async def send_changes(writer: asyncio.StreamWriter, changes: AsyncIterable[TreeChange], files: list[str]) -> None:
    """Send changes, and then the frame that puts them in place; `files` gets the paths of files in their order."""
    sender = _ChangeSender(writer)
    async for change in changes:
        if len(change.path) > MAX_PATH_CHARACTERS:
            raise PathRefused
        match change:
            case ExpectEntry(path, entry):
                await sender.add("expect", path, [] if entry is None else entry)
            case RemovePath(path):
                await sender.add("remove", path)
            case PutFolder(path, mode):
                await sender.add("folder", path, mode)
            case PutLink(path, target):
                if not target or "\0" in target or len(target) > MAX_TARGET_BYTES:
                    raise PathRefused(f"{path[:200]!a} is a symbolic link without a valid target")
                await sender.add("link", path, target)
            case PutFile(path):
                files.append(path)
                await sender.add_file(change)
    await sender.flush()
    await send_frame(writer, b"x")


async def read_stamps(reader: asyncio.StreamReader) -> list[Stamp | None]:
    """Return the stamps of an apply. Raises WardenFailed."""
    stamps: list[Stamp | None] = []
    async for kind, data in read_frames(reader, idle=None):
        if kind != b"d":
            raise WardenFailed
        with reply_errors():
            stamps += [item and Stamp(*map(int, item)) for item in json.loads(data)]
        if len(stamps) > _CHANGES:
            raise WardenFailed
    return stamps


class _ChangeSender:
    """Collects changes, and sends them in frames with the content of their files."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._changes: list[str] = []
        self._contents: list[bytes] = []
        self._characters = self._bytes = 0

    async def add(self, *change: object, content: bytes = b"") -> None:
        self._changes.append(json.dumps(change))
        self._contents.append(content)
        self._characters += len(self._changes[-1])
        self._bytes += len(content)
        if self._characters > MAX_BATCH_CHARACTERS or self._bytes > _CONTENT_BYTES:
            await self.flush()

    async def add_file(self, file: PutFile) -> None:
        fields = ("file", file.path, file.mode, file.size)
        if isinstance(file.content, bytes):
            _check_size(file.size, len(file.content))
            await self.add(*fields, content=file.content)
        elif file.size <= _SMALL_BYTES:
            data = b"".join([chunk async for chunk in _check_chunks(file.size, file.content)])
            await self.add(*fields, content=data)
        else:
            await self.add(*fields)
            await self.flush()
            async for chunk in _check_chunks(file.size, file.content):
                await self._send_content(chunk)

    async def flush(self) -> None:
        if self._changes:
            await send_frame(self._writer, b"c", f"[{','.join(self._changes)}]".encode())
            await self._send_content(b"".join(self._contents))
        self._changes, self._contents, self._characters, self._bytes = [], [], 0, 0

    async def _send_content(self, data: bytes) -> None:
        for start in range(0, len(data), _CONTENT_BYTES):
            await send_frame(self._writer, b"d", memoryview(data)[start : start + _CONTENT_BYTES])


async def _check_chunks(size: int, content: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    """Yield chunks as long as they have at most `size` bytes. Raises ValueError also if they have less."""
    sent = 0
    async for chunk in content:
        sent += len(chunk)
        _check_size(size, max(sent, size))
        yield chunk
    _check_size(size, sent)


def _check_size(size: int, actual: int) -> None:
    if actual != size:
        raise ValueError(f"the content has {actual} bytes, its size is {size}")
