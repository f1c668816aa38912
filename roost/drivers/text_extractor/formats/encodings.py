"""Decoding of text files, whose encoding is rarely known.

In this order: a byte order mark, UTF-8, UTF-16 and UTF-32 by their NULs, the declared encoding, statistics of the text,
Windows-1252.
"""

import codecs
import re
import unicodedata

from charset_normalizer import from_bytes

from roost.drivers.text_extractor.refusal import DocumentRefused, RefusalReason

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_WIDE = ("utf-32-le", "utf-32-be", "utf-16-le", "utf-16-be")
_SINGLE_BYTE = ("cp1252", "cp1250", "iso8859_2", "cp1251", "koi8_r", "cp1253", "cp1255", "cp1256")
_MULTI_BYTE = ("cp932", "euc_jp", "cp949", "gb18030", "big5")
_CENTRAL_EUROPEAN = ("cp1250", "iso8859_2")
_FALLBACK = "cp1252"
_SAMPLE_BYTES = 64 * 1024
_MIN_EVIDENCE = 6
"""Bytes beyond ASCII below which statistics say nothing."""
_MAX_CONTROLS = 0.01
"""Share of control characters above which content is not text; in random bytes it is 0.11."""
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b")) + b"\x7f"
_HIGH_RUN = re.compile(rb"[\x80-\xff]+")
_RARE_IN_THE_WEST = frozenset("ýžšŽŠÝ¹²³¾¼¿¶±¦¥£¡¢¤¯")
_UNPRINTABLE = frozenset(("Cc", "Cn", "Co", "Cs"))


def decode_text(source: bytes, declared: str = "") -> str:
    """Return the text of a file; `declared` is the encoding that it claims. Raises DocumentRefused for binary files."""
    for mark, encoding in _MARKS:
        if source.startswith(mark):
            return source[len(mark) :].decode(encoding, "replace")
    if (text := _decode_wide(source)) is not None:
        return text
    if _share_of_controls(source) > _MAX_CONTROLS:
        raise DocumentRefused(RefusalReason.UNSUPPORTED)
    try:
        return source.decode()
    except UnicodeDecodeError:
        if b"\0" in source:
            raise DocumentRefused(RefusalReason.UNSUPPORTED) from None
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


def _share_of_controls(source: bytes) -> float:
    return (len(source) - len(source.translate(None, _CONTROLS))) / max(len(source), 1)


def _guess_encoding(source: bytes) -> str:
    sample = _sample_beyond_ascii(source)
    runs = _HIGH_RUN.findall(sample)
    high = sum(map(len, runs))
    if high < _MIN_EVIDENCE:
        return _FALLBACK
    # In text of Latin letters most bytes beyond ASCII stand alone, and two of them can be a Chinese character, too.
    stands_alone = sum(len(run) == 1 for run in runs) > 0.6 * len(runs)
    found = from_bytes(sample, cp_isolation=list(_SINGLE_BYTE if stands_alone else _SINGLE_BYTE + _MULTI_BYTE)).best()
    encoding = _FALLBACK if found is None else found.encoding
    return _FALLBACK if encoding in _CENTRAL_EUROPEAN and _is_western(sample) else encoding


def _sample_beyond_ascii(source: bytes) -> bytes:
    """Return the first lines with bytes beyond ASCII."""
    sample = bytearray()
    for line in source.splitlines(keepends=True):
        if not line.isascii():
            sample += line[: _SAMPLE_BYTES - len(sample)]
        if len(sample) >= _SAMPLE_BYTES:
            break
    return bytes(sample)


def _is_western(sample: bytes) -> bool:
    """Return whether a text reads well as Windows-1252, in which most central European letters are symbols."""
    beyond = [char for char in sample.decode(_FALLBACK, "replace") if char > "\x7f"]
    rare = sum(char in _RARE_IN_THE_WEST or char == "\ufffd" for char in beyond)
    return rare <= 0.15 * len(beyond)
