"""Sanitizing of untrusted text: control sequences and direction marks are removed (ECMA-48, UAX 9)."""

import re

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
_PATH = re.compile(r"(?<!\S)[^\s/]*+/\S*")
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def is_storable(text: str) -> bool:
    """Return whether databases and files can store the text: no NUL, no lone surrogate."""
    return _UNSTORABLE.search(text) is None


def sanitize_line(text: str) -> str:
    """Remove escape sequences from one line, and replace control characters except the tab."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", _ESCAPES.sub("", text))


def sanitize_lines(text: str) -> str:
    """Sanitize each line of a text."""
    return "\n".join(sanitize_line(line.removesuffix("\r")) for line in text.split("\n"))


def hide_paths(text: str) -> str:
    """Replace every word with a slash."""
    return _PATH.sub("[path]", text)
