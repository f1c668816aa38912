"""Conditional requests by entity tags (RFC 9110, 13.1). Pure."""

import re
from collections.abc import Collection

ANY_TAG = "*"
_TAG = re.compile(r'(W/)?("[^"]*")')


def parse_if_match(if_match: str | None) -> Collection[str] | None:
    """Return the strong tags of `If-Match` with their quotes, ANY_TAG alone for any, None without the header.

    Weak tags are left out, because the comparison is strong (13.1.1).
    """
    if if_match is None:
        return None
    if if_match.strip() == ANY_TAG:
        return (ANY_TAG,)
    return {tag for weak, tag in _TAG.findall(if_match) if not weak}


def is_precondition_failed(if_match: str | None, etag: str) -> bool:
    """Return whether `If-Match` lacks the tag of a present representation."""
    tags = parse_if_match(if_match)
    return tags is not None and ANY_TAG not in tags and etag not in tags


def is_not_modified(if_none_match: str | None, etag: str) -> bool:
    """Return whether `If-None-Match` contains the tag (13.1.2: weak comparison)."""
    if if_none_match is None:
        return False
    tags = {tag for _, tag in _TAG.findall(if_none_match)}
    return if_none_match.strip() == ANY_TAG or etag.removeprefix("W/") in tags
