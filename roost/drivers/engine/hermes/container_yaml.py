"""Program that processes YAML like Hermes does: `python3 -I container_yaml.py show|check|restore`.

Hermes's own Python runs it in an agent's container, because its input can be expensive to parse. It reads JSON
`{"text", "before"}` from standard input and writes JSON. Its output is as untrusted as the agent.

Secrets are recognized by the names of their keys. They are replaced and restored in the text itself, which preserves
comments and order.
"""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any, cast

import yaml

PLACEHOLDER = "__ROOST_REDACTED__"
_SECRET = re.compile(
    r"(?i:(api|access|private|secret|signing)[_-]?keys?|token|secret|password|passwd|passphrase|authorization)$"
    r"|(^|[_-])(?i:key)$|[a-z0-9]Key$"
)
_MAX_DEPTH = 64
_MAX_NODES = 50_000  # including expanded aliases: a few lines can expand to billions
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Path = tuple[object, ...]


class InvalidYaml(Exception):  # noqa: N818 - the name is unambiguous
    """The text is not YAML, or too deep or too large."""


def main(command: str, request: dict[str, str]) -> dict[str, object]:
    try:
        if command == "show":
            return {"text": _redact(request["text"])}
        text = _restore(request["text"], request["before"]) if command == "restore" else request["text"]
        if text is None:
            return {"valid": False, "output": f"{PLACEHOLDER} has no present value"}
        return _check(text)
    except (InvalidYaml, yaml.YAMLError, RecursionError, ValueError) as error:
        output = str(error) or "Nested too deeply"
        return {"valid": False, "output": output}


def _check(text: str) -> dict[str, object]:
    _compose(text)
    value = yaml.load(text, Loader=_LOADER)  # noqa: S506 - it is a safe loader
    if value is not None and not isinstance(value, dict):
        return {"valid": False, "output": f"<root>: expected a mapping, got {type(value).__name__}"}
    return {"valid": True, "output": "Valid", "text": text}


def _redact(text: str) -> str:
    """Return the text with placeholders for secrets."""
    secrets = [node for path, node in _scalars(_compose(text)) if _is_secret(path, node)]
    return _replace(text, [(*_span(text, node), _quoted_placeholder(node)) for node in secrets])


def _restore(text: str, before: str) -> str | None:
    """Return the text with the values in `before` for placeholders; None if one has no value."""
    placeholders = [(path, node) for path, node in _scalars(_compose(text)) if node.value == PLACEHOLDER]
    if not placeholders:
        return text
    secrets = {path: node for path, node in _scalars(_compose(before)) if _is_secret(path, node)}
    if any(path not in secrets for path, _ in placeholders):
        return None
    return _replace(text, [(*_span(text, node), _lexeme(secrets[path])) for path, node in placeholders])


def _compose(text: str) -> Any:
    _check_depth(text)
    try:
        node = cast("Any", yaml.compose(text, Loader=_LOADER))  # pyright: ignore[reportUnknownMemberType] - incomplete stubs
    except AttributeError:  # an error of the parser for some malformed documents
        raise InvalidYaml("Not YAML") from None
    if node is not None and _size(node, {}, 0) > _MAX_NODES:
        raise InvalidYaml(f"More than {_MAX_NODES} values, including expanded aliases")
    return node


def _check_depth(text: str) -> None:
    """Limit the depth before a recursive parser reads the text."""
    depth = 0
    for event in cast("Iterator[Any]", yaml.parse(text, Loader=_LOADER)):  # pyright: ignore[reportUnknownMemberType] - incomplete stubs
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise InvalidYaml(f"Nested more than {_MAX_DEPTH} levels")


def _size(node: Any, sizes: dict[int, int], depth: int) -> int:
    if depth > _MAX_DEPTH:
        raise InvalidYaml(f"Nested more than {_MAX_DEPTH} levels")
    if id(node) not in sizes:
        sizes[id(node)] = _MAX_NODES + 1  # a node that contains itself is infinite
        sizes[id(node)] = 1 + sum(_size(inner, sizes, depth + 1) for inner in _children(node))
    return sizes[id(node)]


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _scalars(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Yield every scalar with the keys and indexes of its path."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _scalars(value, (*path, key.value if isinstance(key, yaml.ScalarNode) else None))
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            yield from _scalars(value, (*path, index))
    elif isinstance(node, yaml.ScalarNode):
        yield path, node


def _is_secret(path: Path, node: Any) -> bool:
    """Return whether the name of the value's key is a secret's, unless the value refers to a variable."""
    names = [part for part in path if isinstance(part, str)]
    return bool(names and node.value and _SECRET.search(names[-1])) and not re.fullmatch(r"\$\{\w+\}", node.value)


def _span(text: str, node: Any) -> tuple[int, int]:
    """Return the value's position in the text, without the newlines at the end of a block scalar."""
    start, end = node.start_mark.index, node.end_mark.index
    return start, start + len(text[start:end].rstrip())


def _quoted_placeholder(node: Any) -> str:
    """Return a placeholder with the quotes of the value, so that JSON stays JSON."""
    quote = node.style if node.style in ("'", '"') else ""
    return f"{quote}{PLACEHOLDER}{quote}"


def _lexeme(node: Any) -> str:
    """Return the value in a syntax that is valid in any context."""
    return json.dumps(node.value) if node.tag == "tag:yaml.org,2002:str" else str(node.value)


def _replace(text: str, replacements: list[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    end = 0
    for start, stop, new in sorted(set(replacements)):  # a value occurs again for each of its aliases
        if start >= end:
            parts += [text[end:start], new]
            end = stop
    return "".join([*parts, text[end:]])


if __name__ == "__main__":
    json.dump(main(sys.argv[1], json.load(sys.stdin)), sys.stdout)
