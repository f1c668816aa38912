"""Conditional and partial requests (RFC 9110, 13 and 14), as far as content that never changes needs them. Pure."""

import re
from dataclasses import dataclass

_RANGE = re.compile(r"bytes=\s*(?:([0-9]{1,18})-([0-9]{1,18})?|-([0-9]{1,18}))\s*", re.IGNORECASE | re.ASCII)
_TAG = re.compile(r'(?:W/)?("[^"]*")')


class Unsatisfiable(Exception):  # noqa: N818 - the word of the RFC
    """A range beyond the end."""


@dataclass(frozen=True)
class Part:
    """Bytes `begin` to `end`, the end not included."""

    begin: int
    end: int


def is_known(if_none_match: str | None, etag: str) -> bool:
    """Whether the client has it already (13.1.2: the weak comparison)."""
    if if_none_match is None:
        return False
    return if_none_match.strip() == "*" or etag.removeprefix("W/") in _TAG.findall(if_none_match)


def part(asked: str | None, if_range: str | None, etag: str, size: int) -> Part | None:
    """The one range that is asked for; None for all of it.

    Several ranges, other units and what is not understood mean all of it (14.2), as does a range of something else
    than what is here. Raises Unsatisfiable.
    """
    found = _RANGE.fullmatch(asked) if asked is not None else None
    if found is None or (if_range is not None and if_range.strip() != etag):
        return None
    first, last, suffix = found.groups()
    if suffix is not None:
        begin, end = max(0, size - int(suffix)), size
    else:
        begin, end = int(first), min(size, int(last) + 1) if last is not None else size
        if last is not None and int(last) < begin:
            return None
    if begin >= size or begin >= end:
        raise Unsatisfiable
    return Part(begin, end)
