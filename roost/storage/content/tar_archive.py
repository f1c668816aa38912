"""Reproducible tar of a file or folder (POSIX.1-2001, pax): members in folder order below the CID, no owner, no time.

All content is verified while it is read. Entries that could be unpacked outside the top folder are rejected.
"""

import tarfile
from collections.abc import AsyncGenerator
from contextlib import aclosing

from roost.storage.content.errors import ContentDamaged, NotArchivable, TooDeep, TooManyArchiveMembers
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader, ContentStat
from roost.storage.unixfs.cid import DAG_PB, RAW, Cid
from roost.storage.unixfs.dagpb import UnixfsKind

FORMAT_VERSION = 1
"""Increase for every change of the bytes."""
MAX_MEMBERS = 100_000
CHECKED_MEMBERS = 5_000
"""Members that are checked before the response begins, in less than a second; a walk of all could take ten."""
_MAX_DEPTH = 64
_LONGEST_NAME, _LONGEST_PATH = 255, 4_096  # bytes; the limits of Linux
_END = bytes(2 * tarfile.BLOCKSIZE)


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
        async with aclosing(self._walk_limited()) as members:
            count = 0
            async for _ in members:
                count += 1
                if count == CHECKED_MEMBERS:
                    return

    async def stream(self) -> AsyncGenerator[bytes]:
        """Yield the bytes of the tar. Raises the errors of `check`."""
        async for path, cid, stat in self._walk_limited():
            if stat is None:
                data = await self._reader.read_block(self._scope, cid)
                yield _member_header(path, len(data)) + data + _padding(len(data))
            elif stat.size is None:
                yield _member_header(f"{path}/", None)
            else:
                async for piece in self._stream_file(path, stat, stat.size):
                    yield piece
        yield _END

    async def _stream_file(self, path: str, stat: ContentStat, size: int) -> AsyncGenerator[bytes]:
        yield _member_header(path, size)
        at = 0
        async for piece in self._reader.stream_file(self._scope, stat):
            at += len(piece)
            yield piece
        if at != size:
            raise ContentDamaged
        yield _padding(size)

    async def _walk_limited(self) -> AsyncGenerator[tuple[str, Cid, ContentStat | None]]:
        count = 0
        async for member in self._walk_members(self._top.cid, str(self._top.cid), 0):
            count += 1
            if count > MAX_MEMBERS:
                raise TooManyArchiveMembers
            yield member

    async def _walk_members(
        self, cid: Cid, path: str, depth: int
    ) -> AsyncGenerator[tuple[str, Cid, ContentStat | None]]:
        """Yield path, CID and stat of every member; None marks a raw block, which is a file."""
        stat = None if cid.codec == RAW else await self._reader.stat(self._scope, cid)
        if stat is not None and (cid.codec != DAG_PB or stat.kind in {UnixfsKind.SYMLINK, UnixfsKind.METADATA}):
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


def _member_header(path: str, size: int | None) -> bytes:
    """Build the header of a member; `size` is None for folders."""
    member = tarfile.TarInfo(path)
    member.type, member.mode = (tarfile.DIRTYPE, 0o755) if size is None else (tarfile.REGTYPE, 0o644)
    member.size = size or 0
    return member.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
