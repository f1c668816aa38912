"""Tar archives for containers: folders of this machine are packed while they are sent, for engines have a gigabyte."""

import asyncio
import os
import tarfile
from collections.abc import AsyncGenerator
from pathlib import Path, PurePosixPath

from roost.core.machine.threads import run_in_daemon_thread
from roost.drivers.runtime.contract import RuntimeFailed

_CHUNK_BYTES = 256 * 1024


async def pack_folder(folder: Path) -> AsyncGenerator[bytes]:
    """Yield the archive of what is in a folder, owned by root and readable by all.

    Raises RuntimeFailed.
    """
    loop = asyncio.get_running_loop()
    source, sink = os.pipe()
    reader = asyncio.StreamReader(_CHUNK_BYTES, loop)
    transport, _ = await loop.connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader, loop=loop), os.fdopen(source, "rb", 0)
    )
    packing = asyncio.create_task(run_in_daemon_thread(lambda: _pack(sink, folder)))
    try:
        while part := await reader.read(_CHUNK_BYTES):
            yield part
        try:
            await packing
        except OSError as error:
            raise RuntimeFailed(f"{folder} cannot be read for a container: {error}") from error
    finally:
        transport.close()  # the thread ends with EPIPE
        await asyncio.wait([packing])


def add_parents(archive: tarfile.TarFile, path: str) -> None:
    """Add the folders above a path, which all may enter."""
    for parent in reversed(PurePosixPath(path).parents[:-1]):
        entry = tarfile.TarInfo(str(parent))
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        archive.addfile(entry)


def _pack(sink: int, folder: Path) -> None:
    with os.fdopen(sink, "wb") as output, tarfile.open(fileobj=output, mode="w|", bufsize=_CHUNK_BYTES) as archive:
        archive.add(folder, ".", filter=_as_root)


def _as_root(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if not (entry.isfile() or entry.isdir() or entry.issym() or entry.islnk()):
        return None
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode &= 0o755
    return entry
