"""Set two results side by side: `python -m bench.compare OLD.json NEW.json`; exits with 1 if a row is worse or failed.

A row is compared by the ratio to its reference where both results have the same reference, otherwise by its figure. It
is better or worse if the runs of one result are all beyond those of the other: five runs against five do that by chance
once in 126 times.
"""

import json
import statistics
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table

from bench.report import read_row

_WIDTH = 170
_WORSE, _FAILED = "WORSE", "FAILED"
_UNKNOWN = "unknown: one run"


class Comparison(NamedTuple):
    """One row of both results, in words."""

    name: str
    old: str
    new: str
    change: str
    verdict: str
    other_cpus: str


def compare_results(old: Mapping[str, Any], new: Mapping[str, Any]) -> Sequence[Comparison]:
    """Compare the rows of two results of `bench/results.json`, in the order of the new one."""
    before, after = _by_name(old), _by_name(new)
    return [_compare(name, before.get(name), after.get(name)) for name in {**after, **before}]


def main(old: str, new: str) -> int:
    comparisons = compare_results(*(json.loads(Path(path).read_text()) for path in (old, new)))
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("what", "old", "new", "change", "verdict", "CPUs of others"):
        table.add_column(column)
    for comparison in comparisons:
        table.add_row(*comparison)
    console = Console(width=_WIDTH, highlight=False, markup=False)
    console.print(table)
    counts = Counter(comparison.verdict for comparison in comparisons)
    console.print("\n" + ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 1 if counts[_WORSE] or counts[_FAILED] else 0


def _by_name(results: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    return {f"{record['benchmark']}: {record['name']}": record for record in results["rows"]}


def _compare(name: str, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> Comparison:
    others = " -> ".join(f"{record['other_cpus']:.1f}" if record else "-" for record in (old, new))
    if old is None or new is None or old["error"] or new["error"]:
        verdict = _FAILED if new and new["error"] else "only in one"
        return Comparison(name, _describe(old), _describe(new), "", verdict, others)
    before, after = map(read_row, (old, new))
    has_ratio = before.reference_name == after.reference_name and before.ratios and after.ratios
    runs = (before.ratios, after.ratios) if has_ratio else (before.runs, after.runs)
    was, now = map(statistics.median, runs)
    change = f"{now / was - 1:+.0%} {'ratio' if has_ratio else 'figure'}" if was else ""
    verdict = _judge(*runs, is_higher_better=after.is_higher_better)
    return Comparison(name, _describe(old), _describe(new), change, verdict, others)


def _judge(old: Sequence[float], new: Sequence[float], *, is_higher_better: bool) -> str:
    if len(old) == 1 or len(new) == 1:
        return "same" if set(old) == set(new) else _UNKNOWN
    if min(new) > max(old):
        return "better" if is_higher_better else _WORSE
    if max(new) < min(old):
        return _WORSE if is_higher_better else "better"
    return "within the spread"


def _describe(record: Mapping[str, Any] | None) -> str:
    if record is None:
        return "-"
    if record["error"]:
        return f"failed: {record['error']}"
    row = read_row(record)
    spread = "{:.4g}..{:.4g}".format(*row.spread) if len(row.runs) > 1 else "one run"
    ratio = "" if row.ratio is None else f", {row.ratio:.2f} x {row.reference_name}"
    return f"{row.value:.4g} {row.unit} ({spread}){ratio}"


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: python -m bench.compare OLD.json NEW.json")
    sys.exit(main(*sys.argv[1:]))
