"""Text of a document in any known format."""

import re
from collections.abc import Callable, Mapping

from roost.drivers.text_extractor.contract import TEXT_LIMIT
from roost.drivers.text_extractor.formats.detection import DocumentFormat, detect_format
from roost.drivers.text_extractor.formats.encodings import decode_text
from roost.drivers.text_extractor.formats.markup import read_html
from roost.drivers.text_extractor.formats.ooxml import read_excel, read_powerpoint, read_word
from roost.drivers.text_extractor.formats.open_document import read_open_document
from roost.drivers.text_extractor.formats.pdf import read_pdf
from roost.drivers.text_extractor.formats.tree_text import is_out_of_memory
from roost.drivers.text_extractor.normalization import normalize_text
from roost.drivers.text_extractor.refusal import DocumentRefused, RefusalReason

_MAX_TEXT_BYTES = 4 * TEXT_LIMIT
"""Bytes of a text file, of which a character has at most 4."""
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_BINARY: Mapping[DocumentFormat, Callable[[bytes], str]] = {
    DocumentFormat.PDF: read_pdf,
    DocumentFormat.WORD: read_word,
    DocumentFormat.POWERPOINT: read_powerpoint,
    DocumentFormat.EXCEL: read_excel,
    DocumentFormat.OPEN_DOCUMENT: read_open_document,
}


def read_document(source: bytes, name: str, mime_type: str) -> str:
    """Return the normal text of a document. Raises DocumentRefused."""
    try:
        text = normalize_text(_read(source, name, mime_type))
    except DocumentRefused:
        raise
    except MemoryError:
        raise DocumentRefused(RefusalReason.MEMORY) from None
    except Exception as error:  # libraries raise many error classes for documents that they did not expect
        reason = RefusalReason.MEMORY if is_out_of_memory(error) else RefusalReason.DAMAGED
        raise DocumentRefused(reason) from error
    if len(text) > TEXT_LIMIT:
        raise DocumentRefused(RefusalReason.TEXT_SIZE)
    return text


def _read(source: bytes, name: str, mime_type: str) -> str:
    found = detect_format(source, name, mime_type)
    if read := _BINARY.get(found):
        return read(source)
    charset = _CHARSET.search(mime_type)
    declared = charset[1] if charset else ""
    if found is DocumentFormat.HTML:
        return read_html(source, declared)
    if len(source) > _MAX_TEXT_BYTES:
        raise DocumentRefused(RefusalReason.TEXT_SIZE)
    return decode_text(source, declared)
