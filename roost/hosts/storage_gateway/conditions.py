"""Conditional and partial requests (RFC 9110, 13 and 14), as far as content that never changes needs them. Pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

_SPEC = re.compile(r"([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18})", re.ASCII)
_MOST = 16
"""Ranges in one answer."""
_TAG = re.compile(r'(W/)?("[^"]*")')


class RangeNotSatisfiable(Exception):  # noqa: N818 - the word of the RFC
    """A range beyond the end."""


@dataclass(frozen=True)
class ByteRange:
    """Bytes `begin` to `end`, the end not included."""

    begin: int
    end: int


def is_known(if_none_match: str | None, etag: str) -> bool:
    """Whether the client has it already (13.1.2: the weak comparison)."""
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or etag.removeprefix("W/") in (tag for _, tag in _TAG.findall(if_none_match))


def is_another(if_match: str | None, etag: str) -> bool:
    """Whether the client means something else than what is here (13.1.1: the strong comparison)."""
    if if_match is None or if_match.strip() == "*":
        return False
    return etag not in {tag for weak, tag in _TAG.findall(if_match) if not weak}


def parts(asked: str | None, if_range: str | None, etag: str, size: int) -> Sequence[ByteRange]:
    """The ranges that are asked for, in their order; none for all of it.

    Other units and what is not understood mean all of it (14.2), as do ranges of something else than what is here, and
    those that are many or together more than all of it. Raises Unsatisfiable.
    """
    specs = _specs(asked) if asked is not None else ()
    if not specs or (if_range is not None and if_range.strip() != etag):
        return ()
    found = [ByteRange(begin, end) for begin, end in (_within(*spec, size) for spec in specs) if begin < end]
    if not found:
        raise RangeNotSatisfiable
    return found if len(found) <= _MOST and sum(part.end - part.begin for part in found) <= size else ()


def _specs(asked: str) -> Sequence[tuple[int | None, int | None]]:
    """First and last byte of each range as written; the first is None where it counts from the end. Empty: no range."""
    unit, _, ranges = asked.partition("=")
    written = [text for text in (text.strip(" \t") for text in ranges.split(",")) if text]
    found: list[tuple[int | None, int | None]] = []
    for text in written if unit.strip().lower() == "bytes" else ():
        match = _SPEC.fullmatch(text)
        if match is None:
            return ()
        first, last, suffix = (None if number is None else int(number) for number in match.groups())
        if first is not None and last is not None and last < first:
            return ()
        found.append((first, last if suffix is None else suffix))
    return found


def _within(first: int | None, last: int | None, size: int) -> tuple[int, int]:
    if first is None:
        return max(0, size - (last or 0)), size
    return first, size if last is None else min(size, last + 1)
