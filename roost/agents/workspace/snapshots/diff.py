"""Differences of two trees, and of two texts, of any content. Pure.

A text is compared line by line by Myers' algorithm ("An O(ND) Difference Algorithm and Its Variations", 1986), whose
time grows with the number of differences. Texts that take too many steps are shown as replaced between the lines that
are the same at both ends.
"""

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

DIFF_LIMIT = 512 * 1024
"""Bytes of the largest text that is compared."""
_MAX_STEPS = 1_000_000
"""Steps of one comparison, which take up to 0.3 seconds."""
_CONTEXT = 3
_BINARY = "Binary files differ\n"


@dataclass(frozen=True)
class TreeDiff:
    """Paths of files and links that differ, sorted; a mode is part of a file."""

    added: Sequence[str]
    removed: Sequence[str]
    changed: Sequence[str]

    @property
    def count(self) -> int:
        return len(self.added) + len(self.removed) + len(self.changed)

    @property
    def summary(self) -> str:
        """Summary such as "3 files changed, 1 added, 2 deleted"."""
        counts = {"changed": len(self.changed), "added": len(self.added), "deleted": len(self.removed)}
        parts = [f"{count:,} {verb}" for verb, count in counts.items() if count]
        if not parts:
            return "No files changed"
        number, verb = parts[0].split()
        return ", ".join([f"{number} {'file' if number == '1' else 'files'} {verb}", *parts[1:]])


def unified_diff(old: bytes, new: bytes, path: str) -> str:
    """Return the unified diff of two texts, empty if they are the same; it takes up to half a second.

    Content that is larger than `DIFF_LIMIT`, has a NUL or is not UTF-8 is binary: the diff only says that it differs.
    """
    if old == new:
        return ""
    before, after = _read_lines(old), _read_lines(new)
    if before is None or after is None:
        return _BINARY
    matcher = _LineMatcher(before, after)
    hunks = [_format_hunk(before, after, group) for group in matcher.get_grouped_opcodes(_CONTEXT)]
    return "".join([f"--- {_quote_path(f'a/{path}')}\n+++ {_quote_path(f'b/{path}')}\n", *hunks])


def _read_lines(data: bytes) -> Sequence[str] | None:
    """Return the lines of a text with their ends, None for anything else; only a line feed ends a line."""
    if len(data) > DIFF_LIMIT or b"\0" in data:
        return None
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop()[:-1]
    return [*lines, last] if last else lines


def _quote_path(path: str) -> str:
    """Return a path in one line; one that is not printable as a JSON string."""
    return path if path.isprintable() and '"' not in path else json.dumps(path)


def _format_hunk(old: Sequence[str], new: Sequence[str], group: Sequence[tuple[str, int, int, int, int]]) -> str:
    (_, old_begin, _, new_begin, _), (_, _, old_end, _, new_end) = group[0], group[-1]
    out = [f"@@ -{_format_range(old_begin, old_end)} +{_format_range(new_begin, new_end)} @@\n"]
    for tag, begin, end, other_begin, other_end in group:
        if tag == "equal":
            out += _prefix_lines(" ", old[begin:end])
        else:
            out += _prefix_lines("-", old[begin:end])
            out += _prefix_lines("+", new[other_begin:other_end])
    return "".join(out)


def _prefix_lines(sign: str, lines: Sequence[str]) -> Iterator[str]:
    for line in lines:
        yield f"{sign}{line}" if line.endswith("\n") else f"{sign}{line}\n\\ No newline at end of file\n"


def _format_range(begin: int, end: int) -> str:
    """Format a range of lines as POSIX says (diff -u): an empty one is named by the line before it."""
    length = end - begin
    return f"{begin + 1}" if length == 1 else f"{begin if length == 0 else begin + 1},{length}"


class _LineMatcher(difflib.SequenceMatcher[str]):
    """Matcher of lines in bounded time; the one of the library takes quadratic time or more."""

    def __init__(self, old: Sequence[str], new: Sequence[str]) -> None:
        super().__init__(autojunk=False)
        numbers: dict[str, int] = {}
        self._old = [numbers.setdefault(line, len(numbers)) for line in old]
        self._new = [numbers.setdefault(line, len(numbers)) for line in new]

    def get_matching_blocks(self) -> list[difflib.Match]:
        old, new = self._old, self._new
        head = _count_common(old, new)
        tail = _count_common(old[head:][::-1], new[head:][::-1])
        inside = _match_lines(old[head : len(old) - tail], new[head : len(new) - tail])
        return [
            difflib.Match(0, 0, head),
            *(difflib.Match(head + run.a, head + run.b, run.size) for run in inside),
            difflib.Match(len(old) - tail, len(new) - tail, tail),
            difflib.Match(len(old), len(new), 0),
        ]


def _count_common(old: Sequence[int], new: Sequence[int]) -> int:
    for count, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return count
    return min(len(old), len(new))


def _match_lines(old: Sequence[int], new: Sequence[int]) -> Sequence[difflib.Match]:
    """Return the lines that a shortest edit keeps; none if it takes too many steps to find."""
    most = len(old) + len(new)
    furthest = [0] * (2 * most + 3)  # the line of `old` that is reached on each diagonal, the lowest one first
    middle = most + 1
    trace: list[Sequence[int]] = []
    steps = 0
    for edits in range(most + 1):
        reached = furthest[middle - edits - 1 : middle + edits + 2]
        trace.append(reached)
        for diagonal in range(-edits, edits + 1, 2):
            before = _diagonal_before(reached, edits, diagonal)
            at = begin = reached[edits + 1 + before] + (before < diagonal)
            while at < len(old) and at - diagonal < len(new) and old[at] == new[at - diagonal]:
                at += 1
            furthest[middle + diagonal] = at
            if at >= len(old) and at - diagonal >= len(new):
                return _trace_back(trace, at, diagonal)
            steps += 1 + at - begin
            if steps > _MAX_STEPS:
                return ()
    return ()


def _trace_back(trace: Sequence[Sequence[int]], end: int, diagonal: int) -> Sequence[difflib.Match]:
    """Follow the edits back from the ends of both texts."""
    found: list[difflib.Match] = []
    for edits, reached in reversed(list(enumerate(trace))):
        before = _diagonal_before(reached, edits, diagonal)
        end_before = reached[edits + 1 + before]
        begin = end_before + (before < diagonal)
        if end > begin:
            found.append(difflib.Match(begin, begin - diagonal, end - begin))
        end, diagonal = end_before, before
    return found[::-1]


def _diagonal_before(reached: Sequence[int], edits: int, diagonal: int) -> int:
    """Return the diagonal before the last edit: the one above if it inserts a line, the one below if it removes one."""
    below, above = reached[edits + diagonal], reached[edits + diagonal + 2]
    inserts = diagonal == -edits or (diagonal != edits and below < above)
    return diagonal + 1 if inserts else diagonal - 1
