"""What kind of content it is, by its first bytes. A name only tells kinds of text apart, which have no mark, and what
is in a ZIP. The marks that browsers know (WHATWG, MIME sniffing, 6 and 7.1) and those of what is often kept here are
below; a library knows more.
"""

import codecs
import mimetypes
import re
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, cast

import puremagic

HEAD = 4096
"""Bytes that are looked at."""
UNKNOWN = "application/octet-stream"
_ZIP = "application/zip"
_SURE, _SURE_OF_TEXT = 0.3, 0.4
"""A tenth for each byte of a mark: JPEG has three, and many a text begins with the three of something else."""
_TEXTS = frozenset({"application/json", "application/javascript", "application/xml", "image/svg+xml"})
_BINARY = frozenset(range(32)) - frozenset(b"\t\n\f\r\x1b")
_MARKS: Sequence[tuple[re.Pattern[bytes], str]] = [
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
"""The first that matches."""
_PROLOG = rb"(?:\xef\xbb\xbf)?(?>\s+|<\?.*?\?>|<!--.*?-->)*+"
_PAGE = (
    rb"(?:\xef\xbb\xbf)?\s*<(?:!doctype html|html|head|script|iframe|h1|div|font|table|a|style|title|b|body|br|p|!--)"
    rb"[\s>]"
)
_WRITTEN: Sequence[tuple[re.Pattern[bytes], str]] = [
    (re.compile(mark, re.DOTALL | re.IGNORECASE), mime)
    for mark, mime in (
        (_PROLOG + rb"(?:<!doctype\s+svg[\s>\[]|<(?:svg:)?svg[\s>])", "image/svg+xml"),
        (rb"(?:\xef\xbb\xbf)?\s*<\?xml\s", "application/xml"),
        (_PAGE, "text/html"),
    )
]
"""How texts begin that are marked up."""
_JSON = re.compile(rb'\s*+(?:\{\s*+["}]|\[\s*+(?:["{\[\]0-9-]|(?:true|false|null)\b))')


def mime_type(head: bytes, name: str) -> str:
    """The type of content that begins with `head` (at most HEAD bytes) and has that name."""
    ending = PurePosixPath(name).suffix  # of a name like `data:text/x,y` the guesser would take what it says
    named = mimetypes.guess_type(f"file{ending}")[0] or ""
    is_text = _is_text(head)
    if is_text and (named.startswith("text/") or named in _TEXTS):
        return named
    if found := _first(_WRITTEN, head):  # of a page in an older coding too
        return found
    if not is_text:
        return _first(_MARKS, head) or _zipped(head, ending) or _known(head, name, _SURE) or UNKNOWN
    return _known(head, name, _SURE_OF_TEXT) or ("application/json" if _JSON.match(head) else "text/plain")


def allows(wanted: Sequence[str], found: str) -> bool:
    """Whether `found` is among the types, some of which may be wildcards. A folder is `directory` and nothing else."""
    if "/" not in found:
        return found in wanted
    return any(one in {"*", "*/*", found, f"{found.partition('/')[0]}/*"} for one in wanted)


def _first(marks: Sequence[tuple[re.Pattern[bytes], str]], head: bytes) -> str:
    return next((mime for mark, mime in marks if mark.match(head)), "")


def _zipped(head: bytes, ending: str) -> str:
    """Documents, books and programs begin as every ZIP does: their names tell."""
    if not head.startswith((b"PK\x03\x04", b"PK\x05\x06")):
        return ""
    of_name = (str(one.mime_type) for one in _marks(head, ending) if one.extension == ending.lower())
    return next((mime for mime in of_name if mime), _ZIP)


def _known(head: bytes, name: str, sure: float) -> str:
    return next((str(one.mime_type) for one in _marks(head, name) if one.confidence >= sure and one.mime_type), "")


def _marks(head: bytes, name: str) -> Sequence[Any]:
    """What the library takes it for, the likeliest first."""
    try:
        return cast("Sequence[Any]", puremagic.magic_string(head, name))  # pyright: ignore[reportUnknownMemberType] - it has no types
    except (puremagic.PureError, ValueError):
        return ()


def _is_text(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # a sign may be cut off at the end
    except UnicodeDecodeError:
        return False
    return not _BINARY.intersection(head)
