"""OpenDocument text (ISO/IEC 26300)."""

import io
import zipfile

from roost.drivers.text_extractor.formats.text_builder import TextBuilder
from roost.drivers.text_extractor.formats.tree_text import TextVocabulary, add_tree_text, parse_xml
from roost.drivers.text_extractor.refusal import DocumentRefused, RefusalReason

_MANIFEST, _CONTENT = "META-INF/manifest.xml", "content.xml"
_OPEN_DOCUMENT = TextVocabulary(
    blocks=frozenset(("p", "h", "list-item")),
    cells=frozenset(("table-cell",)),
    rows=frozenset(("table-row",)),
    characters={"tab": "\t", "line-break": "\n", "s": " "},
    skipped=frozenset(("tracked-changes", "automatic-styles", "font-face-decls", "scripts", "annotation")),
)


def read_open_document(source: bytes) -> str:
    with zipfile.ZipFile(io.BytesIO(source)) as archive:
        if _MANIFEST in archive.namelist() and b"encryption-data" in archive.read(_MANIFEST):
            raise DocumentRefused(RefusalReason.ENCRYPTED)
        root = parse_xml(archive.read(_CONTENT))
    builder = TextBuilder()
    add_tree_text(root, _OPEN_DOCUMENT, builder)
    return builder.build()
