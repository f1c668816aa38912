"""Reads YAML as Hermes reads it: `python3 -I container_yaml.py ORDER`, in an agent's container, by Hermes's own Python.

ORDER is `show`, `check` or `restore`; on standard input comes JSON `{"text", "before"}`, and out goes JSON. It runs in
the container because its input may be expensive to read; its answer is trusted no more than the agent itself.

Secrets are known by the names of their keys. They are replaced, and put back, in the text itself, so that comments and
order stay.
"""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any, cast

import yaml

PLACEHOLDER = "__ROOST_REDACTED__"
_SECRET = re.compile(
    r"(?i)(^|[_-])(key|api_?key|access_?key|private_?key|token|secret|password|passwd|passphrase|authorization)$"
)
_DEEPEST = 64
_MOST_NODES = 50_000  # with what aliases stand for: a few lines can stand for billions
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Path = tuple[object, ...]


class InvalidYaml(Exception):  # noqa: N818 - what it is
    """No YAML, or none that anybody needs."""


def main(order: str, asked: dict[str, str]) -> dict[str, object]:
    try:
        if order == "show":
            return {"text": _shown(asked["text"])}
        text = _restored(asked["text"], asked["before"]) if order == "restore" else asked["text"]
        if text is None:
            return {"valid": False, "readable": True, "output": f"{PLACEHOLDER} stands where there is nothing to keep"}
        return _judged(text)
    except (InvalidYaml, yaml.YAMLError, RecursionError, ValueError) as error:
        output = str(error) or "Nested too deeply"
        return {"valid": False, "readable": False, "output": output}


def _judged(text: str) -> dict[str, object]:
    _composed(text)
    value = yaml.load(text, Loader=_LOADER)  # noqa: S506 - a safe one
    if value is not None and not isinstance(value, dict):
        kind = type(value).__name__
        return {"valid": False, "readable": True, "output": f"<root>: a mapping is expected, this is a {kind}"}
    return {"valid": True, "readable": True, "output": "Valid", "text": text}


def _shown(text: str) -> str:
    """The text with placeholders for secrets; nothing of one that cannot be read."""
    secrets = [node for path, node in _scalars(_composed(text)) if _is_secret(path, node)]
    return _replaced(text, [(*_span(text, node), _hidden(node)) for node in secrets])


def _restored(text: str, before: str) -> str | None:
    """The text with the earlier values for placeholders, or None where one has none."""
    asked = [(path, node) for path, node in _scalars(_composed(text)) if node.value == PLACEHOLDER]
    if not asked:
        return text
    known = {path: node for path, node in _scalars(_composed(before)) if _is_secret(path, node)}
    if any(path not in known for path, _ in asked):
        return None
    return _replaced(text, [(*_span(text, node), _lexeme(known[path])) for path, node in asked])


def _composed(text: str) -> Any:
    _look_at_depth(text)
    try:
        node = cast("Any", yaml.compose(text, Loader=_LOADER))  # pyright: ignore[reportUnknownMemberType] - its stubs say no more
    except AttributeError:  # the reader's own for some broken documents
        raise InvalidYaml("No YAML") from None
    if node is not None and _size(node, {}, 0) > _MOST_NODES:
        raise InvalidYaml(f"More than {_MOST_NODES} values, counting those that aliases stand for")
    return node


def _look_at_depth(text: str) -> None:
    """Before anything reads it that calls itself for each level."""
    depth = 0
    for event in cast("Iterator[Any]", yaml.parse(text, Loader=_LOADER)):  # pyright: ignore[reportUnknownMemberType] - its stubs say no more
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise InvalidYaml(f"Nested more than {_DEEPEST} deep")


def _size(node: Any, sizes: dict[int, int], depth: int) -> int:
    if depth > _DEEPEST:
        raise InvalidYaml(f"Nested more than {_DEEPEST} deep")
    if id(node) not in sizes:
        sizes[id(node)] = _MOST_NODES + 1  # what contains itself is endless
        sizes[id(node)] = 1 + sum(_size(inner, sizes, depth + 1) for inner in _children(node))
    return sizes[id(node)]


def _children(node: Any) -> Iterator[Any]:
    if isinstance(node, yaml.MappingNode):
        for pair in node.value:
            yield from pair
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _scalars(node: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that is no collection, with the keys and places that lead to it."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield from _scalars(value, (*path, key.value if isinstance(key, yaml.ScalarNode) else None))
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            yield from _scalars(value, (*path, place))
    elif isinstance(node, yaml.ScalarNode):
        yield path, node


def _is_secret(path: Path, node: Any) -> bool:
    """A reference to a variable is none."""
    names = [part for part in path if isinstance(part, str)]
    return bool(names and node.value and _SECRET.search(names[-1])) and not re.fullmatch(r"\$\{\w+\}", node.value)


def _span(text: str, node: Any) -> tuple[int, int]:
    """Where the value stands, without the line ends that a block of text takes with it."""
    start, end = node.start_mark.index, node.end_mark.index
    return start, start + len(text[start:end].rstrip())


def _hidden(node: Any) -> str:
    """A placeholder, quoted as the value is: what was JSON stays JSON."""
    quote = node.style if node.style in ("'", '"') else ""
    return f"{quote}{PLACEHOLDER}{quote}"


def _lexeme(node: Any) -> str:
    """The value in a form that can stand anywhere."""
    return json.dumps(node.value) if node.tag == "tag:yaml.org,2002:str" else str(node.value)


def _replaced(text: str, parts: list[tuple[int, int, str]]) -> str:
    made: list[str] = []
    end = 0
    for start, stop, instead in sorted(set(parts)):  # an alias leads to a value that was met before
        if start >= end:
            made += [text[end:start], instead]
            end = stop
    return "".join([*made, text[end:]])


if __name__ == "__main__":
    json.dump(main(sys.argv[1], json.load(sys.stdin)), sys.stdout)
