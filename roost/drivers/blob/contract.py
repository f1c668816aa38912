"""The contract of a blob store: whole objects under keys of our choice, written once, read in ranges, deleted.

An object is visible, whole and durable, once `commit` has returned, and not before. An unfinished object is never
listed; `sweep` removes its remains after a crash. A store knows nothing of CIDs, tenants or formats.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar, Self

from roost.core.problem import NotFound, ServiceUnavailable

KEY_PATTERN = re.compile(r"[0-9a-f]{32}")
_CHUNK_BYTES = 4 * 1024**2


class BlobNotFound(NotFound):
    message = "The stored object is gone"


class BlobStoreFailed(ServiceUnavailable):
    """The store does not answer, is full, or rejects the operation."""

    message = "The storage backend is not available"


def check_key(key: str) -> str:
    """Return the key of an object if it has the form of one. Raises BlobNotFound."""
    if KEY_PATTERN.fullmatch(key) is None:
        raise BlobNotFound
    return key


@contextmanager
def translate_file_errors() -> Generator[None]:
    """Raise BlobNotFound for a local file that is missing, and BlobStoreFailed for one that cannot be used."""
    try:
        yield
    except FileNotFoundError:
        raise BlobNotFound from None
    except OSError as error:
        raise BlobStoreFailed(f"The storage backend is not available: {error.strerror}") from error


@dataclass(frozen=True)
class BlobInfo:
    key: str
    size: int
    modified_at: datetime


class BlobWriter(ABC):
    """Writer of one object; as a context manager it aborts an uncommitted object at its end."""

    @abstractmethod
    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append `data`, which the caller may change afterwards. Raises BlobStoreFailed."""

    async def write_parts(self, parts: Sequence[bytes | memoryview]) -> None:
        """Append parts one after another; they must not change. Raises BlobStoreFailed."""
        await self.write(b"".join(parts))

    @abstractmethod
    async def commit(self) -> None:
        """Publish the object durably. Raises BlobStoreFailed, also if the key exists."""

    @abstractmethod
    async def abort(self) -> None:
        """Discard the object. Idempotent; does nothing after a commit."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.abort()


class BlobStore(ABC):
    """Store of objects under keys of 32 random hexadecimal digits, which reveal nothing and distribute evenly."""

    name: ClassVar[str]

    @abstractmethod
    async def probe(self) -> str | None:
        """Test writing, reading and deleting, and whether the backend would replace an existing object.

        Returns a warning for the operator, if there is one. Raises BlobStoreFailed.
        """

    async def check(self) -> None:
        """Check with one cheap request that the backend can be reached. Raises BlobStoreFailed."""
        with suppress(BlobNotFound):
            await self.read("0" * 32, 0, 1)

    @abstractmethod
    async def create(self, key: str) -> BlobWriter:
        """Start writing an object. Raises BlobStoreFailed."""

    async def import_file(self, key: str, file: Path) -> None:
        """Store a local file as an object durably; the file stays. Raises BlobNotFound, BlobStoreFailed."""
        with translate_file_errors():
            source = await asyncio.to_thread(file.open, "rb")
        with source:
            async with await self.create(key) as writer:
                while chunk := await asyncio.to_thread(source.read, _CHUNK_BYTES):
                    await writer.write(chunk)
                await writer.commit()

    @abstractmethod
    async def read(self, key: str, offset: int, length: int) -> bytes:
        """Read exactly `length` bytes. Raises BlobNotFound, also if the object is shorter, and BlobStoreFailed."""

    @abstractmethod
    def stream(self, key: str, offset: int, length: int, piece: int) -> AsyncGenerator[bytes]:
        """Yield a range in pieces of `piece` bytes (the last may be shorter). Raises the errors of `read`."""

    @abstractmethod
    async def delete(self, key: str) -> None:
        """Delete an object. Idempotent. Raises BlobStoreFailed."""

    @abstractmethod
    def list(self) -> AsyncIterator[BlobInfo]:
        """Yield all objects in no particular order."""

    @abstractmethod
    async def sweep(self, older: timedelta) -> int:
        """Remove remains of writes older than that and return their number."""

    @abstractmethod
    async def close(self) -> None:
        """Close all connections. Idempotent."""
