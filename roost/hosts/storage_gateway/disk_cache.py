"""Images that were made, kept on disk for the next who asks; those not asked for the longest time go first."""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from roost.core import ids, log
from roost.drivers.image.contract import RenderedImage

_log = log.get_logger("images")
_SHARE = 0.8
"""How full the shelf is after it was cleared."""


class DiskCache:
    """A folder of at most `most` bytes. A shelf that cannot be used keeps nothing, and is in nobody's way."""

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder
        self._most = most
        self._size: int | None = None
        self._lock = asyncio.Lock()

    async def get(self, key: str) -> RenderedImage | None:
        return await asyncio.to_thread(self._read, key)

    async def put(self, key: str, made: RenderedImage) -> None:
        async with self._lock:
            try:
                await asyncio.to_thread(self._write, key, made)
            except OSError as error:
                _log.warning("a resized image is not kept", reason=str(error))

    def _read(self, key: str) -> RenderedImage | None:
        path = self._path(key)
        try:
            data = path.read_bytes()
            os.utime(path)
        except OSError:
            return None
        digest, content = data[:32], data[32:]
        if hashlib.sha256(content).digest() != digest:
            return None
        mime, _, image = content.partition(b"\n")
        return RenderedImage(mime.decode(), image)

    def _write(self, key: str, made: RenderedImage) -> None:
        content = made.mime.encode() + b"\n" + made.data
        content = hashlib.sha256(content).digest() + content
        if len(content) > self._most // 10:
            return
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = self._folder / f"{ids.random_bytes(8).hex()}.part"
        try:
            part.write_bytes(content)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        self._size = sum(size for _, size, _ in self._all()) if self._size is None else self._size + len(content)
        if self._size > self._most:
            self._clear()

    def _clear(self) -> None:
        kept = sorted(self._all())
        size = sum(length for _, length, _ in kept)
        for _, length, path in kept:
            if size <= self._most * _SHARE:
                break
            path.unlink(missing_ok=True)
            size -= length
        self._size = size

    def _all(self) -> Sequence[tuple[float, int, Path]]:
        """When each was last asked for, its size, its path."""
        found: list[tuple[float, int, Path]] = []
        for path in self._folder.rglob("*"):
            with suppress(OSError):
                about = path.stat()
                if path.is_file():
                    found.append((about.st_mtime, about.st_size, path))
        return found

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()
        return self._folder / name[:2] / name
