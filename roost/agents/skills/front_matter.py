"""Reader of the front matter of `SKILL.md`: the subset of YAML 1.2 that skills use, strict and in linear time. Pure.

Block and flow collections, plain, quoted, literal and folded scalars, and comments. All scalars are strings. Anchors,
aliases, tags, directives, complex keys and duplicate keys are refused, so nothing expands and nothing is constructed.
"""

import re
import sys
from collections.abc import Callable
from typing import Any, NoReturn, cast

from roost.agents.skills.errors import InvalidSkill

FRONT_MATTER_LIMIT = 64 * 1024
DEPTH_LIMIT = 16

UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufffe\uffff]")
"""Characters that text never needs; Unicode's line separators end a line for some readers and not for others."""

FrontMatter = dict[str, Any]
"""Values are strings, lists and dictionaries."""

_BLANK = re.compile(r"(?:[ ]*(?:#[^\n]*)?\n)*[ ]*(?:#[^\n]*)?")
_FLOW_BLANK = re.compile(r"(?:[ \t\n]|(?<=[ \t\n])#[^\n]*)*")
_LINE_END = re.compile(r"[ \t]*(?:(?<=[ \t])#[^\n]*)?(?:\n|\Z)")
_EMPTY_LINES = re.compile(r"(?:[ \t]*\n)*[ ]*")
_KEY_END = re.compile(r":(?=[ \t\n]|\Z)")
_PLAIN_END = re.compile(r"[ \t]#|\n|:(?=[ \t\n]|\Z)|\Z")
_FLOW_PLAIN_END = re.compile(r"(?<=\s)#|[,\[\]{}]|:(?=[\s,\[\]{}]|\Z)|\Z")
_NO_PLAIN = frozenset(",[]{}#&*!|>'\"%@`")
_BLOCK_HEADER = re.compile(r"([|>])(?:([1-9])([+-]?)|([+-]?)([1-9]?))[ \t]*(?:(?<=[ \t])#[^\n]*)?(?:\n|\Z)")
_DOUBLE_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
_SINGLE_QUOTED = re.compile(r"'((?:[^']|'')*)'")
_FOLD = r"(?<![ \t])[ \t]*\n[ \t\n]*"  # the lookbehind keeps long runs of blanks linear
_DOUBLE_PARTS = re.compile(
    rf"\\\n[ \t\n]*|{_FOLD}|\\(?:x[0-9a-fA-F]{{2}}|u[0-9a-fA-F]{{4}}|U[0-9a-fA-F]{{8}}|[ \t]+\n|.)", re.DOTALL
)
_SINGLE_PARTS = re.compile(rf"''|{_FOLD}")
_ESCAPES = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "\t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    " ": " ",
    '"': '"',
    "/": "/",
    "\\": "\\",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
_REFUSED = {"&": "an anchor", "*": "an alias", "!": "a tag", "%": "a directive", "@": "a reserved character"}


def parse_front_matter(text: str, first_line: int = 1) -> FrontMatter:
    """Parse a mapping without characters of `UNPRINTABLE`. Raises InvalidSkill with the line of the file.

    first_line: the number of the text's first line in the file.
    """
    return _FrontMatterParser(text, first_line).parse()


