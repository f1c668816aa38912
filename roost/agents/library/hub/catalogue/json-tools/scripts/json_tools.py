"""Outline, query, compare and flatten JSON."""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("outline", "flatten"):
        commands.add_parser(name).add_argument("file")
    get = commands.add_parser("get")
    get.add_argument("file")
    get.add_argument("path")
    diff = commands.add_parser("diff")
    diff.add_argument("file")
    diff.add_argument("other")
    options = parser.parse_args()
    try:
        value = load_json(options.file)
        if options.command == "outline":
            print_outline(value)
        elif options.command == "flatten":
            for path, leaf in walk_leaves(value):
                print(f"{join_path(path)} = {json.dumps(leaf, ensure_ascii=False)}")
        elif options.command == "diff":
            return print_diff(value, load_json(options.other))
        else:
            return print_values(value, options.path)
    except (OSError, ValueError, RecursionError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def load_json(path: str) -> Any:
    text = Path(path).read_text(encoding="utf-8-sig")
    if path.endswith(".jsonl"):
        return [json.loads(line) for line in text.splitlines() if line.strip()]
    return json.loads(text)


def walk_leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    items = list_items(value)
    if not items:
        yield path, value
    for key, inner in items:
        yield from walk_leaves(inner, (*path, key))


def list_items(value: Any) -> list[tuple[str, Any]]:
    """Return the keys or indexes of a collection with their values."""
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).items())
    if isinstance(value, list):
        return [(str(index), inner) for index, inner in enumerate(cast("list[Any]", value))]
    return []


def join_path(path: tuple[str, ...]) -> str:
    return ".".join(part.replace(".", "\\.") for part in path) or "(root)"


def print_outline(value: Any) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for path, leaf in walk_leaves(value):
        general = tuple("*" if part.isdigit() else part for part in path)
        counts[join_path(general), type(leaf).__name__] += 1
    for (path, kind), count in sorted(counts.items()):
        print(f"{path}: {kind}" + (f" x {count}" if count > 1 else ""))


def print_values(value: Any, path: str) -> int:
    found = [value]
    for part in re.split(r"(?<!\\)\.", path):
        found = [inner for one in found for inner in select_items(one, part.replace("\\.", "."))]
    for one in found:
        print(one if isinstance(one, str) else json.dumps(one, ensure_ascii=False))
    return 0 if found else 1


def select_items(value: Any, part: str) -> list[Any]:
    return [inner for key, inner in list_items(value) if part in ("*", key)]


def print_diff(one: Any, other: Any) -> int:
    left, right = dict(walk_leaves(one)), dict(walk_leaves(other))
    different = [
        path for path in {**left, **right} if path not in left or path not in right or left[path] != right[path]
    ]
    for path in different:
        for sign, leaves in (("-", left), ("+", right)):
            if path in leaves:
                print(f"{sign} {join_path(path)} = {json.dumps(leaves[path], ensure_ascii=False)}")
    if not different:
        print("equal")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
