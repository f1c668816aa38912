"""The harness: rows as they come, failures as rows, deadlines, and Ctrl-C. Sample benchmarks run in a real process."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from bench.__main__ import BENCHMARKS
from tests.journeys.server_process import until

ROOT = Path(__file__).parents[2]


@contextmanager
def harness(folder: Path, *names: str) -> Iterator[subprocess.Popen[str]]:
    """Run sample benchmarks; end the harness with the block."""
    command = [sys.executable, "-m", "tests.bench.samples", str(folder), *names]
    environment = {**os.environ, "SAMPLE_FOLDER": str(folder), "TMPDIR": str(folder)}
    with (
        (folder / "errors").open("wb") as errors,
        subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as running,
    ):
        try:
            yield running
        finally:
            running.terminate()


def run(folder: Path, *names: str) -> tuple[int, str]:
    """Run sample benchmarks to their end; return the exit code and the table."""
    with harness(folder, *names) as running:
        output, _ = running.communicate(timeout=90)
    return running.returncode, output


def rows(folder: Path) -> list[Mapping[str, Any]]:
    return json.loads((folder / "results.json").read_text())["rows"]


def reasons(folder: Path) -> dict[str, str]:
    return {row["benchmark"]: row["error"] for row in rows(folder) if row["error"]}


def is_alive(folder: Path) -> bool:
    stat = Path("/proc", (folder / "orphan").read_text().strip(), "stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_every_benchmark_is_a_function_of_its_module() -> None:
    for name, benchmark in BENCHMARKS.items():
        module, _, function = benchmark.target.partition(":")
        source = (ROOT / module.replace(".", "/")).with_suffix(".py").read_text()
        assert f"def {function}(" in source, name


def test_docs_name_every_benchmark() -> None:
    text = (ROOT / "docs/builders/benchmarks.md").read_text()
    table = text.partition("| name |")[2].partition("\n\n")[0]
    assert re.findall(r"^\| `([a-z-]+)` \|", table, re.MULTILINE) == list(BENCHMARKS)


def test_row_has_its_figures_its_goal_and_the_state_of_the_machine(tmp_path: Path) -> None:
    code, output = run(tmp_path, "good")
    first, second = rows(tmp_path)
    assert code == 0, "a missed goal is no failure"
    assert (first["name"], first["value"], first["unit"], first["runs"]) == ("first", 2.0, "ms", [3.0, 1.0, 2.0])
    assert (first["reference_name"], first["reference_value"], first["ratio"]) == ("peer", 1.0, 2.0)
    assert (first["goal"], first["met"], second["met"]) == ("<= 4 x", True, False)
    assert all(row[key] >= 0 for row in (first, second) for key in ("load", "other_cpus", "steal"))
    assert "2 ms" in output
    assert "1..3" in output
    assert "1 beside their goal" in output


def test_rows_of_an_event_loop_come_like_others(tmp_path: Path) -> None:
    code, _ = run(tmp_path, "waits")
    assert code == 0
    assert [(row["name"], row["met"]) for row in rows(tmp_path)] == [("first", True), ("second", True)]


def test_rows_are_printed_and_written_while_the_benchmark_runs(tmp_path: Path) -> None:
    with harness(tmp_path, "good", "hangs") as running:
        until((tmp_path / "orphan").exists)
        assert [row["name"] for row in rows(tmp_path)] == ["first", "second", "before the hang"]
        assert running.stdout
        lines = [running.stdout.readline() for _ in range(4)]
        assert lines[3].startswith("before the hang")
        assert running.poll() is None


@pytest.mark.parametrize(
    ("name", "row", "reason"),
    [
        ("fails_late", "before the failure", "ValueError: the measured program is gone (tests/bench/samples.py:"),
        ("dies", "before the death", "its process ended with exit code 9"),
    ],
)
def test_failed_benchmark_is_a_row_and_the_next_one_runs(tmp_path: Path, name: str, row: str, reason: str) -> None:
    code, output = run(tmp_path, name, "good")
    assert code == 1
    assert [row["name"] for row in rows(tmp_path)] == [row, name, "first", "second"]
    assert reasons(tmp_path)[name].startswith(reason)
    assert output.count(f"{name}: failed: {reason}") == 2, "when it happens, and at the end"


def test_benchmark_that_cannot_be_imported_is_a_row(tmp_path: Path) -> None:
    code, _ = run(tmp_path, "is_missing", "good")
    assert code == 1
    assert "no attribute 'is_missing'" in reasons(tmp_path)["is_missing"]
    assert len(rows(tmp_path)) == 3


def test_failed_clean_up_does_not_hide_the_cause(tmp_path: Path) -> None:
    code, _ = run(tmp_path, "fails_twice")
    reason = reasons(tmp_path)["fails_twice"]
    assert code == 1
    assert reason.startswith("ValueError: the original cause (")
    assert "; then OSError: the server did not stop (" in reason


def test_benchmark_that_hangs_is_interrupted_and_all_it_started_ends(tmp_path: Path) -> None:
    code, _ = run(tmp_path, "times_out", "good")
    assert code == 1
    assert reasons(tmp_path)["times_out"].startswith("not finished within 2 s; then KeyboardInterrupt (tests/bench/")
    assert [row["name"] for row in rows(tmp_path)] == ["before the hang", "times_out", "first", "second"]
    assert (tmp_path / "cleaned-up").exists()
    assert not is_alive(tmp_path)


def test_benchmark_that_ignores_the_interrupt_is_killed(tmp_path: Path) -> None:
    run(tmp_path, "stays_hung", "good")
    assert reasons(tmp_path) == {"stays_hung": "not finished within 2 s; then its clean-up not finished within 1 s"}
    assert len(rows(tmp_path)) == 4
    assert not is_alive(tmp_path)


def test_process_that_a_benchmark_left_is_ended(tmp_path: Path) -> None:
    code, _ = run(tmp_path, "leaves", "good")
    assert code == 0
    assert not is_alive(tmp_path)
    assert not list(tmp_path.glob("roost-bench-*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_interrupted_run_keeps_what_was_measured(tmp_path: Path, number: signal.Signals) -> None:
    with harness(tmp_path, "good", "hangs", "good") as running:
        until((tmp_path / "orphan").exists)
        running.send_signal(number)
        output, _ = running.communicate(timeout=30)
    assert running.returncode == 130
    assert [row["name"] for row in rows(tmp_path)] == ["first", "second", "before the hang", "hangs"]
    assert reasons(tmp_path)["hangs"].startswith("interrupted; then KeyboardInterrupt")
    assert "hangs: failed: interrupted" in output
    assert (tmp_path / "cleaned-up").exists()
    assert not is_alive(tmp_path)
