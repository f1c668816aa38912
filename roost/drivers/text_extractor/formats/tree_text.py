"""Text of trees of elements: XML of documents, and HTML. Walks them without recursion."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from roost.drivers.text_extractor.contract import TEXT_LIMIT
from roost.drivers.text_extractor.formats.detection import DocumentRefused, RefusalReason

etree: Any = import_module("lxml.etree")  # it has no types

_SPACES = re.compile(r"[ \t\n\r\f]+")
_BUILDER_LIMIT = 2 * TEXT_LIMIT
"""Normalization removes blank lines and spaces, so that a text of this length may become short enough."""


class TextBuilder:
    """Text in pieces; one that becomes too long is refused at once."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._length = 0

    def add(self, piece: str) -> None:
        self._length += len(piece)
        if self._length > _BUILDER_LIMIT:
            raise DocumentRefused(RefusalReason.TEXT_SIZE)
        self._pieces.append(piece)

    def build(self) -> str:
        return "".join(self._pieces)


@dataclass(frozen=True)
class TextVocabulary:
    """Meaning of elements, by their names without namespaces.

    blocks: stand on lines of their own.
    cells, rows: of tables; a row becomes a line with tabs between its cells.
    characters: stand for a text.
    skipped: count for nothing, with all that is in them.
    texts: their character data is text; without any, all character data is, and its white space collapses.
    preformatted: keep their white space.
    """

    blocks: frozenset[str]
    cells: frozenset[str]
    rows: frozenset[str]
    characters: Mapping[str, str]
    skipped: frozenset[str]
    texts: frozenset[str] = frozenset()
    preformatted: frozenset[str] = field(default_factory=frozenset[str])


def parse_xml(source: bytes) -> Any:
    """Parse XML, without the entities, files and addresses that it names."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    return etree.fromstring(source, parser)


def parse_html(source: bytes) -> Any:
    """Parse HTML in UTF-8; return None for a page without elements. Raises DocumentRefused."""
    parser = etree.HTMLParser(encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True)
    root = etree.fromstring(source, parser)
    if any(error.type == etree.ErrorTypes.ERR_RESOURCE_LIMIT for error in parser.error_log):
        raise DocumentRefused(RefusalReason.DEPTH)  # the parser has left out what is deeper
    return root


def is_out_of_memory(error: Any) -> bool:
    """Return whether an error of any library that uses lxml means that libxml2 got no memory."""
    return type(error) is etree.XMLSyntaxError and error.code == etree.ErrorTypes.ERR_NO_MEMORY


def add_tree_text(root: Any, vocabulary: TextVocabulary, builder: TextBuilder) -> None:
    """Add the text of a tree, which ends with a line end. Raises DocumentRefused."""
    writer = _TreeWriter(vocabulary, builder)
    walk = etree.iterwalk(root, events=("start", "end"))
    for event, element in walk:
        name = element.tag.rpartition("}")[2]
        if event == "end":
            writer.end(name)
            writer.add_data(element.tail)
        elif name in vocabulary.skipped:
            walk.skip_subtree()
        else:
            writer.start(name)
            writer.add_data(element.text)
    builder.add("\n")


class _TreeWriter:
    """Writer of text and of what separates it, which is written only when text follows."""

    def __init__(self, vocabulary: TextVocabulary, builder: TextBuilder) -> None:
        self._vocabulary = vocabulary
        self._builder = builder
        self._cells = self._texts = self._preformatted = 0  # how many of them are open
        self._is_first_cell = True
        self._separator = ""
        self._last = ""

    def start(self, name: str) -> None:
        vocabulary = self._vocabulary
        self._texts += name in vocabulary.texts
        self._preformatted += name in vocabulary.preformatted
        if name in vocabulary.blocks or name in vocabulary.rows:
            self._break_line()
        if name in vocabulary.rows:
            self._is_first_cell = True
        if name in vocabulary.cells:
            self._begin_cell()
        if character := vocabulary.characters.get(name):
            self._add(" " if character == "\n" and self._cells else character)

    def end(self, name: str) -> None:
        vocabulary = self._vocabulary
        if name in vocabulary.skipped:
            return
        self._texts -= name in vocabulary.texts
        self._preformatted -= name in vocabulary.preformatted
        self._cells -= name in vocabulary.cells
        if name in vocabulary.blocks or name in vocabulary.rows:
            self._break_line()

    def add_data(self, data: str | None) -> None:
        if not data or (self._vocabulary.texts and not self._texts):
            return
        if not self._vocabulary.texts and not self._preformatted:
            data = _SPACES.sub(" ", data)
            if self._separator or self._last in ("", " ", "\t", "\n"):
                data = data.removeprefix(" ")
        self._add(data)

    def _begin_cell(self) -> None:
        if not self._is_first_cell:
            self._separator = self._separator.rstrip(" ") + "\t"
        self._is_first_cell = False
        self._cells += 1

    def _break_line(self) -> None:
        """End the line, or the paragraph in a cell."""
        if not self._cells:
            self._separator = "\n"
        elif not self._separator:
            self._separator = " "

    def _add(self, text: str) -> None:
        if text:
            self._builder.add((self._separator if self._last else "") + text)
            self._separator = ""
            self._last = text[-1]
