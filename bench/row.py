"""The row of a result: a figure with its runs, its reference of the same run, and its goal."""

import math
import operator
import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Runs = float | Sequence[float]
"""The figures of several runs, or of one."""

_GOAL = re.compile(r"(?P<comparison><=|>=|<|>|=) (?P<limit>\d+(\.\d+)?)( (?P<unit>\S+))?")
_COMPARISONS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt, "=": operator.eq}


@dataclass(frozen=True)
class Row:
    """Figure in `unit`, the median of its runs, beside the figures of references in the same unit.

    goal: `<= 4 x` limits the ratio to the reference, `<= 5 ms` the figure itself; without one the row only reports.
    others: further references, by name. shortfall: whose the time or the memory is, where the goal cannot be met.
    """

    name: str
    measured: Runs
    unit: str
    reference_name: str = ""
    reference: Runs = ()
    goal: str = ""
    others: Mapping[str, Runs] = field(default_factory=dict[str, Runs])
    shortfall: str = ""

    def __post_init__(self) -> None:
        if not self.runs or not all(map(math.isfinite, (*self.runs, *self.reference_runs))):
            raise ValueError(f"{self.name}: must have finite figures, got {self.measured!r} and {self.reference!r}")
        if bool(self.reference_name) != bool(self.reference_runs):
            raise ValueError(f"{self.name}: a reference has a name and a figure")
        if self.goal and ((found := _GOAL.fullmatch(self.goal)) is None or not self._has_unit(found["unit"] or "")):
            raise ValueError(f"{self.name}: a goal is a comparison, a number and `x` or the unit, got {self.goal!r}")

    @property
    def runs(self) -> Sequence[float]:
        return _as_runs(self.measured)

    @property
    def reference_runs(self) -> Sequence[float]:
        return _as_runs(self.reference)

    @property
    def value(self) -> float:
        return statistics.median(self.runs)

    @property
    def references(self) -> Mapping[str, float]:
        own: Mapping[str, Runs] = {self.reference_name: self.reference} if self.reference_name else {}
        return {name: statistics.median(_as_runs(runs)) for name, runs in {**own, **self.others}.items()}

    @property
    def reference_value(self) -> float | None:
        return statistics.median(self.reference_runs) if self.reference_runs else None

    @property
    def ratio(self) -> float | None:
        """The median ratio of the runs."""
        return statistics.median(self.ratios) if self.ratios else None

    @property
    def is_met(self) -> bool | None:
        """Whether the goal is met, or None where there is none, or no ratio to compare with it."""
        found = _GOAL.fullmatch(self.goal)
        measured = self.ratio if found and found["unit"] == "x" else self.value
        return (
            None
            if found is None or measured is None
            else _COMPARISONS[found["comparison"]](measured, float(found["limit"]))
        )

    @property
    def is_higher_better(self) -> bool:
        return self.goal.startswith(">") if self.goal else self.unit.endswith("/s")

    @property
    def spread(self) -> tuple[float, float]:
        """The lowest and the highest run."""
        return min(self.runs), max(self.runs)

    @property
    def ratios(self) -> Sequence[float]:
        """The ratio of each run; runs that took turns with the reference are compared in pairs."""
        if not self.reference_value:
            return ()
        pairs = len(self.runs) == len(self.reference_runs) and all(self.reference_runs)
        references = self.reference_runs if pairs else [self.reference_value] * len(self.runs)
        return [run / reference for run, reference in zip(self.runs, references, strict=True)]

    def _has_unit(self, unit: str) -> bool:
        return bool(self.reference_name) if unit == "x" else unit == self.unit


def _as_runs(figures: Runs) -> Sequence[float]:
    return (figures,) if isinstance(figures, int | float) else tuple(figures)