class _FrontMatterParser:
    """Recursive descent over the text; the column of a token is its indentation."""

    def __init__(self, text: str, first_line: int) -> None:
        self._text = text.replace("\r\n", "\n")
        self._first_line = first_line
        self._at = 0

    def parse(self) -> FrontMatter:
        if self._skip_blank() < 0:
            self._fail("the front matter is empty")
        found = self._block(0, 1)
        if self._skip_blank() >= 0:
            self._fail("unexpected indentation")
        if not isinstance(found, dict):
            self._fail("the front matter must be a mapping of keys to values")
        return cast("FrontMatter", found)

    def _block(self, min_column: int, depth: int) -> Any:
        """Parse the node at the next token; empty if that is left of `min_column`."""
        column = self._skip_blank()
        if column < min_column:
            return ""
        if depth > DEPTH_LIMIT:
            self._fail(f"nested more than {DEPTH_LIMIT} levels")
        if self._at_item():
            return self._sequence(column, depth)
        if self._key_end() is not None:
            return self._mapping(column, depth)
        return self._scalar(min_column - 1, depth)

    def _mapping(self, column: int, depth: int) -> FrontMatter:
        found: FrontMatter = {}
        while (here := self._skip_blank()) >= column:
            end = self._key_end()
            if here > column or self._at_item() or end is None:
                self._fail("expected `key: value`" if here == column else "unexpected indentation")
            key = self._key(end, found)
            self._at = end + 1
            found[key] = self._value(column, depth)
        return found

    def _key(self, end: int, mapping: FrontMatter) -> str:
        first = self._text[self._at]
        if first in "\"'":
            key = self._quoted(first)
        else:
            self._check_plain(first)
            key = self._text[self._at : end].rstrip()
        self._check_key(key, mapping)
        return key

    def _value(self, column: int, depth: int) -> Any:
        """Parse what follows a key: a scalar on its line, or a block on the following lines."""
        end = _LINE_END.match(self._text, self._at)
        if end is None:
            self._at = _end_of_blanks(self._text, self._at)
            return self._scalar(column, depth)
        self._at = end.end()
        here = self._skip_blank()
        is_item_below = here == column and self._at_item()  # items may stand below their key without indentation
        return self._block(column if is_item_below else column + 1, depth + 1)

    def _sequence(self, column: int, depth: int) -> list[Any]:
        found: list[Any] = []
        while (here := self._skip_blank()) >= column and self._at_item():
            if here > column:
                self._fail("unexpected indentation")
            self._at += 1
            found.append(self._item(column, depth))
        if self._skip_blank() > column:
            self._fail("unexpected indentation")
        return found

    def _item(self, column: int, depth: int) -> Any:
        end = _LINE_END.match(self._text, self._at)
        if end is not None:
            self._at = end.end()
        elif self._text[_end_of_blanks(self._text, self._at)] in "|>":
            self._at = _end_of_blanks(self._text, self._at)
            return self._scalar(column, depth)
        return self._block(column + 1, depth + 1)

    def _scalar(self, parent: int, depth: int) -> Any:
        """Parse a scalar or a flow collection; `parent` is the column of what contains it."""
        first = self._text[self._at]
        if first in "|>":
            return self._block_scalar(parent)
        if first in "\"'[{":
            found = self._flow(depth + 1)
            end = _LINE_END.match(self._text, self._at)
            if end is None:
                self._fail("unexpected text after the value")
            self._at = end.end()
            return found
        self._check_plain(first)
        return self._plain(parent)

    def _plain(self, parent: int) -> str:
        """Parse an unquoted scalar; indented lines continue it, a comment ends it."""
        parts: list[str] = []
        breaks = 0
        while True:
            end = self._plain_line()
            parts += [_fold(breaks) if parts else "", self._text[self._at : end.start()].rstrip()]
            if end[0] != "\n":
                end = _LINE_END.match(self._text, end.start())
                self._at = end.end() if end else len(self._text)
                break
            self._at = end.end()
            following = _EMPTY_LINES.match(self._text, self._at)
            stop = following.end() if following else self._at
            if stop == len(self._text) or self._column(stop) <= parent or self._text[stop] == "#":
                break
            breaks = 1 + self._text.count("\n", self._at, stop)
            self._at = stop
        return "".join(parts)

    def _plain_line(self) -> re.Match[str]:
        end = _PLAIN_END.search(self._text, self._at)
        assert end is not None  # it matches the end of the text
        if end[0] == ":":
            self._fail("`: ` inside an unquoted value; quote the value")
        return end

    def _block_scalar(self, parent: int) -> str:
        header = _BLOCK_HEADER.match(self._text, self._at)
        if header is None:
            self._fail("malformed header of a block scalar")
        self._at = header.end()
        indent = max(parent, 0) + int(header[2] or header[5]) if header[2] or header[5] else 0
        lines: list[str] = []
        while self._at < len(self._text):
            line = self._text[self._at : self._line_stop()]
            width = len(line) - len(line.lstrip(" "))
            if width < len(line):
                indent = indent or max(width, parent + 1)
                if width < indent:
                    break
            lines.append(line[indent:] if indent else "")
            self._at = min(self._at + len(line) + 1, len(self._text))
        return _join_block(lines, is_folded=header[1] == ">", chomping=header[3] or header[4] or "")

    def _flow(self, depth: int) -> Any:
        if depth > DEPTH_LIMIT:
            self._fail(f"nested more than {DEPTH_LIMIT} levels")
        first = self._text[self._at]
        if first == "{":
            return self._flow_mapping(depth)
        if first == "[":
            return self._flow_sequence(depth)
        return self._flow_scalar()

    def _flow_mapping(self, depth: int) -> FrontMatter:
        found: FrontMatter = {}

        def read_entry() -> None:
            key = self._flow_scalar()
            self._check_key(key, found)
            found[key] = ""
            if self._next_flow() == ":":
                self._at += 1
                if self._next_flow() not in ",}":
                    found[key] = self._flow(depth + 1)

        self._flow_entries("}", read_entry)
        return found

    def _flow_sequence(self, depth: int) -> list[Any]:
        found: list[Any] = []
        self._flow_entries("]", lambda: found.append(self._flow(depth + 1)))
        return found

    def _flow_entries(self, closing: str, read_entry: Callable[[], None]) -> None:
        self._at += 1
        while self._next_flow() != closing:
            read_entry()
            following = self._next_flow()
            if following == ",":
                self._at += 1
            elif following != closing:
                self._fail(f"expected `,` or `{closing}`")
        self._at += 1

    def _next_flow(self) -> str:
        """Skip blanks and comments; return the next character."""
        blank = _FLOW_BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        if self._at == len(self._text):
            self._fail("a bracket is not closed")
        return self._text[self._at]

    def _flow_scalar(self) -> str:
        first = self._text[self._at]
        if first in "\"'":
            return self._quoted(first)
        if first == "?":  # readers disagree about it
            self._fail("a value in brackets cannot begin with `?`; quote the value")
        self._check_plain(first)
        end = _FLOW_PLAIN_END.search(self._text, self._at)
        assert end is not None  # it matches the end of the text
        text = re.sub(_FOLD, lambda found: _fold(found[0].count("\n")), self._text[self._at : end.start()].strip())
        self._at = end.start()
        return text

    def _quoted(self, quote: str) -> str:
        pattern, parts = (_DOUBLE_QUOTED, _DOUBLE_PARTS) if quote == '"' else (_SINGLE_QUOTED, _SINGLE_PARTS)
        found = pattern.match(self._text, self._at)
        if found is None:
            self._fail("a quote is not closed")
        text = parts.sub(self._replace_part, found[1])
        try:  # JSON writes what is beyond 16 bits as two surrogates
            text = text.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeError:
            self._fail("half of a surrogate pair in a quoted value")
        if control := UNPRINTABLE.search(text):
            self._fail(f"control character U+{ord(control[0]):04X} in a quoted value")
        self._at = found.end()
        return text

    def _replace_part(self, part: re.Match[str]) -> str:
        text = part[0]
        if text == "''":
            return "'"
        if not text.startswith("\\"):
            return _fold(text.count("\n"))
        if text[1] == "\n":
            return "\n" * (text.count("\n") - 1)
        kind, digits = text[1], text[2:]
        if digits.endswith("\n"):
            self._fail("an escaped blank at the end of a line in a quoted value")
        if digits and int(digits, 16) <= sys.maxunicode:
            return chr(int(digits, 16))
        if kind not in _ESCAPES:
            self._fail(f"unknown escape `{text}` in a quoted value")
        return _ESCAPES[kind]

    def _check_key(self, key: str, mapping: FrontMatter) -> None:
        if key in mapping:
            self._fail(f"the key `{key[:40]}` stands twice")
        if key == "<<":
            self._fail("a merge key is not allowed")

    def _key_end(self) -> int | None:
        """Return the position of the colon if a key of a block mapping starts here."""
        first = self._text[self._at]
        if first in "\"'":
            found = (_DOUBLE_QUOTED if first == '"' else _SINGLE_QUOTED).match(self._text, self._at)
            if found is None or "\n" in found[0]:
                return None
            end = _end_of_blanks(self._text, found.end())
            return end if _KEY_END.match(self._text, end) else None
        if first in "[{|>":
            return None
        end = _PLAIN_END.search(self._text, self._at)
        return end.start() if end is not None and end[0] == ":" else None

    def _at_item(self) -> bool:
        return self._text[self._at] == "-" and self._text[self._at + 1 : self._at + 2] in ("", " ", "\t", "\n")

    def _check_plain(self, first: str) -> None:
        if first in _REFUSED:
            self._fail(f"{_REFUSED[first]} is not allowed; quote the value")
        following = self._text[self._at + 1 : self._at + 2]
        if first in _NO_PLAIN or not first or (first in "?:-" and following in ("", " ", "\t", "\n")):
            self._fail(f"a value cannot begin with `{first}`; quote the value")

    def _skip_blank(self) -> int:
        """Go to the next token; return its column, -1 at the end."""
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        if self._at == len(self._text):
            return -1
        if self._text[self._at] == "\t":
            self._fail("a tab cannot indent")
        return self._column(self._at)

    def _column(self, at: int) -> int:
        return at - self._text.rfind("\n", 0, at) - 1

    def _line_stop(self) -> int:
        stop = self._text.find("\n", self._at)
        return len(self._text) if stop < 0 else stop

    def _line(self) -> int:
        return self._first_line + self._text.count("\n", 0, self._at)

    def _fail(self, reason: str) -> NoReturn:
        raise InvalidSkill(f"SKILL.md:{self._line()}: {reason}")


def _end_of_blanks(text: str, at: int) -> int:
    while text[at : at + 1] in (" ", "\t"):
        at += 1
    return at


def _fold(breaks: int) -> str:
    """Return what line breaks inside a scalar mean (YAML 1.2, 6.5)."""
    return " " if breaks == 1 else "\n" * (breaks - 1)


def _join_block(lines: list[str], *, is_folded: bool, chomping: str) -> str:
    kept = len(lines)
    while kept and not lines[kept - 1]:
        kept -= 1
    text = _fold_lines(lines[:kept]) if is_folded else "\n".join(lines[:kept])
    if chomping == "+":
        return text + "\n" * (len(lines) - kept + (kept > 0))
    return text + "\n" if kept and not chomping else text


def _fold_lines(lines: list[str]) -> str:
    """Join lines by spaces; keep the breaks at empty and at further indented lines."""
    parts: list[str] = []
    breaks, previous = 0, ""
    for line in lines:
        breaks += 1
        if line:
            is_kept = line[0] in " \t" or previous[:1] in (" ", "\t")
            parts += ["\n" * (breaks - (not previous)) if is_kept or not previous else _fold(breaks), line]
            breaks, previous = 0, line
    return "".join(parts)
