"""Normal form of extracted texts, the same under every extractor."""

import re
import unicodedata

_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNWANTED = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff]")
_BLANK_LINES = re.compile(r"\n{3,}")
_LONE_SURROGATES = re.compile(r"[\ud800-\udfff]")


def normalize_text(text: str) -> str:
    """Return the text in NFC, with plain line ends, single blank lines, and no control character but tabs."""
    text = _UNWANTED.sub("", _LINE_ENDS.sub("\n", text))
    text = _LONE_SURROGATES.sub("\ufffd", text)
    text = "\n".join(line.rstrip(" \t\xa0") for line in text.split("\n"))
    return unicodedata.normalize("NFC", _BLANK_LINES.sub("\n\n", text)).strip("\n")


def is_normal(text: str) -> bool:
    """Return whether a text has no character that `normalize_text` removes, without a check of its NFC."""
    return not (_UNWANTED.search(text) or _LINE_ENDS.search(text) or _LONE_SURROGATES.search(text))
