"""Reads JSON5 (comments, trailing commas, bare keys, single quotes), the form in which people write OpenClaw's config.

It rewrites the text as JSON and lets `json` parse that. Whatever it does not know is a ValueError; it never guesses.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

_TOKEN = re.compile(
    r"""(?P<skip>\s+|//[^\n]*|/\*.*?\*/)
      | (?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
      | (?P<number>[+-]?(?:0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))
      | (?P<name>[A-Za-z_$][\w$]*)
      | (?P<mark>[][{}:,])""",
    re.VERBOSE | re.DOTALL,
)
_DEEPEST = 64
_LITERALS = {"true", "false", "null"}
_ESCAPE = re.compile(r'\\(x[0-9a-fA-F]{2}|.)|["\t]', re.DOTALL)
_ESCAPES = {"'": "'", "\n": "", "v": "\\u000b", "0": "\\u0000"}


def loads(text: str) -> Any:
    """Raises ValueError, also for what is nested more deeply than people nest."""
    return json.loads("".join(_rewrite(list(_tokens(text)))))


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    place = depth = 0
    while place < len(text):
        found = _TOKEN.match(text, place)
        if found is None:
            raise ValueError(f"unexpected sign at {place}")
        place = found.end()
        depth += (found[0] in "[{") - (found[0] in "]}")
        if depth > _DEEPEST:
            raise ValueError("nested too deeply")
        if found.lastgroup and found.lastgroup != "skip":
            yield found.lastgroup, found[0]


def _rewrite(tokens: list[tuple[str, str]]) -> Iterator[str]:
    for (kind, text), (_, following) in zip(tokens, [*tokens[1:], ("", "")], strict=True):
        if kind == "string" or (kind == "name" and following == ":"):
            yield _string(text)
        elif kind == "number":
            yield _number(text)
        elif kind == "name" and text not in _LITERALS:
            raise ValueError(f"unexpected word {text[:40]}")
        elif not (text == "," and following in ("}", "]")):
            yield text
        if kind != "mark":
            yield " "  # so that two values in a row stay two and are refused


def _string(text: str) -> str:
    body = text[1:-1] if text[0] in "\"'" else text
    return f'"{_ESCAPE.sub(_escape, body)}"'


def _escape(found: re.Match[str]) -> str:
    code = found[1]
    if code is None:
        return "\\" + {"\t": "t"}.get(found[0], found[0])
    if code[0] == "x" and len(code) == 3:
        return f"\\u00{code[1:]}"
    return _ESCAPES.get(code, found[0])


def _number(text: str) -> str:
    text = text.removeprefix("+")
    if "x" in text.lower():
        return str(int(text, 16))
    return re.sub(r"^(-?)\.", r"\g<1>0.", re.sub(r"\.(?!\d)", "", text))
