"""Decoding of text files, whose encoding is rarely known.

In this order: a byte order mark, UTF-8, UTF-16 and UTF-32 by their NULs, the declared encoding, statistics of the text,
Windows-1252.
"""

import codecs
import re
import unicodedata
from collections.abc import Mapping

from charset_normalizer import from_bytes

from roost.drivers.text_extractor.formats.detection import DocumentRefused, RefusalReason

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_STATISTICAL = """
    cp1252 cp1250 iso8859_2 cp1251 koi8_r cp1253 cp1255 cp1256 cp932 euc_jp cp949 gb18030 big5
""".split()
_FALLBACK = "cp1252"
_SAMPLE_BYTES = 64 * 1024
_MIN_EVIDENCE = 6
"""Bytes beyond ASCII below which statistics say nothing."""
_MAX_CONTROLS = 0.01
"""Share of control characters above which content is not text; in random bytes it is 0.11."""
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b")) + b"\x7f"
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_PUNCTUATION = "\u2018\u2019\u201c\u201d\u201e\u2013\u2014\u2026€"  # quotes, dashes, an ellipsis
_CENTRAL_EUROPEAN = frozenset("áäąăâćčďđéęěëíîĺľłńňóôöőřśšşťţúůüűýźžż" + _PUNCTUATION)
_LETTERS: Mapping[str, frozenset[str]] = {
    _FALLBACK: frozenset("àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþßœ¿¡«°·" + _PUNCTUATION),
    "cp1250": _CENTRAL_EUROPEAN,
    "iso8859_2": _CENTRAL_EUROPEAN,
}
"""Letters and signs beyond ASCII that texts in these encodings usually have; the first one wins a tie."""
_HIRAGANA = re.compile("[\u3041-\u309f]")
_JAPANESE = ("cp932", "euc_jp")
_UNPRINTABLE = frozenset(("Cc", "Cn", "Co", "Cs"))


def decode_text(source: bytes, declared: str = "") -> str:
    """Return the text of a file; `declared` is the encoding that it claims. Raises DocumentRefused for binary files."""
    for mark, encoding in _MARKS:
        if source.startswith(mark):
            return source[len(mark) :].decode(encoding, "replace")
    has_controls = _count_controls(source) > max(1, _MAX_CONTROLS * len(source))
    if not has_controls:
        try:
            return source.decode()
        except UnicodeDecodeError:
            pass
    if (text := _decode_wide(source)) is not None:
        return text
    if has_controls or b"\0" in source:
        raise DocumentRefused(RefusalReason.UNSUPPORTED)
    return _decode_legacy(source, declared)


def _decode_legacy(source: bytes, declared: str) -> str:
    if declared:
        try:
            return source.decode(declared)
        except (LookupError, UnicodeError, ValueError):  # unknown, or wrong
            pass
    return source.decode(_guess_encoding(source), "replace")


def _decode_wide(source: bytes) -> str | None:
    """Return the text of UTF-16 or UTF-32 without a mark, which surely has a NUL in a space or a line end.

    In the wrong byte order its characters are of many blocks of Unicode.
    """
    sample = source[:_SAMPLE_BYTES]
    if b"\0" not in sample:
        return None
    blocks: dict[str, int] = {}
    for encoding in _WIDE:
        text = sample.decode(encoding, "replace")
        if _is_printable(text):
            blocks[encoding] = len({ord(char) >> 8 for char in text})
    return source.decode(min(blocks, key=blocks.__getitem__), "replace") if blocks else None


def _is_printable(text: str) -> bool:
    """Return whether a text consists of assigned characters, with almost no control or replacement character."""
    unprintable = sum(
        char == "\ufffd" or (unicodedata.category(char) in _UNPRINTABLE and char not in "\t\n\r\f") for char in text
    )
    return unprintable <= _MAX_CONTROLS * len(text)


def _count_controls(source: bytes) -> int:
    return len(source) - len(source.translate(None, _CONTROLS))


def _guess_encoding(source: bytes) -> str:
    sample = _sample_beyond_ascii(source)
    runs = _HIGH_RUN.findall(sample)
    high = sum(map(len, runs))
    if high < _MIN_EVIDENCE:
        return _FALLBACK
    # In text of Latin letters most bytes beyond ASCII stand alone, and two of them can be a Chinese character, too.
    if sum(len(run) == 1 for run in runs) > 0.6 * len(runs):
        return _guess_latin(sample)
    if japanese := _find_japanese(sample):
        return japanese
    found = from_bytes(sample, cp_isolation=list(_STATISTICAL)).best()
    if found is None or found.encoding in _LETTERS:
        return _guess_latin(sample)
    return found.encoding


def _guess_latin(sample: bytes) -> str:
    return max(_LETTERS, key=lambda encoding: _count_letters(sample, encoding))


def _count_letters(sample: bytes, encoding: str) -> int:
    beyond = _BEYOND_ASCII.findall(sample.decode(encoding, "replace").lower())
    return sum(letter in _LETTERS[encoding] for letter in beyond)


def _find_japanese(sample: bytes) -> str | None:
    """Return the encoding in which a text has many Hiragana, because statistics also find Korean in it."""
    for encoding in _JAPANESE:
        try:
            text = sample.decode(encoding)
        except UnicodeDecodeError:
            continue
        if len(_HIRAGANA.findall(text)) > 0.2 * len(_BEYOND_ASCII.findall(text)):
            return encoding
    return None


def _sample_beyond_ascii(source: bytes) -> bytes:
    """Return the first lines with bytes beyond ASCII, whole ones if there is more than one."""
    sample = bytearray()
    for line in source.splitlines(keepends=True):
        if line.isascii():
            continue
        if sample and len(sample) + len(line) > _SAMPLE_BYTES:
            break
        sample += line
    return bytes(sample)
