"""Text extractor in this process for tests, which reads UTF-8."""

from collections.abc import AsyncIterator

from roost.drivers.text_extractor.contract import (
    SOURCE_LIMIT,
    TEXT_LIMIT,
    DocumentTooLarge,
    InvalidDocument,
    TextExtractor,
    UnsupportedDocument,
)
from roost.drivers.text_extractor.normalization import normalize_text


class FakeTextExtractor(TextExtractor):
    """`documents` are the names and MIME types of those that it read."""

    def __init__(self) -> None:
        self.documents: list[tuple[str, str]] = []

    async def extract_text(self, source: AsyncIterator[bytes], size: int, name: str, mime_type: str) -> str:
        if size > SOURCE_LIMIT:
            raise DocumentTooLarge
        content = b"".join([piece async for piece in source])
        self.documents.append((name, mime_type))
        if len(content) != size:
            raise InvalidDocument
        if b"\0" in content:
            raise UnsupportedDocument
        try:
            text = normalize_text(content.decode())
        except UnicodeDecodeError:
            raise UnsupportedDocument from None
        if len(text) > TEXT_LIMIT:
            raise DocumentTooLarge
        return text

    async def close(self) -> None:
        self.documents.clear()
