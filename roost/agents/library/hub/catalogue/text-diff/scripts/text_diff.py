"""Compare texts by lines, by words, or by similarity."""

import argparse
import difflib
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("lines", "words", "rank"))
    parser.add_argument("file")
    parser.add_argument("others", nargs="+", metavar="other")
    options = parser.parse_args()
    try:
        text = read_text(options.file)
        others = {name: read_text(name) for name in options.others}
    except OSError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.command == "rank":
        ranked = sorted(((measure_similarity(text, other), name) for name, other in others.items()), reverse=True)
        for share, name in ranked:
            print(f"{share:6.1%}  {name}")
        return 0
    for name, other in others.items():
        if options.command == "lines":
            print(
                "\n".join(
                    difflib.unified_diff(text.splitlines(), other.splitlines(), options.file, name, "", "", 2, "")
                )
            )
        else:
            print("".join(mark_words(split_words(text), split_words(other))))
        print(f"similarity: {measure_similarity(text, other):.1%}")
    return 0


def read_text(path: str) -> str:
    return Path(path).read_text(encoding="utf-8", errors="replace")


def split_words(text: str) -> Sequence[str]:
    return re.findall(r"\w+|[^\w\s]", text)


def measure_similarity(one: str, other: str) -> float:
    return difflib.SequenceMatcher(None, split_words(one), split_words(other), autojunk=False).ratio()


def mark_words(one: Sequence[str], other: Sequence[str]) -> Iterator[str]:
    for kind, start, stop, other_start, other_stop in difflib.SequenceMatcher(
        None, one, other, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            words = one[start:stop]
            yield " ".join(words if len(words) < 20 else [*words[:6], "...", *words[-6:]]) + " "
        if kind in ("delete", "replace"):
            yield f"[-{' '.join(one[start:stop])}-] "
        if kind in ("insert", "replace"):
            yield f"{{+{' '.join(other[other_start:other_stop])}+}} "
    yield "\n"


if __name__ == "__main__":
    sys.exit(main())
