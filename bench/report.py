"""The results: a line of the table for each row as it comes, and a file that is complete at any moment."""

import json
import os
import platform
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.machine import Conditions
from bench.row import Row

_COLUMNS = {
    "what": 52,
    "measured": 13,
    "lowest..highest": 16,
    "reference": 38,
    "ratio": 7,
    "goal": 11,
    "met": 3,
    "load": 5,
    "others": 6,
    "steal": 6,
}
_MET = {True: "yes", False: "NO", None: "-"}


class Report:
    """Rows of one run, printed and written as they come."""

    def __init__(self, path: Path) -> None:
        self.path, self._began = path, time.monotonic()
        self._console = Console(width=sum(_COLUMNS.values()) + 2 * len(_COLUMNS), highlight=False, markup=False)
        self._results: dict[str, Any] = {"machine": describe_machine(), "began": _now(), "ended": None, "rows": []}
        self._rows: list[dict[str, Any]] = self._results["rows"]
        self._print(show_header=True)

    @property
    def results(self) -> Mapping[str, Any]:
        """The machine, the times and the rows, as in the file."""
        return self._results

    @property
    def failures(self) -> Mapping[str, str]:
        """The reasons of failed benchmarks, by name."""
        return {row["benchmark"]: row["error"] for row in self._rows if row["error"]}

    def add_row(self, benchmark: str, row: Row, conditions: Conditions) -> None:
        record = {"benchmark": benchmark, **_row_record(row), **conditions._asdict(), "error": None}
        self._add(record)
        low, high = row.spread
        self._print(
            row.name,
            f"{row.value:.4g} {row.unit}",
            f"{low:.4g}..{high:.4g}" if len(row.runs) > 1 else "-",
            "\n".join(f"{value:.4g} {row.unit} {name}" for name, value in row.references.items()),
            "-" if row.ratio is None else f"{row.ratio:.2f}",
            row.goal or "-",
            _MET[row.is_met],
            *_conditions_cells(conditions),
        )

    def add_failure(self, benchmark: str, reason: str, conditions: Conditions) -> None:
        self._add({"benchmark": benchmark, "name": benchmark, **conditions._asdict(), "error": reason})
        self._console.print(f"{benchmark}: failed: {reason}", soft_wrap=True)

    def finish(self) -> None:
        """Print the summary, with the failures again."""
        self._results["ended"] = _now()
        if self._rows:
            self._write()
        missed = [row["name"] for row in self._rows if row.get("met") is False]
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        counts = f"{len(self._rows) - len(self.failures)} rows, {len(missed)} beside their goal"
        self._console.print(f"\n{counts}, {len(self.failures)} benchmarks failed; {minutes} min {seconds} s")
        for benchmark, reason in self.failures.items():
            self._console.print(f"{benchmark}: failed: {reason}", soft_wrap=True)

    def _add(self, record: dict[str, Any]) -> None:
        self._rows.append(record)
        self._write()

    def _write(self) -> None:
        written = self.path.with_suffix(".tmp")
        written.write_text(json.dumps(self._results, indent=2) + "\n")
        written.replace(self.path)

    def _print(self, *cells: str, show_header: bool = False) -> None:
        table = Table(box=None, pad_edge=False, header_style="bold", show_header=show_header, padding=(0, 2, 0, 0))
        for name, width in _COLUMNS.items():
            table.add_column(name, width=width, overflow="fold")
        if cells:
            table.add_row(*cells)
        self._console.print(table)


def read_row(record: Mapping[str, Any]) -> Row:
    """Return the row of a record in a result."""
    names = ("name", "runs", "unit", "reference_name", "reference_runs", "goal", "others")
    return Row(*(record[name] for name in names), shortfall=record.get("shortfall", ""))


def _row_record(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "value": row.value,
        "unit": row.unit,
        "runs": row.runs,
        "reference_name": row.reference_name,
        "reference_value": row.reference_value,
        "reference_runs": row.reference_runs,
        "ratio": row.ratio,
        "goal": row.goal,
        "met": row.is_met,
        "others": row.others,
        "shortfall": row.shortfall,
    }


def _conditions_cells(conditions: Conditions) -> tuple[str, str, str]:
    return f"{conditions.load:.1f}", f"{conditions.other_cpus:.1f}", f"{conditions.steal:.1f} %"


def describe_machine() -> dict[str, Any]:
    """Return what a result says of this machine."""
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "cpus": os.cpu_count(),
        "processor": found[1] if found else platform.machine(),
        "memory_gib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**30,
        "python": platform.python_version(),
        "kernel": platform.release(),
    }


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
