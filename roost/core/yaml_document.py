"""Strict reader of YAML that others wrote: a mapping of text, lists and mappings, with the line of each value. Pure.

Scalars are their text: `1.10` and `on` are no number and no boolean, and an empty value is "". Anchors, aliases, tags,
directives, merge keys and duplicate keys are refused, so nothing expands and nothing is constructed.
Decision 0029 says why.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from roost.core.problem import InvalidInput

TEXT_LIMIT = 128 * 1024
EVENT_LIMIT = 10_000  # a key or a value is one, a list or a mapping two
DEPTH_LIMIT = 16

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufffe\uffff]")
"""Characters that text never needs; Unicode's line separators end a line for some readers and not for others."""

YAML_1_2_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$|0o[0-7]+$")
"""Numbers of YAML 1.2 that YAML 1.1 reads as text; PyYAML matches it from the start of a scalar."""
YAML_1_1_LETTER = re.compile(r"[yYnN]$")
_KINDS = {"int": "a number", "float": "a number", "bool": "a truth value", "null": "nothing", "timestamp": "a date"}

YamlPath = tuple[str | int, ...]


class _AnyVersionResolver(yaml.resolver.Resolver):
    """Resolves plain scalars as readers of YAML 1.1 or 1.2 do."""


_AnyVersionResolver.add_implicit_resolver("tag:yaml.org,2002:float", YAML_1_2_NUMBER, list("-+.0123456789"))  # pyright: ignore[reportUnknownMemberType] - PyYAML has no types
_AnyVersionResolver.add_implicit_resolver("tag:yaml.org,2002:bool", YAML_1_1_LETTER, list("yYnN"))  # pyright: ignore[reportUnknownMemberType] - PyYAML has no types


class InvalidYamlDocument(InvalidInput):
    """The text is malformed, too large, or uses a feature that is refused."""

    message = "Invalid YAML"

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line = line
        self.reason = reason


@dataclass(frozen=True)
class YamlDocument:
    """Content of a text. `lines` has the line of each value by its path, `("agents", 0, "name")`.

    `ambiguous` has what other readers see in an unquoted text: "a number", "a truth value", "a date" or "nothing".
    `unportable` has lines that other readers refuse or read in another way, with the reason.
    """

    content: dict[str, Any]
    lines: Mapping[YamlPath, int]
    ambiguous: Mapping[YamlPath, str]
    unportable: Mapping[int, str]


def parse_yaml(text: str, first_line: int = 1) -> YamlDocument:
    """Parse one document, which is a mapping. Raises InvalidYamlDocument.

    first_line: the number of the text's first line in its file.
    """
    text = text.replace("\r\n", "\n")
    if len(text) > TEXT_LIMIT:
        raise InvalidYamlDocument(first_line, f"must be at most {TEXT_LIMIT // 1024} KiB")
    if found := _UNPRINTABLE.search(text):
        line = first_line + text.count("\n", 0, found.start())
        raise InvalidYamlDocument(line, f"control character U+{ord(found[0]):04X}")
    return _DocumentReader(text, first_line).read()


