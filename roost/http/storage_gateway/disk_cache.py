"""Least-recently-used cache of resized images on disk.

One file per image with a checksum, whose modification time is the time of last use. The maintained libraries keep
values in memory only, or unpickle the files they read.
"""

import asyncio
import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from roost.core import ids, log
from roost.drivers.image.contract import RenderedImage

_log = log.get_logger("images")
_EVICTION_TARGET = 0.8
"""Fraction of the maximum size in use after an eviction."""


class DiskCache:
    """A folder of at most `max_bytes`. Write errors are logged and fail no request."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._size: int | None = None
        self._lock = asyncio.Lock()

    async def get(self, key: str) -> RenderedImage | None:
        return await asyncio.to_thread(self._read, key)

    async def put(self, key: str, image: RenderedImage) -> None:
        async with self._lock:
            try:
                await asyncio.to_thread(self._write, key, image)
            except OSError as error:
                _log.warning("image_cache.write_failed", reason=str(error))

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

    def _write(self, key: str, image: RenderedImage) -> None:
        content = image.mime.encode() + b"\n" + image.data
        content = hashlib.sha256(content).digest() + content
        if len(content) > self._max_bytes // 10:
            return
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = self._folder / f"{ids.random_bytes(8).hex()}.part"
        try:
            part.write_bytes(content)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
        self._size = sum(size for _, size, _ in self._list_files()) if self._size is None else self._size + len(content)
        if self._size > self._max_bytes:
            self._evict()

    def _evict(self) -> None:
        files = sorted(self._list_files())
        size = sum(length for _, length, _ in files)
        for _, length, path in files:
            if size <= self._max_bytes * _EVICTION_TARGET:
                break
            path.unlink(missing_ok=True)
            size -= length
        self._size = size

    def _list_files(self) -> Sequence[tuple[float, int, Path]]:
        """Return time of last use, size and path of each file."""
        found: list[tuple[float, int, Path]] = []
        for path in self._folder.rglob("*"):
            with suppress(OSError):
                stat = path.stat()
                if path.is_file():
                    found.append((stat.st_mtime, stat.st_size, path))
        return found

    def _path(self, key: str) -> Path:
        name = hashlib.sha256(key.encode()).hexdigest()
        return self._folder / name[:2] / name
