"""Normal form of extracted texts, the same under every extractor."""

import re
import unicodedata
from functools import cache

_MAX_MARKS = 30
_LINE_ENDS = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_UNWANTED = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f\ufeff]")
_BLANK_LINES = re.compile(r"\n{3,}")
_LONE_SURROGATES = re.compile(r"[\ud800-\udfff]")
_NOT_NORMAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")


def normalize_text(text: str) -> str:
    """Return the text in NFC, with plain line ends, single blank lines, and no control character but tabs."""
    text = _UNWANTED.sub("", _LINE_ENDS.sub("\n", text))
    text = _LONE_SURROGATES.sub("\ufffd", text)
    text = text if text.isascii() else _find_long_marks().sub(lambda found: found[0][:_MAX_MARKS], text)
    text = "\n".join(line.rstrip(" \t\xa0") for line in text.split("\n"))
    return unicodedata.normalize("NFC", _BLANK_LINES.sub("\n\n", text)).strip("\n")


def is_normal(text: str) -> bool:
    """Return whether a text has no character that `normalize_text` removes, without a check of its NFC."""
    return _NOT_NORMAL.search(text) is None


@cache
def _find_long_marks() -> re.Pattern[str]:
    """Return a pattern of combining marks in a row that would take quadratic time (UAX 15, stream-safe format)."""
    marks = "".join(chr(code) for code in range(0x300, 0x20000) if unicodedata.combining(chr(code)))
    return re.compile(f"[{marks}]{{{_MAX_MARKS + 1},}}")
