"""Curves: how the cost of a piece of work grows with what is stored, and whether that is as it should be."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs/reference/scale.md"
_HEAD = """# Cost as work grows

Written by `make bench-scale` on {date}, on a machine with {machine}.

Each figure is processor time of the server, which other programs of a machine change less than the time on a clock: the
median of three starts (one where each agent is started), the least of five runs of requests and checks. Waiting for
the disk is not part of it. One program answers in place of all agents' containers. Figures of agents in a cluster are
those of 20 seconds, in which 0.1 % of the agents fail each second and are started again.

The growth from a size to the next is the exponent of the size: 0 is the same cost, 1 is ten times the cost at ten
times the size. A curve is as it should be if no growth is above {flat} (flat), {logarithmic} (logarithmic) or {linear}
(linear). A cost counts at most as much as any larger size costs: a peak that a larger size does not have is noise.
[Benchmarks](../builders/benchmarks.md#how-costs-grow) says how to measure.
{met} of {judged} curves are.
"""


class Kind(StrEnum):
    """How a cost should grow."""

    FLAT = "flat"
    LOGARITHMIC = "logarithmic"
    LINEAR = "linear"


TOLERATED: Mapping[Kind, float] = {Kind.FLAT: 0.15, Kind.LOGARITHMIC: 0.25, Kind.LINEAR: 1.15}
"""The largest exponent of a kind, with a margin for noise: 0.15 is 1.4 times the cost at ten times the size."""


@dataclass
class Curve:
    """Milliseconds of a piece of work by the number of what is stored; `note` says why it grows as it does.

    unit: where it is another one; the curves of a table have the same, or each names its own.
    """

    name: str
    stored: str
    kind: Kind
    note: str = ""
    points: dict[int, float] = field(default_factory=dict[int, float])
    unit: str = "milliseconds"

    @property
    def growth(self) -> Sequence[float]:
        """The exponent between each size and the next."""
        return _exponents(sorted(self.points.items()))

    @property
    def is_met(self) -> bool:
        """Judge each growth, without peaks that a larger size does not have; a curve that never falls has none."""
        largest_first = sorted(self.points.items(), reverse=True)
        costs = itertools.accumulate((cost for _, cost in largest_first), min)
        points = sorted(zip((size for size, _ in largest_first), costs, strict=True))
        return all(exponent <= TOLERATED[self.kind] for exponent in _exponents(points))


def _exponents(points: Sequence[tuple[int, float]]) -> Sequence[float]:
    pairs = itertools.pairwise(points)
    return [math.log(last / first) / math.log(many / few) for (few, first), (many, last) in pairs]


def write_page(curves: Sequence[Curve], date: str, machine: str, page: Path = PAGE) -> None:
    """Write the page: a table for each kind of what is stored, then the notes."""
    tolerated = {kind.value: limit for kind, limit in TOLERATED.items()}
    met = sum(curve.is_met for curve in curves)
    lines = [_HEAD.format(date=date, machine=machine, met=met, judged=len(curves), **tolerated)]
    for stored in dict.fromkeys(curve.stored for curve in curves):
        found = [curve for curve in curves if curve.stored == stored]
        sizes = sorted({size for curve in found for size in curve.points})
        lines += [
            f"## {stored.capitalize()}\n",
            _row(found[0].unit, *map("{:,}".format, sizes), "growth", "should be", "is"),
        ]
        lines.append(_row(*["---"] * (len(sizes) + 4)))
        for curve in found:
            figures = [_figure(curve.points.get(size)) for size in sizes]
            growth = ", ".join(map("{:.2f}".format, curve.growth))
            lines.append(_row(curve.name, *figures, growth, curve.kind, "yes" if curve.is_met else "**no**"))
        lines += ["", *(f"- {curve.name}: {curve.note}" for curve in found if curve.note), ""]
    page.write_text("\n".join(lines).rstrip().replace("\n\n\n", "\n\n") + "\n")


def _row(*cells: str) -> str:
    return "| " + " | ".join(cells) + " |"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
