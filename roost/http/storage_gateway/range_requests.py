"""Range requests for immutable content (RFC 9110, 14). Pure."""

import hashlib
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

_SPEC = re.compile(r"([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18})", re.ASCII)
_RANGES_LIMIT = 16
"""Maximum ranges in one response."""


class RangeNotSatisfiable(Exception):  # noqa: N818 - the word of the RFC
    """All ranges begin beyond the end."""


@dataclass(frozen=True)
class ByteRange:
    """Bytes from `begin` up to, not including, `end`."""

    begin: int
    end: int


def select_ranges(range_header: str | None, if_range: str | None, etag: str, size: int) -> Sequence[ByteRange]:
    """Return the ranges to send, in the requested order; none to send the whole content.

    The whole content is sent for other units and invalid ranges (14.2), if `If-Range` does not match, and for ranges
    that are too many or together longer than the content. Raises RangeNotSatisfiable.
    """
    specs = _parse_ranges(range_header) if range_header is not None else ()
    if not specs or (if_range is not None and if_range.strip() != etag):
        return ()
    found = [ByteRange(begin, end) for begin, end in (_resolve_range(*spec, size) for spec in specs) if begin < end]
    if not found:
        raise RangeNotSatisfiable
    return found if len(found) <= _RANGES_LIMIT and sum(one.end - one.begin for one in found) <= size else ()


def _parse_ranges(range_header: str) -> Sequence[tuple[int | None, int | None]]:
    """Return first and last byte of each range; first is None for a suffix. Invalid headers have no ranges."""
    unit, _, ranges = range_header.partition("=")
    texts = [text for text in (text.strip(" \t") for text in ranges.split(",")) if text]
    found: list[tuple[int | None, int | None]] = []
    for text in texts if unit.strip().lower() == "bytes" else ():
        match = _SPEC.fullmatch(text)
        if match is None:
            return ()
        first, last, suffix = (None if number is None else int(number) for number in match.groups())
        if first is not None and last is not None and last < first:
            return ()
        found.append((first, last if suffix is None else suffix))
    return found


def _resolve_range(first: int | None, last: int | None, size: int) -> tuple[int, int]:
    if first is None:
        return max(0, size - (last or 0)), size
    return first, size if last is None else min(size, last + 1)


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
