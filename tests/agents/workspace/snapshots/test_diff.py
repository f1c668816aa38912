"""Differences of trees and texts: what `patch` applies, in bounded time for any content."""

import random
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.agents.workspace.snapshots import diff
from roost.agents.workspace.snapshots.diff import DIFF_LIMIT, TreeDiff, unified_diff


@pytest.mark.parametrize(
    ("counts", "summary"),
    [
        ((0, 0, 0), "No files changed"),
        ((1, 0, 0), "1 file added"),
        ((0, 1, 1), "1 file changed, 1 deleted"),
        ((1234, 2, 1), "1 file changed, 1,234 added, 2 deleted"),
        ((0, 1111, 0), "1,111 files deleted"),
    ],
)
def test_the_summary_is_a_sentence(counts: tuple[int, ...], summary: str) -> None:
    assert TreeDiff(*(["x"] * count for count in counts)).summary == summary


def test_a_diff_is_as_git_shows_it() -> None:
    old = "".join(f"{number}\n" for number in range(1, 21))
    new = old.replace("3\n", "three\n", 1).replace("20\n", "20")
    assert unified_diff(old.encode(), new.encode(), "a/file.txt").splitlines() == [
        *("--- a/a/file.txt", "+++ b/a/file.txt", "@@ -1,6 +1,6 @@"),
        *(" 1", " 2", "-3", "+three", " 4", " 5", " 6"),
        *("@@ -17,4 +17,4 @@", " 17", " 18", " 19", "-20", "+20", "\\ No newline at end of file"),
    ]
    assert unified_diff(b"", b"one\n", "n").splitlines()[2:] == ["@@ -0,0 +1 @@", "+one"]
    assert unified_diff(b"same", b"same", "n") == ""


LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n", "ä\r\n", "\x0b\u2028 \n", "+++ x\n", "@@\n"]), max_size=12)


@given(LINES, LINES, LINES, LINES, st.sampled_from(["", "end"]), st.sampled_from(["", "end", "other"]))
def test_a_diff_leads_from_one_text_to_the_other(
    head: list[str], old: list[str], new: list[str], tail: list[str], old_end: str, new_end: str
) -> None:
    before, after = ("".join([*head, *some, *tail, end]) for some, end in ((old, old_end), (new, new_end)))
    assert apply_diff(before, unified_diff(before.encode(), after.encode(), "name")) == after


def apply_diff(text: str, patch: str) -> str:
    """Apply a diff without its context; every line of the old text must be as the diff says."""
    old, out, at, sign = lines_of(text), list[str](), 0, ""
    lines = iter(lines_of(patch)[2:])
    for line in lines:
        if line.startswith("@@"):
            begin, _, length = line.split()[1][1:].partition(",")
            first = int(begin) - (length != "0")
            out += old[at:first]
            at = first
        elif line.startswith("\\"):
            if sign != "-":
                out[-1] = out[-1][:-1]
        else:
            sign = line[0]
            if sign != "-":
                out.append(line[1:])
            if sign != "+":
                assert old[at].rstrip("\n") == line[1:-1]
                at += 1
    return "".join(out + old[at:])


def lines_of(text: str) -> list[str]:
    return [part + "\n" for part in text.split("\n")[:-1]] + ([last] if (last := text.rpartition("\n")[2]) else [])


def test_patch_applies_it(tmp_path: Path) -> None:
    chance = random.Random(1)
    old = [f"{chance.randint(0, 30)}\n" for _ in range(3000)]
    new = [line for line in old if chance.random() > 0.01]
    for _ in range(20):
        new.insert(chance.randrange(len(new)), "new\n")
    before, after = "".join(old).encode(), "".join(new).encode()[:-1]
    (tmp_path / "name").write_bytes(before)
    text = unified_diff(before, after, "name")
    command = ["git", "apply", "--unidiff-zero", "-"]
    subprocess.run(command, input=text.encode(), cwd=tmp_path, check=True)
    assert (tmp_path / "name").read_bytes() == after
    assert text.count("\n-") + text.count("\n+") < 80  # a short edit


@pytest.mark.parametrize("other", [b"\0", b"\xff", bytes(DIFF_LIMIT), b"x" * (DIFF_LIMIT + 1)])
def test_binary_files_are_not_shown(other: bytes) -> None:
    assert unified_diff(b"text", other, "n") == unified_diff(other, b"text", "n") == "Binary files differ\n"


@pytest.mark.parametrize("path", ["a\n+++ b", 'a"b', "caf\udce9", "\x1b[31m"])
def test_a_name_stays_in_its_line(path: str) -> None:
    text = unified_diff(b"1\n", b"2\n", path)
    assert [line[:3] for line in text.splitlines()] == ["---", "+++", "@@ ", "-1", "+2"]
    assert text.isascii()


def hostile_texts() -> dict[str, tuple[str, str]]:
    chance = random.Random(1)
    count = DIFF_LIMIT // 2

    def lines(kinds: int, number: int = count // 2) -> str:
        return "".join(f"{chance.randrange(kinds)}\n" for _ in range(number))[:DIFF_LIMIT]

    runs = ["".join("x\n" * 250 + f"{side}{number}\n" for number in range(900)) for side in "ab"]
    return {
        "other": ("a\n" * count, "b\n" * count),
        "many kinds": (lines(500), lines(500)),
        "reversed": (text := "".join(f"{number}\n" for number in range(70_000)), text[::-1]),
        "runs": (runs[0][:DIFF_LIMIT], runs[1][:DIFF_LIMIT]),
        "shifted": ("a\nb\n" * (count // 2), "b\na\n" * (count // 2)),
        "empty lines": ("\n" * DIFF_LIMIT, "x\n" + "\n" * (DIFF_LIMIT - 2)),
        "one line": ("x" * DIFF_LIMIT, "x" * (DIFF_LIMIT - 1) + "y"),
    }


@pytest.mark.parametrize(("old", "new"), hostile_texts().values(), ids=hostile_texts())
def test_any_text_takes_bounded_time_and_space(old: str, new: str) -> None:
    began = time.process_time()
    text = unified_diff(old.encode(), new.encode(), "n")
    assert time.process_time() - began < 5  # a tenth of it on an idle machine
    assert len(text) <= 2 * len(old + new) + 1000
    assert apply_diff(old, text) == new


def test_a_text_that_takes_too_many_steps_is_shown_as_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diff, "_MAX_STEPS", 10)
    old, new = "same\n1\n2\n3\n4\n5\nsame\n", "same\n2\n7\n4\n8\n6\n9\nsame\n"
    text = unified_diff(old.encode(), new.encode(), "n")
    assert [line[0] for line in text.splitlines()[3:]] == list(" -----++++++ ")
    assert apply_diff(old, text) == new
