"""Comparison of two results: what is beyond the spread of the runs, by the ratio where there is one."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bench.compare import compare_results, main
from bench.machine import Conditions
from bench.report import Report
from bench.row import Row

QUIET, BUSY = Conditions(0.1, 0.0, 0.0), Conditions(30.0, 1.9, 2.0)


def results(folder: Path, rows: Sequence[Row], failure: str = "", conditions: Conditions = QUIET) -> Path:
    report = Report(folder / f"{len(list(folder.iterdir()))}.json")
    for row in rows:
        report.add_row("api", row, conditions)
    if failure:
        report.add_failure("api", failure, conditions)
    return report.path


def verdicts(old: Path, new: Path) -> dict[str, str]:
    read: list[Any] = [json.loads(path.read_text()) for path in (old, new)]
    return {comparison.name: comparison.verdict for comparison in compare_results(*read)}


@pytest.mark.parametrize(
    ("unit", "new", "verdict"),
    [
        ("ms", [7.0, 8.0, 9.0], "WORSE"),
        ("ms", [1.0, 2.0, 2.5], "better"),
        ("ms", [5.0, 8.0, 9.0], "within the spread"),
        ("MB/s", [7.0, 8.0, 9.0], "better"),
        ("MB/s", [1.0, 2.0, 2.5], "WORSE"),
        ("ms", [8.0], "unknown: one run"),
    ],
)
def test_difference_is_judged_by_the_spread(tmp_path: Path, unit: str, new: list[float], verdict: str) -> None:
    old, now = (results(tmp_path, [Row("read", runs, unit)]) for runs in ([3.0, 4.0, 6.0], new))
    assert verdicts(old, now) == {"api: read": verdict}


def test_ratio_counts_where_the_reference_is_the_same(tmp_path: Path) -> None:
    """A machine that is twice as slow makes no row worse."""
    old = results(tmp_path, [Row("read", [3.0, 4.0, 5.0], "ms", "hello", [1.0, 1.0, 1.0])])
    slow = results(tmp_path, [Row("read", [6.2, 8.0, 9.9], "ms", "hello", [2.0, 2.0, 2.0])], conditions=BUSY)
    other = results(tmp_path, [Row("read", [6.2, 8.0, 9.9], "ms", "nginx", [2.0, 2.0, 2.0])])
    assert verdicts(old, slow) == {"api: read": "within the spread"}
    assert verdicts(old, other) == {"api: read": "WORSE"}


def test_failures_and_missing_rows_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    read, write = Row("read", [1.0, 2.0], "ms"), Row("write", [1.0, 2.0], "ms")
    old, new = results(tmp_path, [read, write]), results(tmp_path, [read], "the disk is full")
    assert verdicts(old, new) == {"api: read": "within the spread", "api: api": "FAILED", "api: write": "only in one"}
    assert main(str(old), str(new)) == 1
    assert "failed: the disk is full" in capsys.readouterr().out


def test_both_figures_stand_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old = results(tmp_path, [Row("read", [3.0, 4.0, 5.0], "ms", "hello", [1.0, 1.0, 1.0])])
    new = results(tmp_path, [Row("read", [1.0, 2.0, 2.5], "ms", "hello", [1.0, 1.0, 1.0])], conditions=BUSY)
    capsys.readouterr()
    assert main(str(old), str(new)) == 0
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("api: read")]
    for text in ("4 ms (3..5), 4.00 x hello", "2 ms (1..2.5), 2.00 x hello", "-50% ratio", "better", "0.0 -> 1.9"):
        assert text in line
