"""Limits of Git requests: their bodies, decompressed while they arrive, and how many run at once."""

import asyncio
import zlib
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterable
from contextlib import asynccontextmanager

from roost.core.problem import AccessDenied, InvalidInput, PayloadTooLarge, TooManyRequests
from roost.drivers.git.contract import MAX_PACK_BYTES


class UnknownGitService(AccessDenied):
    """A service that is not offered, or a client of the dumb protocol, which names none."""

    message = "Only git-upload-pack and git-receive-pack are offered; use Git's smart protocol"


class GitBodyTooLarge(PayloadTooLarge):
    message = "The request of Git is larger than 1 GiB"


class InvalidGitBody(InvalidInput):
    message = "The request body is not valid gzip"


class TooManyGitRequests(TooManyRequests):
    message = "Too many Git commands at once"


MAX_BODY_BYTES = MAX_PACK_BYTES + 64 * 1024**2
"""The largest pack, and what comes before it; Git itself refuses a larger pack with a better message."""
_GZIP = 16 + zlib.MAX_WBITS
_CHUNK_BYTES = 256 * 1024


async def read_body(
    chunks: AsyncIterable[bytes], *, is_compressed: bool, limit: int = MAX_BODY_BYTES
) -> AsyncGenerator[bytes]:
    """Yield the decoded body. Raises GitBodyTooLarge, InvalidGitBody."""
    size = 0
    async for chunk in _decompress(chunks) if is_compressed else chunks:
        size += len(chunk)
        if size > limit:
            raise GitBodyTooLarge
        yield chunk


async def _decompress(chunks: AsyncIterable[bytes]) -> AsyncGenerator[bytes]:
    decoder = zlib.decompressobj(_GZIP)
    try:
        async for chunk in chunks:
            rest = chunk
            while rest and not decoder.eof:
                yield decoder.decompress(rest, _CHUNK_BYTES)
                rest = decoder.unconsumed_tail
            if decoder.unused_data:
                raise InvalidGitBody
    except zlib.error:
        raise InvalidGitBody from None
    if not decoder.eof:
        raise InvalidGitBody


_RETRY_SECONDS = 5


class GitCommandLimiter:
    """Slots for commands; a tenant may hold some of them, and waits a short time for one. Times are in seconds."""

    def __init__(self, total: int = 32, each: int = 8, wait: float = 20.0) -> None:
        self._total = total
        self._each = each
        self._wait = wait
        self._running = Counter[str]()
        self._released = asyncio.Condition()

    @asynccontextmanager
    async def acquire(self, tenant_id: str) -> AsyncGenerator[None]:
        """Hold a slot. Raises TooManyGitRequests if none becomes free in time."""
        try:
            async with asyncio.timeout(self._wait), self._released:
                await self._released.wait_for(lambda: self._is_free(tenant_id))
                self._running[tenant_id] += 1
        except TimeoutError:
            raise TooManyGitRequests(retry_after=_RETRY_SECONDS) from None
        try:
            yield
        finally:
            self._running[tenant_id] -= 1
            if not self._running[tenant_id]:
                del self._running[tenant_id]
            async with self._released:
                self._released.notify_all()

    def _is_free(self, tenant_id: str) -> bool:
        return self._running[tenant_id] < self._each and self._running.total() < self._total
