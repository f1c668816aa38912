"""Several ranges of a file as one body: `multipart/byteranges` (RFC 9110, 14.6)."""

import hashlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from roost.http.storage_gateway.range_requests import ByteRange


class MultipartByteRanges:
    def __init__(self, etag: str, mime: str, ranges: Sequence[ByteRange], size: int) -> None:
        # Derived from the ETag, so that repeated responses are equal; content cannot contain a hash of its own CID.
        boundary = hashlib.sha256(f"{etag} {ranges}".encode()).hexdigest()[:32]
        self.content_type = f"multipart/byteranges; boundary={boundary}"
        self._ranges = ranges
        self._heads = [
            f"\r\n--{boundary}\r\nContent-Type: {mime}\r\nContent-Range: {content_range(one, size)}\r\n\r\n".encode()
            for one in ranges
        ]
        self._end = f"\r\n--{boundary}--\r\n".encode()
        self.length = sum(one.end - one.begin for one in ranges) + sum(map(len, self._heads)) + len(self._end)

    async def stream(self, read: Callable[[ByteRange], AsyncGenerator[bytes]]) -> AsyncGenerator[bytes]:
        """Stream the body; its first piece contains content, so that a failed read precedes the response."""
        for head, one in zip(self._heads, self._ranges, strict=True):
            before = head
            async with aclosing(read(one)) as pieces:
                async for piece in pieces:
                    yield before + piece
                    before = b""
        yield self._end


def content_range(part: ByteRange, size: int) -> str:
    return f"bytes {part.begin}-{part.end - 1}/{size}"
