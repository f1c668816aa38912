"""Text of a document in any known format.

Of OOXML (ECMA-376), text is read from the elements and not from the libraries' paragraphs, which lack text frames,
content controls and tracked insertions.
"""

import io
import re
import zipfile
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import docx
import openpyxl
import pptx
import pypdf
from pypdf import PasswordType

from roost.drivers.text_extractor.contract import TEXT_LIMIT
from roost.drivers.text_extractor.formats.detection import DocumentFormat, DocumentRefused, RefusalReason, detect_format
from roost.drivers.text_extractor.formats.encodings import decode_text
from roost.drivers.text_extractor.formats.tree_text import (
    TextBuilder,
    TextVocabulary,
    add_tree_text,
    is_out_of_memory,
    parse_html,
    parse_xml,
)
from roost.drivers.text_extractor.normalization import normalize_text

_MAX_TEXT_BYTES = 4 * TEXT_LIMIT
"""Bytes of a text file, of which a character has at most 4."""
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_META_CHARSET = re.compile(rb"<meta\b[^>]{0,500}?\bcharset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_HEAD_BYTES = 4096
_NOTES = ("footnotes", "endnotes")
_MANIFEST, _CONTENT = "META-INF/manifest.xml", "content.xml"
_OOXML = TextVocabulary(
    blocks=frozenset(("p",)),
    cells=frozenset(("tc",)),
    rows=frozenset(("tr",)),
    characters={"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"},
    skipped=frozenset(("Fallback", "pPr", "rPr", "moveFrom")),  # repeated, formats with `tab`, and moved away
    texts=frozenset(("t",)),
)
_OPEN_DOCUMENT = TextVocabulary(
    blocks=frozenset(("p", "h", "list-item")),
    cells=frozenset(("table-cell",)),
    rows=frozenset(("table-row",)),
    characters={"tab": "\t", "line-break": "\n", "s": " "},
    skipped=frozenset(("tracked-changes", "automatic-styles", "font-face-decls", "scripts", "annotation")),
)
_HTML = TextVocabulary(
    blocks=frozenset(
        """
        address article aside blockquote body caption center dd details dialog div dl dt fieldset figcaption figure
        footer form h1 h2 h3 h4 h5 h6 head header hr legend li main menu nav ol option p pre search section select
        summary table textarea title ul
        """.split()
    ),
    cells=frozenset(("td", "th")),
    rows=frozenset(("tr",)),
    characters={"br": "\n"},
    skipped=frozenset(("script", "style", "template", "noscript", "iframe", "object", "noframes")),
    preformatted=frozenset(("pre", "textarea")),
)


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
    builder = TextBuilder()
    if read := _BINARY.get(found):
        read(source, builder)
        return builder.build()
    charset = _CHARSET.search(mime_type)
    declared = charset[1] if charset else ""
    if found is DocumentFormat.HTML:
        _read_html(source, declared, builder)
        return builder.build()
    if len(source) > _MAX_TEXT_BYTES:
        raise DocumentRefused(RefusalReason.TEXT_SIZE)
    return decode_text(source, declared)


def _read_pdf(source: bytes, builder: TextBuilder) -> None:
    """Add the text of each page, also of a document that opens without a password.

    Pypdf limits streams, cycles and depths itself.
    """
    reader = pypdf.PdfReader(io.BytesIO(source))
    if reader.is_encrypted and reader.decrypt("") == PasswordType.NOT_DECRYPTED:
        raise DocumentRefused(RefusalReason.ENCRYPTED)
    for page in reader.pages:
        builder.add(page.extract_text() + "\n\n")


def _read_word(source: bytes, builder: TextBuilder) -> None:
    """Add the text of the body, then of the notes."""
    document: Any = docx.Document(io.BytesIO(source))
    add_tree_text(document.element.body, _OOXML, builder)
    for relation in document.part.rels.values():
        if not relation.is_external and relation.reltype.rpartition("/")[2] in _NOTES:
            builder.add("\n")
            add_tree_text(parse_xml(relation.target_part.blob), _OOXML, builder)


def _read_powerpoint(source: bytes, builder: TextBuilder) -> None:
    """Add the text of each slide and of its notes."""
    for slide in pptx.Presentation(io.BytesIO(source)).slides:
        add_tree_text(slide.element, _OOXML, builder)
        if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
            builder.add(frame.text + "\n")
        builder.add("\n")


def _read_excel(source: bytes, builder: TextBuilder) -> None:
    """Add the values of each sheet: a line for each row with tabs between its cells."""
    workbook = openpyxl.load_workbook(io.BytesIO(source), read_only=True, data_only=True)
    for sheet in workbook.worksheets:
        builder.add(f"{sheet.title}\n")
        sheet.reset_dimensions()  # rows would be filled up to the dimensions that the file claims
        for row in sheet.iter_rows(values_only=True):
            if line := _format_row(row):
                builder.add(line + "\n")
        builder.add("\n")


def _format_row(row: Iterable[object]) -> str:
    return "\t".join("" if value is None else str(value) for value in row).rstrip("\t")


def _read_open_document(source: bytes, builder: TextBuilder) -> None:
    """Add the text of a document of ISO/IEC 26300."""
    with zipfile.ZipFile(io.BytesIO(source)) as archive:
        if _MANIFEST in archive.namelist() and b"encryption-data" in archive.read(_MANIFEST):
            raise DocumentRefused(RefusalReason.ENCRYPTED)
        root = parse_xml(archive.read(_CONTENT))
    add_tree_text(root, _OPEN_DOCUMENT, builder)


def _read_html(source: bytes, declared: str, builder: TextBuilder) -> None:
    """Add the text of a page as a browser would see it without scripts; `declared`: the encoding of its MIME type."""
    found = _META_CHARSET.search(source[:_HEAD_BYTES])
    text = decode_text(source, declared or (found[1].decode() if found else "")).replace("\0", "")
    root = parse_html(text.encode(errors="replace"))
    if root is not None:
        add_tree_text(root, _HTML, builder)


_BINARY: Mapping[DocumentFormat, Callable[[bytes, TextBuilder], None]] = {
    DocumentFormat.PDF: _read_pdf,
    DocumentFormat.WORD: _read_word,
    DocumentFormat.POWERPOINT: _read_powerpoint,
    DocumentFormat.EXCEL: _read_excel,
    DocumentFormat.OPEN_DOCUMENT: _read_open_document,
}
