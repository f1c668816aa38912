"""The type of files, found by their first bytes, and remembered: what a CID names never changes."""

from collections import OrderedDict

from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader, ContentStat
from roost.storage.uploads import mime_sniffing

_REMEMBERED = 50_000


class MimeTypes:
    def __init__(self, reader: ContentReader) -> None:
        self._reader = reader
        self._known: OrderedDict[tuple[int, bytes, str], str] = OrderedDict()

    async def of(self, scope: ContentScope, file: ContentStat, name: str, beginning: bytes) -> str:
        """The MIME type of a file under that name. beginning: its first bytes, where they are at hand."""
        extension = name.rpartition(".")[2].lower()[:16] if "." in name else ""
        key = (file.cid.codec, file.cid.digest, extension)  # the bytes of a node are not those of its file
        if (known := self._known.get(key)) is not None:
            self._known.move_to_end(key)
            return known
        if len(beginning) < min(mime_sniffing.SNIFFED_BYTES, file.size or 0):  # a range may be shorter
            beginning = await self._begin(scope, file)
        beginning = beginning[: mime_sniffing.SNIFFED_BYTES]
        found = mime_sniffing.mime_type(beginning, f"file.{extension}" if extension else "")
        self._known[key] = found
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found

    async def _begin(self, scope: ContentScope, file: ContentStat) -> bytes:
        pieces = self._reader.stream_file(scope, file, 0, mime_sniffing.SNIFFED_BYTES)
        try:
            return await anext(pieces, b"")
        finally:
            await pieces.aclose()