class _DocumentReader:
    """Builds the values from the events of PyYAML's own parser.

    libyaml is not used where it is present, because it differs (it refuses the surrogate pairs that JSON writes), and
    the same text must mean the same on every server. The limits keep the work below half a second.
    """

    def __init__(self, text: str, first_line: int) -> None:
        self._text = text
        self._source_lines = text.split("\n")
        self._first_line = first_line
        self._parser: Any = yaml.BaseLoader(text)
        self._events = 0
        self._lines: dict[YamlPath, int] = {}
        self._ambiguous: dict[YamlPath, str] = {}
        self._unportable: dict[int, str] = {}
        self._indents: list[int] = []  # of the block mappings and lists around a value
        self._resolver: Any = _AnyVersionResolver()

    def read(self) -> YamlDocument:
        try:
            return self._document()
        except yaml.MarkedYAMLError as error:
            line = error.problem_mark.line if error.problem_mark else self._parser.line
            raise InvalidYamlDocument(self._first_line + line, self._describe(error)) from None
        except (ValueError, OverflowError):  # an escape beyond Unicode
            raise InvalidYamlDocument(
                self._first_line + self._parser.line, "malformed escape in a quoted value"
            ) from None

    def _document(self) -> YamlDocument:
        self._next()  # the start of the stream
        start = self._next()
        if isinstance(start, yaml.StreamEndEvent):
            raise InvalidYamlDocument(self._first_line, "empty; must be a mapping of keys to values")
        if self._text.startswith("%", start.start_mark.index):
            raise self._refuse(start, "a directive is not allowed")
        root = self._next()
        if not isinstance(root, yaml.MappingStartEvent):
            raise self._refuse(root, "must be a mapping of keys to values")
        content: dict[str, Any] = self._value(root, ())
        self._next()  # the end of the document
        if not isinstance(end := self._next(), yaml.StreamEndEvent):
            raise self._refuse(end, "a second document is not allowed")
        return YamlDocument(content, self._lines, self._ambiguous, self._unportable)

    def _value(self, event: Any, path: YamlPath) -> Any:
        self._check_node(event)
        self._lines.setdefault(path, self._line(event))
        if isinstance(event, yaml.ScalarEvent):
            tag = self._resolver.resolve(yaml.ScalarNode, event.value, event.implicit)
            if kind := _KINDS.get(tag.rpartition(":")[2]):
                self._ambiguous[path] = kind
            if event.style in {'"', "'"}:
                self._check_layout(event, event)
            return self._scalar(event)
        if len(path) >= DEPTH_LIMIT:
            raise self._refuse(event, f"nested more than {DEPTH_LIMIT} levels")
        if event.flow_style:
            found, end = self._collection(event, path)
            self._check_layout(event, end)
            return found
        self._indents.append(event.start_mark.column)
        found, _ = self._collection(event, path)
        self._indents.pop()
        return found

    def _collection(self, event: Any, path: YamlPath) -> tuple[Any, Any]:
        """Return the value, and the event of its end."""
        return self._mapping(path) if isinstance(event, yaml.MappingStartEvent) else self._sequence(path)

    def _check_layout(self, start: Any, end: Any) -> None:
        """Note what PyYAML reads in a quoted text or in brackets, and readers of YAML 1.2 do not (8.1, 6.6)."""
        text, line = self._text, self._first_line + end.end_mark.line
        if text.startswith("#", end.end_mark.index):
            self._unportable[line] = "a comment needs a blank before `#`"
        if not self._indents:
            return
        for number in range(start.start_mark.line + 1, end.end_mark.line + 1):
            content = self._source_lines[number].lstrip(" ")
            indent = len(self._source_lines[number]) - len(content)
            is_end = indent == self._indents[-1] and content.startswith(("}", "]")) and start is not end
            if content.strip() and indent <= self._indents[-1] and not is_end:
                reason = "a line of a quoted text or of brackets must be indented"
                self._unportable.setdefault(self._first_line + number, reason)

    def _mapping(self, path: YamlPath) -> tuple[dict[str, Any], Any]:
        found: dict[str, Any] = {}
        while not isinstance(event := self._next(), yaml.MappingEndEvent):
            self._check_node(event)
            if not isinstance(event, yaml.ScalarEvent):
                raise self._refuse(event, "a key must be text")
            key = self._scalar(event)
            if key in found:
                raise self._refuse(event, f"the key `{key[:40]}` stands twice")
            if key == "<<":
                raise self._refuse(event, "a merge key is not allowed")
            self._lines[*path, key] = self._line(event)
            found[key] = self._value(self._next(), (*path, key))
        return found, event

    def _sequence(self, path: YamlPath) -> tuple[list[Any], Any]:
        found: list[Any] = []
        while not isinstance(event := self._next(), yaml.SequenceEndEvent):
            found.append(self._value(event, (*path, len(found))))
        return found, event

    def _scalar(self, event: yaml.ScalarEvent) -> str:
        try:  # JSON writes what is beyond 16 bits as two surrogates
            text = event.value.encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeError:
            raise self._refuse(event, "half of a surrogate pair in a quoted value") from None
        if text != event.value:
            self._unportable[self._line(event)] = "write the character instead of the escapes of its two halves"
        if found := _UNPRINTABLE.search(text):
            raise self._refuse(event, f"control character U+{ord(found[0]):04X} in a quoted value")
        return text

    def _check_node(self, event: Any) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise self._refuse(event, "an alias is not allowed; quote a value that begins with `*`")
        if event.anchor is not None:
            raise self._refuse(event, "an anchor is not allowed; quote a value that begins with `&`")
        if event.tag is not None:
            raise self._refuse(event, "a tag is not allowed; quote a value that begins with `!`")

    def _next(self) -> Any:
        event: Any = self._parser.get_event()
        self._events += 1
        if self._events > EVENT_LIMIT:
            raise self._refuse(event, f"more than {EVENT_LIMIT // 2} keys and values")
        return event

    def _line(self, event: Any) -> int:
        return self._first_line + int(event.start_mark.line)

    def _refuse(self, event: Any, reason: str) -> InvalidYamlDocument:
        return InvalidYamlDocument(self._line(event), reason)

    def _describe(self, error: yaml.MarkedYAMLError) -> str:
        problem = error.problem or "malformed"
        if problem == "mapping values are not allowed here":
            return "`: ` inside an unquoted value; quote the value"
        if not error.context or not error.context_mark:
            return problem
        return f"{error.context} of line {self._first_line + error.context_mark.line}, {problem}"
