"""Request bodies of Git: bounded, and decompressed while they arrive."""

import zlib
from collections.abc import AsyncGenerator, AsyncIterable

from roost.agents.workspace.git.errors import GitBodyTooLarge, InvalidGitBody
from roost.drivers.git.contract import MAX_PACK_BYTES

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
