"""Text of others: whether it can be kept at all; and made plain, so that nothing in it colours, moves or reorders what
stands around it (ECMA-48, UAX 9).
"""

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_STEERING = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_LOST = re.compile("[\x00\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Whether every database and every file keeps it: no NUL, no half of a surrogate pair."""
    return _LOST.search(text) is None


def sanitize_line(text: str) -> str:
    """One line: escape sequences are taken out, other control characters than the tab are replaced."""
    return _STEERING.sub("\N{REPLACEMENT CHARACTER}", _ESCAPES.sub("", text))


def sanitize_lines(text: str) -> str:
    """The same for text of several lines."""
    return "\n".join(sanitize_line(line.removesuffix("\r")) for line in text.split("\n"))
