"""The type of files, found by their first bytes, and remembered: what a CID names never changes."""

import re
from collections import OrderedDict

from roost.storage.content.model import Scope
from roost.storage.content.reader import Reader, Stat
from roost.storage.uploads import sniff

_REMEMBERED = 50_000
_PLAIN = frozenset({"text/plain", "text/xml", "application/xml", "application/octet-stream"})
_WRITTEN = frozenset({"txt", "xml"})
"""Names that mean what is written, and not what it would look like."""
_HTML = re.compile(
    rb"\s*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|!--)[\s>]",
    re.IGNORECASE,
)
"""How pages begin (WHATWG, MIME sniffing, 7.1)."""
_SVG = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.{0,1000}?-->\s*)?(?:<!doctype svg[^>]*>\s*)?<svg[\s>]", re.IGNORECASE | re.DOTALL
)


class Kinds:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: OrderedDict[tuple[int, bytes, str], str] = OrderedDict()

    async def of(self, scope: Scope, file: Stat, name: str, beginning: bytes) -> str:
        """The MIME type of a file under that name. beginning: its first bytes, where they are at hand."""
        extension = name.rpartition(".")[2].lower()[:16] if "." in name else ""
        key = (file.cid.codec, file.cid.digest, extension)  # the bytes of a node are not those of its file
        if (known := self._known.get(key)) is not None:
            self._known.move_to_end(key)
            return known
        if len(beginning) < min(sniff.HEAD, file.size or 0):  # a range may be shorter
            beginning = await self._begin(scope, file)
        beginning = beginning[: sniff.HEAD]
        found = sniff.mime_type(beginning, f"file.{extension}" if extension else "")
        if found in _PLAIN and extension not in _WRITTEN:
            found = _marked_up(beginning) or found
        self._known[key] = found
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)
        return found

    async def _begin(self, scope: Scope, file: Stat) -> bytes:
        pieces = self._reader.content(scope, file, 0, sniff.HEAD)
        try:
            return await anext(pieces, b"")
        finally:
            await pieces.aclose()


def _marked_up(beginning: bytes) -> str | None:
    if _SVG.match(beginning):
        return "image/svg+xml"
    return "text/html" if _HTML.match(beginning) else None
