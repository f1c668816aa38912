"""Reproducible tar of a file or folder (POSIX.1-2001, pax): members in folder order below the CID, no owner, no time.

All content is verified while it is read. Entries that could be unpacked outside the top folder are rejected, and so are
symbolic links that lead outside of it.
"""

import asyncio
import itertools
import tarfile
from collections.abc import AsyncGenerator
from contextlib import aclosing

from roost.storage.content.errors import ContentDamaged, NotArchivable, TooDeep, TooManyArchiveMembers
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader, ContentStat
from roost.storage.content.unixfs.cid import DAG_PB, RAW, Cid
from roost.storage.content.unixfs.dagpb import UnixfsKind

FORMAT_VERSION = 2
"""Increase for every change of the bytes."""
MAX_MEMBERS = 100_000
CHECKED_MEMBERS = 5_000
CHECK_SECONDS = 1.0
"""Members that are checked before the response begins, and for how long; a walk of all could take ten seconds."""
_MAX_DEPTH = 64
_LONGEST_NAME, _LONGEST_PATH = 255, 4_096  # bytes; the limits of Linux
_PERMISSIONS = 0o777
_END = bytes(2 * tarfile.BLOCKSIZE)

_Member = tuple[str, Cid, ContentStat | None]
"""Path, CID and stat of a member; None marks a raw block, which is a file."""


class TarArchive:
    """Tar of one file or folder: `check` it, then `stream` it."""

    def __init__(self, reader: ContentReader, scope: ContentScope, top: ContentStat) -> None:
        self._reader = reader
        self._scope = scope
        self._top = top

    async def check(self) -> None:
        """Walk the first members, so that most errors are found before the response begins.

        Raises NotArchivable, TooManyArchiveMembers, TooDeep, MalformedContent, ContentNotFound, ContentDamaged,
        BlobStoreFailed.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + CHECK_SECONDS
        async with aclosing(self._walk_limited()) as members:
            count = 0
            async for _ in members:
                count += 1
                if count == CHECKED_MEMBERS or loop.time() > deadline:
                    return

    async def stream(self) -> AsyncGenerator[bytes]:
        """Yield the bytes of the tar. Raises the errors of `check`."""
        async for path, cid, stat in self._walk_limited():
            if stat is None:
                data = await self._reader.read_block(self._scope, cid)
                yield _file_header(path, len(data), None) + data + _padding(len(data))
            elif stat.kind is UnixfsKind.SYMLINK:
                yield _member_header(path, tarfile.SYMTYPE, 0o777, target=_link_target(stat))
            elif stat.size is None:
                yield _member_header(f"{path}/", tarfile.DIRTYPE, 0o755 if stat.mode is None else stat.mode)
            else:
                async for piece in self._stream_file(path, stat, stat.size):
                    yield piece
        yield _END

    async def _stream_file(self, path: str, stat: ContentStat, size: int) -> AsyncGenerator[bytes]:
        yield _file_header(path, size, stat.mode)
        at = 0
        async for piece in self._reader.stream_file(self._scope, stat):
            at += len(piece)
            yield piece
        if at != size:
            raise ContentDamaged
        yield _padding(size)

    async def _walk_limited(self) -> AsyncGenerator[_Member]:
        count = 0
        async for member in self._walk_members(self._top.cid, str(self._top.cid), 0):
            count += 1
            if count > MAX_MEMBERS:
                raise TooManyArchiveMembers
            yield member

    async def _walk_members(self, cid: Cid, path: str, depth: int) -> AsyncGenerator[_Member]:
        stat = None if cid.codec == RAW else await self._reader.stat(self._scope, cid)
        if stat is not None and (cid.codec != DAG_PB or stat.kind is UnixfsKind.METADATA):
            raise NotArchivable
        if stat is not None and stat.kind is UnixfsKind.SYMLINK and not _leads_inside(_link_target(stat), depth - 1):
            raise NotArchivable
        yield path, cid, stat
        if stat is None or stat.size is not None:
            return
        if depth == _MAX_DEPTH:
            raise TooDeep
        names: set[str] = set()
        async for link in self._reader.list_entries(self._scope, stat):
            below = f"{path}/{link.name}"
            if not _is_safe(link.name) or link.name in names or len(below.encode()) > _LONGEST_PATH:
                raise NotArchivable
            names.add(link.name)
            async for member in self._walk_members(link.cid, below, depth + 1):
                yield member


def _is_safe(name: str) -> bool:
    """Return whether a name stays inside its folder on every operating system."""
    return name not in {"", ".", ".."} and not set(name) & {"/", "\\", "\0"} and len(name.encode()) <= _LONGEST_NAME


def _link_target(link: ContentStat) -> str:
    target = b"" if link.node is None else link.node.unixfs.data
    try:
        return target.decode()
    except UnicodeDecodeError:
        raise NotArchivable from None


def _leads_inside(target: str, depth: int) -> bool:
    """Return whether a link in a folder `depth` levels below the top can only lead to the top folder or below it.

    `..` after a name is refused: the name may be another link, whose target has another parent.
    """
    if not target or target.startswith("/") or len(target.encode()) > _LONGEST_PATH:
        return False
    parts = [part for part in target.split("/") if part not in {"", "."}]
    names = list(itertools.dropwhile(lambda part: part == "..", parts))
    return len(parts) - len(names) <= depth and all(map(_is_safe, names))


def _file_header(path: str, size: int, mode: int | None) -> bytes:
    return _member_header(path, tarfile.REGTYPE, 0o644 if mode is None else mode, size)


def _member_header(path: str, kind: bytes, mode: int, size: int = 0, target: str = "") -> bytes:
    """Build the header of a member; other bits than permissions, such as setuid, are left out of its mode."""
    member = tarfile.TarInfo(path)
    member.type, member.mode, member.size, member.linkname = kind, mode & _PERMISSIONS, size, target
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
