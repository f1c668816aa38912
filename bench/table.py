"""The rows of the result table, and its output."""

import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

RESULTS = Path(__file__).parent / "results.json"


@dataclass(frozen=True)
class Row:
    """A figure and its reference, both in `unit`; `goal` is the promise of the docs.

    others: further references, by name.
    """

    name: str
    value: float
    unit: str
    reference_name: str
    reference_value: float
    goal: str
    others: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def references(self) -> Mapping[str, float]:
        return {self.reference_name: self.reference_value, **self.others}

    @property
    def ratio(self) -> float:
        return self.value / self.reference_value if self.reference_value else float("nan")


def median_ms(action: Callable[[], object], rounds: int, *, warm: int = 1) -> float:
    """Return the median duration of `action` in milliseconds."""
    for _ in range(warm):
        action()
    times: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        action()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def report_rows(rows: Sequence[Row]) -> None:
    """Print the table and write `bench/results.json`."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("what", "measured", "reference", "ratio", "goal"):
        table.add_column(column, justify="right" if column == "ratio" else "left")
    for row in rows:
        table.add_row(
            row.name,
            f"{row.value:.4g} {row.unit}",
            "\n".join(f"{value:.4g} {row.unit}  {name}" for name, value in row.references.items()),
            f"{row.ratio:.2f}",
            row.goal,
        )
    Console(width=160).print(table)
    machine = {"cpus": os.cpu_count(), "python": platform.python_version(), "kernel": platform.release()}
    RESULTS.write_text(json.dumps({"machine": machine, "rows": [asdict(row) for row in rows]}, indent=2) + "\n")
