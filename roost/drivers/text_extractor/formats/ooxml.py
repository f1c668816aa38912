"""Word, PowerPoint and Excel documents (OOXML, ECMA-376).

Text is read from the elements and not from the libraries' paragraphs, which lack text frames, content controls and
tracked insertions.
"""

import io
from collections.abc import Iterable
from typing import Any

import docx
import openpyxl
import pptx

from roost.drivers.text_extractor.formats.text_builder import TextBuilder
from roost.drivers.text_extractor.formats.tree_text import TextVocabulary, add_tree_text, parse_xml

_OOXML = TextVocabulary(
    blocks=frozenset(("p",)),
    cells=frozenset(("tc",)),
    rows=frozenset(("tr",)),
    characters={"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"},
    skipped=frozenset(("Fallback", "pPr", "rPr", "moveFrom")),  # repeated, formats with `tab`, and moved away
    texts=frozenset(("t",)),
)
_NOTES = ("footnotes", "endnotes")


def read_word(source: bytes) -> str:
    """Return the text of the body, then of the notes."""
    document: Any = docx.Document(io.BytesIO(source))
    builder = TextBuilder()
    add_tree_text(document.element.body, _OOXML, builder)
    for relation in document.part.rels.values():
        if not relation.is_external and relation.reltype.rpartition("/")[2] in _NOTES:
            builder.add("\n")
            add_tree_text(parse_xml(relation.target_part.blob), _OOXML, builder)
    return builder.build()


def read_powerpoint(source: bytes) -> str:
    """Return the text of each slide and of its notes."""
    builder = TextBuilder()
    for slide in pptx.Presentation(io.BytesIO(source)).slides:
        add_tree_text(slide.element, _OOXML, builder)
        if slide.has_notes_slide and (frame := slide.notes_slide.notes_text_frame) is not None:
            builder.add(frame.text + "\n")
        builder.add("\n")
    return builder.build()


def read_excel(source: bytes) -> str:
    """Return the values of each sheet: a line for each row with tabs between its cells."""
    workbook = openpyxl.load_workbook(io.BytesIO(source), read_only=True, data_only=True)
    builder = TextBuilder()
    for sheet in workbook.worksheets:
        builder.add(f"{sheet.title}\n")
        sheet.reset_dimensions()  # rows would be filled up to the dimensions that the file claims
        for row in sheet.iter_rows(values_only=True):
            if line := _format_row(row):
                builder.add(line + "\n")
        builder.add("\n")
    return builder.build()


def _format_row(row: Iterable[object]) -> str:
    return "\t".join("" if value is None else str(value) for value in row).rstrip("\t")
