"""MIME types of files, detected by their first bytes and cached by CID."""

from collections import OrderedDict

from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader, ContentStat
from roost.storage.files.uploads import mime_sniffing

_CACHE_SIZE = 50_000


class MimeTypes:
    def __init__(self, reader: ContentReader) -> None:
        self._reader = reader
        self._cache: OrderedDict[tuple[int, bytes, str], str] = OrderedDict()

    async def detect(self, scope: ContentScope, file: ContentStat, name: str, beginning: bytes) -> str:
        """Return the MIME type of a file; `beginning` are its first bytes as far as they are read already."""
        extension = name.rpartition(".")[2].lower()[:16] if "." in name else ""
        key = (file.cid.codec, file.cid.digest, extension)  # a node and its file differ
        if (known := self._cache.get(key)) is not None:
            self._cache.move_to_end(key)
            return known
        if len(beginning) < min(mime_sniffing.SNIFFED_BYTES, file.size or 0):  # a range may be shorter
            beginning = await self._read_beginning(scope, file)
        beginning = beginning[: mime_sniffing.SNIFFED_BYTES]
        mime = mime_sniffing.mime_type(beginning, f"file.{extension}" if extension else "")
        self._cache[key] = mime
        if len(self._cache) > _CACHE_SIZE:
            self._cache.popitem(last=False)
        return mime

    async def _read_beginning(self, scope: ContentScope, file: ContentStat) -> bytes:
        pieces = self._reader.stream_file(scope, file, 0, mime_sniffing.SNIFFED_BYTES)
        try:
            return await anext(pieces, b"")
        finally:
            await pieces.aclose()
