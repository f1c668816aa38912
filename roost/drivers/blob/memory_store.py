"""Fake blob store in memory, for tests."""

from collections.abc import AsyncGenerator, AsyncIterator
from datetime import timedelta
from typing import ClassVar

from roost.core import clock
from roost.drivers.blob.contract import KEY_PATTERN, BlobInfo, BlobNotFound, BlobStore, BlobStoreFailed, BlobWriter


class MemoryStore(BlobStore):
    name: ClassVar[str] = "memory"

    def __init__(self) -> None:
        self._blobs: dict[str, tuple[BlobInfo, bytes]] = {}

    async def probe(self) -> None:
        """Do nothing: memory is always available."""

    async def create(self, key: str) -> BlobWriter:
        if KEY_PATTERN.fullmatch(key) is None:
            raise BlobNotFound
        return _MemoryWriter(self._blobs, key)

    async def read(self, key: str, offset: int, length: int) -> bytes:
        _, data = self._blobs.get(key, (None, b""))
        if offset + length > len(data) or key not in self._blobs:
            raise BlobNotFound
        return data[offset : offset + length]

    async def stream(self, key: str, offset: int, length: int, piece: int) -> AsyncGenerator[bytes]:
        for at in range(offset, offset + length, piece):
            yield await self.read(key, at, min(piece, offset + length - at))

    async def delete(self, key: str) -> None:
        self._blobs.pop(key, None)

    async def list(self) -> AsyncIterator[BlobInfo]:
        for blob, _ in list(self._blobs.values()):
            yield blob

    async def sweep(self, older: timedelta) -> int:  # noqa: ARG002 - unfinished objects are not stored
        return 0

    async def close(self) -> None:
        """Do nothing: there are no connections."""


class _MemoryWriter(BlobWriter):
    def __init__(self, blobs: dict[str, tuple[BlobInfo, bytes]], key: str) -> None:
        self._blobs, self._key = blobs, key
        self._data: bytearray | None = bytearray()

    async def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._data is None:
            raise BlobStoreFailed("The object is already finished")
        self._data += data

    async def commit(self) -> None:
        if self._data is None:
            raise BlobStoreFailed("The object is already finished")
        if self._key in self._blobs:
            raise BlobStoreFailed("The key exists already")
        self._blobs[self._key] = (BlobInfo(self._key, len(self._data), clock.utc_now()), bytes(self._data))
        self._data = None

    async def abort(self) -> None:
        self._data = None
