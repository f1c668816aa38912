"""What kind of content it is, by its first bytes. A name only tells kinds of text apart, which have no mark."""

import codecs
import mimetypes
from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any, cast

import puremagic

HEAD = 4096
"""Bytes that are looked at."""
UNKNOWN = "application/octet-stream"
_SURE, _SURE_OF_TEXT = 0.3, 0.4
"""A tenth for each byte of a mark: JPEG has three, and many a text begins with the three of something else."""
_TEXTS = frozenset({"application/json", "application/javascript", "application/xml", "image/svg+xml"})
_BINARY = frozenset(range(32)) - frozenset(b"\t\n\f\r\x1b")


def mime_type(head: bytes, name: str) -> str:
    """The type of content that begins with `head` (at most HEAD bytes) and has that name."""
    is_text = _is_text(head)
    ending = PurePosixPath(name).suffix  # of a name like `data:text/x,y` the guesser would take what it says
    named = mimetypes.guess_type(f"file{ending}")[0] or ""
    if is_text and (named.startswith("text/") or named in _TEXTS):
        return named
    if found := _marked(head, name, _SURE_OF_TEXT if is_text else _SURE):
        return found
    if is_text:
        return "application/json" if head.lstrip()[:1] in {b"{", b"["} else "text/plain"
    return UNKNOWN


def allows(wanted: Sequence[str], found: str) -> bool:
    """Whether `found` is among the types, some of which may be wildcards. A folder is `directory` and nothing else."""
    if "/" not in found:
        return found in wanted
    return any(one in {"*", "*/*", found, f"{found.partition('/')[0]}/*"} for one in wanted)


def _marked(head: bytes, name: str, sure: float) -> str:
    try:
        found = cast("Sequence[Any]", puremagic.magic_string(head, name))  # pyright: ignore[reportUnknownMemberType] - it has no types
    except (puremagic.PureError, ValueError):
        return ""
    return next((str(one.mime_type) for one in found if one.confidence >= sure and one.mime_type), "")


def _is_text(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # a sign may be cut off at the end
    except UnicodeDecodeError:
        return False
    return not _BINARY.intersection(head)
