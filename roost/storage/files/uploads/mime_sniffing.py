"""MIME type of content by its first bytes; the name only distinguishes text and ZIP formats.

The signatures of WHATWG MIME Sniffing (6 and 7.1) and of common formats are below; a library knows more.
"""

import codecs
import mimetypes
import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, cast

import puremagic

SNIFFED_BYTES = 4096
"""Bytes at the start of the content that are examined."""
UNKNOWN = "application/octet-stream"
_ZIP = "application/zip"
_MIN_CONFIDENCE, _MIN_TEXT_CONFIDENCE = 0.3, 0.4
"""The library adds 0.1 for each byte of a signature; text often begins with the three bytes of another format."""
_TEXTS = frozenset({"application/json", "application/javascript", "application/xml", "image/svg+xml"})
_BINARY = frozenset(range(32)) - frozenset(b"\t\n\f\r\x1b")
_SIGNATURES: Sequence[tuple[re.Pattern[bytes], str]] = [
    (re.compile(mark, re.DOTALL), mime)
    for mark, mime in (
        (rb"\xff\xd8\xff", "image/jpeg"),
        (rb"RIFF.{4}WEBPVP", "image/webp"),
        (rb"RIFF.{4}WAVE", "audio/wave"),
        (rb"RIFF.{4}AVI ", "video/avi"),
        (rb"BM.{4}\0{4}", "image/bmp"),
        (rb"\xff\x0a|\0\0\0\x0cJXL \r\n\x87\n", "image/jxl"),
        (rb"....ftyp(?:.{4}){0,16}avi[fs]", "image/avif"),
        (rb"....ftyp(?:hei[cxms]|hev[cx]|mif1|msf1)", "image/heif"),
        (rb"....ftypqt  ", "video/quicktime"),
        (rb"....ftypM4[AB] ", "audio/mp4"),
        (rb"....ftyp3g", "video/3gpp"),
        (rb"....ftyp", "video/mp4"),
        (rb"ID3[\x02-\x04]|\xff[\xe2\xe3\xf2\xf3\xfa\xfb][\x10-\xef]", "audio/mpeg"),
        (rb"\xff[\xf0\xf1\xf8\xf9]", "audio/aac"),
        (rb"FORM.{4}AIF[FC]", "audio/aiff"),
        (rb"MThd\0\0\0\x06", "audio/midi"),
        (rb"G.{187}G.{187}G", "video/mp2t"),
        (rb"\0asm", "application/wasm"),
        (rb"\0\x01\0\0\0[\x01-\x40]", "font/ttf"),
        (rb"OTTO\0", "font/otf"),
        (rb"ttcf\0", "font/collection"),
        (rb"wOFF", "font/woff"),
        (rb"wOF2", "font/woff2"),
        (rb".{34}LP", "application/vnd.ms-fontobject"),
        (rb"PAR1", "application/vnd.apache.parquet"),
        (rb"glTF[\x01\x02]\0\0\0", "model/gltf-binary"),
        (rb".{1,2}\xa2(?:eroots|gversion)|\x0a\xa1gversion\x02", "application/vnd.ipld.car"),
        (rb"\x7fELF", "application/x-executable"),
        (rb"PK\x03\x04.{26}mimetypeapplication/epub\+zip", "application/epub+zip"),
    )
]
"""The first match counts."""
_PROLOG = rb"(?:\xef\xbb\xbf)?(?>\s+|<\?.*?\?>|<!--.*?-->)*+"
_PAGE = (
    rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|!--)"
    rb"[\s>]"
)
_MARKUP: Sequence[tuple[re.Pattern[bytes], str]] = [
    (re.compile(mark, re.DOTALL | re.IGNORECASE), mime)
    for mark, mime in (
        (_PROLOG + rb"(?:<!doctype\s+svg[\s>\[]|<(?:svg:)?svg[\s>])", "image/svg+xml"),
        (rb"(?:\xef\xbb\xbf)?\s*<\?xml\s", "application/xml"),
        (_PAGE, "text/html"),
    )
]
"""Signatures of markup."""
_JSON = re.compile(rb'\s*+(?:\{\s*+["}]|\[\s*+(?:["{\[\]0-9-]|(?:true|false|null)\b))')


_OTHER_NAMES = {
    "image/jpg": "image/jpeg",
    "image/x-png": "image/png",
    "image/vnd.microsoft.icon": "image/x-icon",
    "audio/mp3": "audio/mpeg",
    "audio/x-wav": "audio/wave",
    "audio/wav": "audio/wave",
    "text/xml": "application/xml",
    "application/x-zip-compressed": "application/zip",
    "application/gzip": "application/x-gzip",
    "application/javascript": "text/javascript",
    "application/x-javascript": "text/javascript",
}
"""Names that people give types, and what they are called here."""


def mime_type(head: bytes, name: str) -> str:
    """Detect the type of content from its first bytes (at most SNIFFED_BYTES) and its name."""
    ending = PurePosixPath(name).suffix  # mimetypes would parse a name like `data:text/x,y` as a URL
    named = mimetypes.guess_type(f"file{ending}")[0] or ""
    is_text = _is_text(head)
    if is_text and (named.startswith("text/") or named in _TEXTS):
        return named
    if found := _first_match(_MARKUP, head):  # including pages in legacy encodings
        return found
    if not is_text:
        return (
            _first_match(_SIGNATURES, head)
            or _zip_type(head, ending)
            or _library_type(head, name, _MIN_CONFIDENCE)
            or UNKNOWN
        )
    plain = "application/json" if _JSON.match(head) else "text/plain"
    return _library_type(head, name, _MIN_TEXT_CONFIDENCE) or plain


def matches_types(wanted: Sequence[str], found: str) -> bool:
    """Return whether a type matches a list with wildcards; a folder only matches `directory`.

    Names of types have no case (RFC 6838, 4.2), and parameters (`; charset=utf-8`) say nothing about the type.
    """
    names, kind = {_normalize_type(one) for one in wanted}, _normalize_type(found)
    if "/" not in kind:
        return kind in names
    return not names.isdisjoint({"*", "*/*", kind, f"{kind.partition('/')[0]}/*"})


def _normalize_type(name: str) -> str:
    """Return the usual name of a type; the library and the system's table have others, some with capitals."""
    bare = name.partition(";")[0].strip().lower()
    return _OTHER_NAMES.get(bare, bare)


def _first_match(marks: Sequence[tuple[re.Pattern[bytes], str]], head: bytes) -> str:
    return next((mime for mark, mime in marks if mark.match(head)), "")


def _zip_type(head: bytes, ending: str) -> str:
    """Detect ZIP formats by name, because documents, books and programs share the signature."""
    if not head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return ""
    of_name = (str(one.mime_type) for one in _library_matches(head, ending) if one.extension == ending.lower())
    return next((mime for mime in of_name if mime), _ZIP)


def _library_type(head: bytes, name: str, sure: float) -> str:
    matches = (one for one in _library_matches(head, name) if one.confidence >= sure and one.mime_type)
    return next((str(one.mime_type) for one in matches), "")


def _library_matches(head: bytes, name: str) -> Sequence[Any]:
    """Return the matches of the library, the most likely first."""
    try:
        return cast("Sequence[Any]", puremagic.magic_string(head, name))  # pyright: ignore[reportUnknownMemberType] - it has no types
    except (puremagic.PureError, ValueError):
        return ()


def _is_text(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last character may be cut off
    except UnicodeDecodeError:
        return False
    return not _BINARY.intersection(head)
