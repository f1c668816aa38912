"""HTML, read by libxml2 as a browser would see it without scripts."""

import re

from roost.drivers.text_extractor.formats.encodings import decode_text
from roost.drivers.text_extractor.formats.text_builder import TextBuilder
from roost.drivers.text_extractor.formats.tree_text import TextVocabulary, add_tree_text, parse_html

_CHARSET = re.compile(rb"<meta\b[^>]{0,500}?\bcharset\s*=\s*[\"']?\s*([\w.:-]{1,40})", re.IGNORECASE)
_HEAD_BYTES = 4096
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


def read_html(source: bytes, declared: str) -> str:
    """Return the text of a page; `declared` is the encoding of its MIME type. Raises DocumentRefused."""
    found = _CHARSET.search(source[:_HEAD_BYTES])
    text = decode_text(source, declared or (found[1].decode() if found else "")).replace("\0", "")
    root = parse_html(text.encode(errors="replace"))
    builder = TextBuilder()
    if root is not None:
        add_tree_text(root, _HTML, builder)
    return builder.build()
