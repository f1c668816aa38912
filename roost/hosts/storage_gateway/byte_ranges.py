"""Several ranges of a file as one body: `multipart/byteranges` (RFC 9110, 14.6)."""

import hashlib
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from roost.hosts.storage_gateway.conditions import ByteRange


class MultipartByteRanges:
    def __init__(self, etag: str, mime: str, parts: Sequence[ByteRange], size: int) -> None:
        # No content has its own CID in it, so none has this line; and the same request has the same answer.
        boundary = hashlib.sha256(f"{etag} {parts}".encode()).hexdigest()[:32]
        self.content_type = f"multipart/byteranges; boundary={boundary}"
        self._parts = parts
        self._heads = [
            f"\r\n--{boundary}\r\nContent-Type: {mime}\r\nContent-Range: {content_range(part, size)}\r\n\r\n".encode()
            for part in parts
        ]
        self._end = f"\r\n--{boundary}--\r\n".encode()
        self.length = sum(part.end - part.begin for part in parts) + sum(map(len, self._heads)) + len(self._end)

    async def body(self, read: Callable[[ByteRange], AsyncGenerator[bytes]]) -> AsyncGenerator[bytes]:
        """The first piece comes with content in it, so that an answer begins only when there is some."""
        for head, part in zip(self._heads, self._parts, strict=True):
            before = head
            async with aclosing(read(part)) as pieces:
                async for piece in pieces:
                    yield before + piece
                    before = b""
        yield self._end


def content_range(part: ByteRange, size: int) -> str:
    return f"bytes {part.begin}-{part.end - 1}/{size}"
