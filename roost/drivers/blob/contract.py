"""The contract of a blob store: whole objects under keys that we choose, written once, read in ranges, deleted.

An object is there for readers, whole and safe from a power cut, when `commit` has returned, and not before. What a
crash leaves of an unfinished one is never listed as an object; `sweep` removes it. A store knows nothing of CIDs or
tenants, and does not look into what it keeps.
"""

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import ClassVar, Self

from roost.core.problem import Problem, ProblemKind

KEY = re.compile(r"[0-9a-f]{32}")
_PIECE = 4 * 1024**2


class BlobNotFound(Problem):
    kind = ProblemKind.MISSING
    message = "The stored object is gone"


class BlobStoreFailed(Problem):
    """The store does not answer, is full, or refuses."""

    kind = ProblemKind.UNAVAILABLE
    message = "The storage backend is not available"


@dataclass(frozen=True)
class BlobInfo:
    key: str
    size: int
    modified_at: datetime


class BlobWriter(ABC):
    """One object being written. Use it as a context manager: what is not committed is gone at its end."""

    @abstractmethod
    async def write(self, data: bytes | bytearray | memoryview) -> None:
        """Append. The caller may change `data` after the return. Raises BlobFailed."""

    @abstractmethod
    async def commit(self) -> None:
        """Make it an object, durably. Raises BlobFailed, also when the key is taken."""

    @abstractmethod
    async def abort(self) -> None:
        """Leave nothing. Idempotent, and nothing after a commit."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.abort()


class BlobStore(ABC):
    """Keys are 32 hexadecimal digits, random: they tell nothing and spread well."""

    name: ClassVar[str]

    @abstractmethod
    async def probe(self) -> str | None:
        """Find out that objects can be written, read and deleted, and whether the backend would replace one.

        What the operator should know is returned. Raises BlobFailed.
        """

    async def check(self) -> None:
        """Find out, at little cost, whether the backend can be reached now. Raises BlobFailed."""
        with suppress(BlobNotFound):
            await self.read("0" * 32, 0, 1)

    @abstractmethod
    async def create(self, key: str) -> BlobWriter:
        """Begin an object. Raises BlobFailed."""

    async def adopt(self, key: str, file: Path) -> None:
        """Make a whole file of this machine an object, durably; the file stays. Raises BlobMissing, BlobFailed."""
        try:
            source = await asyncio.to_thread(file.open, "rb")
        except FileNotFoundError:
            raise BlobNotFound from None
        except OSError as error:
            raise BlobStoreFailed(f"The storage backend is not available: {error.strerror}") from error
        with source:
            async with await self.create(key) as writer:
                while piece := await asyncio.to_thread(source.read, _PIECE):
                    await writer.write(piece)
                await writer.commit()

    @abstractmethod
    async def read(self, key: str, offset: int, length: int) -> bytes:
        """Exactly so many bytes. Raises BlobMissing, also where the object ends before; BlobFailed."""

    @abstractmethod
    def stream(self, key: str, offset: int, length: int, piece: int) -> AsyncGenerator[bytes]:
        """The bytes of a range in pieces of `piece` bytes (the last may be shorter). Raises as `read` does."""

    @abstractmethod
    async def delete(self, key: str) -> None:
        """Idempotent. Raises BlobFailed."""

    @abstractmethod
    def list(self) -> AsyncIterator[BlobInfo]:
        """Every object, in no order."""

    @abstractmethod
    async def sweep(self, older: timedelta) -> int:
        """Remove what unfinished writes left that long ago; how many there were."""

    @abstractmethod
    async def close(self) -> None:
        """Let go of connections. Idempotent."""
