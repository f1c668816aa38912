"""Texts that make a regular expression slow: repeats of what its parts match, made from the expression itself."""

import re
import re._constants as kind  # pyright: ignore[reportMissingImports] - without stubs
import re._parser as parser  # pyright: ignore[reportMissingImports] - without stubs
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

LIKELY = "aA1 -./_x=:,;\"'<({[\t\n%"
SIZES = (24, 2000, 16000)
NOISE = 0.003
"""Seconds below which a time says nothing; the mildest quadratic search takes eight times it at the largest size."""
GROWTH = 8.0
"""A linear search of four times the text takes four times as long, a quadratic one sixteen times."""


def find_slow_text(pattern: re.Pattern[Any], *, anchored: bool) -> str | None:
    """Return the beginning of a text that takes the pattern more than linear time, if an attack finds one."""
    for before, unit in sorted(list_attacks(pattern)):
        for after in ("", "\0\n!"):
            if has_steep_growth(partial(_search, pattern, anchored, before, unit, after)):
                return f"{before[:40]!r} {unit[:40]!r} {after!r}"
    return None


def has_steep_growth(seconds_of: Callable[[int], float], sizes: tuple[int, ...] = SIZES) -> bool:
    """Return whether time grows faster than size; measured at small sizes first, because an attack may succeed."""
    for size in sizes:
        if seconds_of(size) > NOISE:
            return all(seconds_of(size) > GROWTH * seconds_of(size // 4) for _ in range(3))
    return False


def _search(pattern: re.Pattern[Any], anchored: bool, before: str, unit: str, after: str, size: int) -> float:
    text = before + unit * (size // len(unit)) + after
    attacked: Any = text if isinstance(pattern.pattern, str) else text.encode("latin-1", "replace")
    start = time.thread_time()
    if anchored:
        pattern.fullmatch(attacked)
    else:
        for _ in pattern.finditer(attacked):
            pass
    return time.thread_time() - start


def list_attacks(pattern: re.Pattern[Any]) -> set[tuple[str, str]]:
    """List pairs of a text and of what to repeat after it."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    beginnings = list(dict.fromkeys(_beginnings(parser.parse(text, pattern.flags), "")))
    repeated = {("", text) for text in beginnings} | {("", text + " ") for text in beginnings}
    return repeated | {(text, text[-1]) for text in beginnings} | {("", text[-1]) for text in beginnings}


def _beginnings(parts: Any, text: str) -> Iterator[str]:
    """Yield beginnings of matches, each after `text`; the last one is of a whole match."""
    for operation, value in parts:
        inner: list[Any] = []
        if operation is kind.LITERAL:
            text += chr(value)
        elif operation in (kind.NOT_LITERAL, kind.ANY):
            text += "b" if value == ord("a") else "a"
        elif operation is kind.IN:
            text += _pick_character(value)
        elif operation is kind.BRANCH:
            inner = value[1]
        elif operation in (kind.SUBPATTERN, kind.ATOMIC_GROUP):
            inner = [value[3] if operation is kind.SUBPATTERN else value]
        elif operation in (kind.MAX_REPEAT, kind.MIN_REPEAT, kind.POSSESSIVE_REPEAT):
            inner = [value[2]]
        ends = []
        for one in inner:
            found = [text, *_beginnings(one, text)]
            yield from found[1:]
            ends.append(found[-1])
        if ends:
            least = value[0] if operation in (kind.MAX_REPEAT, kind.MIN_REPEAT, kind.POSSESSIVE_REPEAT) else 1
            text += ends[0][len(text) :] * min(max(least, 1), 400)
        if text:
            yield text


def _pick_character(choices: Any) -> str:
    listed = [
        chr(value if operation is kind.LITERAL else value[0])
        for operation, value in choices
        if operation in (kind.LITERAL, kind.RANGE)
    ]
    one = re.compile(_class_of(choices), re.DOTALL)
    return next((char for char in (*LIKELY, *listed, *map(chr, range(256))) if one.fullmatch(char)), "a")


_CATEGORIES = {
    kind.CATEGORY_DIGIT: r"\d",
    kind.CATEGORY_NOT_DIGIT: r"\D",
    kind.CATEGORY_SPACE: r"\s",
    kind.CATEGORY_NOT_SPACE: r"\S",
    kind.CATEGORY_WORD: r"\w",
    kind.CATEGORY_NOT_WORD: r"\W",
}


def _class_of(choices: Any) -> str:
    """Return a parsed character class as text."""
    text = ""
    for operation, value in choices:
        if operation is kind.NEGATE:
            text += "^"
        elif operation is kind.LITERAL:
            text += re.escape(chr(value))
        elif operation is kind.RANGE:
            text += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        else:
            text += _CATEGORIES[value]
    return f"[{text}]"
