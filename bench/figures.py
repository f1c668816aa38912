"""Write `docs/reference/figures.md` from a result, as each whole run does: `python -m bench.figures [RESULT.json]`."""

import ast
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from bench.report import read_row
from bench.row import Row

_ROOT = Path(__file__).parent.parent
RESULTS = Path(__file__).with_name("results.json")
PAGE = _ROOT / "docs" / "reference" / "figures.md"
_HEAD = """# Figures

Written by `make bench` on {date}, in {minutes} minutes, on a machine with {machine}.

Every figure is the median of its runs, with the lowest and the highest in brackets. Its reference was measured in the
same run, in turns with it where that is possible, and the ratio is that of the pairs. Times and speeds are those of
this machine; a ratio says more about another one. [Benchmarks](../builders/benchmarks.md) says how to measure.
{met} of {goals} goals are met.
"""
_TABLE = ("| what | measured | reference | ratio | goal | met |", "|---|---|---|---|---|---|")
_MET: Mapping[bool | None, str] = {True: "yes", False: "**no**", None: ""}


def write_page(results: Mapping[str, Any], targets: Mapping[str, str], page: Path = PAGE) -> None:
    """Write the page of a result; `targets` has the `MODULE:FUNCTION` of each benchmark, in the order of the page."""
    order = list(targets)
    rows = sorted(results["rows"], key=lambda row: order.index(row["benchmark"]))
    sections = [_head(results, rows)]
    for name, group in groupby(rows, key=lambda row: row["benchmark"]):
        sections.append("\n".join([f"## {name}\n", _summary(targets[name]), "", *_section(list(group)), ""]))
    page.write_text("\n".join(sections))


def format_machine(machine: Mapping[str, Any]) -> str:
    return (
        f"{machine['cpus']} cores ({machine['processor']}), {machine['memory_gib']:.0f} GiB of memory, "
        f"Linux {machine['kernel']} and Python {machine['python']}"
    )


def _head(results: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> str:
    began, ended = (datetime.fromisoformat(results[moment]) for moment in ("began", "ended"))
    judged = [row["met"] for row in rows if row.get("met") is not None]
    minutes = f"{(ended - began).total_seconds() / 60:.0f}"
    return _HEAD.format(
        date=f"{began:%Y-%m-%d}",
        minutes=minutes,
        machine=format_machine(results["machine"]),
        met=sum(judged),
        goals=len(judged),
    )


def _section(records: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    rows = [read_row(record) for record in records if not record["error"]]
    yield from (*_TABLE, *map(_line, rows))
    for record in records:
        if record["error"]:
            yield f"\nIt failed: {record['error'].splitlines()[0]}"
    if shortfalls := [f"- {row.name}: {row.shortfall}" for row in rows if row.is_met is False and row.shortfall]:
        yield from ("", *shortfalls)


def _line(row: Row) -> str:
    measured = f"{_figure(row.value)} {row.unit}".strip()
    if len(row.runs) > 1:
        measured += " ({} to {})".format(*map(_figure, row.spread))
    beside = "; ".join(f"{name}: {_figure(value)} {row.unit}".strip() for name, value in row.references.items())
    ratio = "" if row.ratio is None else f"{row.ratio:.2f} x"
    cells = row.name, measured, beside, ratio, row.goal, _MET[row.is_met]
    # Without backticks: what is typed halfway to be completed is no command that a reader can use.
    return "| " + " | ".join(cell.replace("|", "\\|").replace("<", "&lt;").replace("`", "") for cell in cells) + " |"


def _figure(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _summary(target: str) -> str:
    """Return the first paragraph of the docstring of a benchmark's module, which is read without importing it."""
    path = _ROOT.joinpath(*target.partition(":")[0].split(".")).with_suffix(".py")
    return (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n\n")[0].replace("\n", " ")


if __name__ == "__main__":
    from bench.__main__ import BENCHMARKS

    result = Path(sys.argv[1]) if len(sys.argv) > 1 else RESULTS
    write_page(json.loads(result.read_text()), {name: benchmark.target for name, benchmark in BENCHMARKS.items()})
