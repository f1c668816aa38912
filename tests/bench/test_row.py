"""Rows: the figure of several runs, the goal, and what is refused."""

import pytest

from bench.row import Row


def test_value_is_the_median_of_the_runs() -> None:
    row = Row("read", [9.0, 3.0, 4.0], "ms", "peer", [2.0, 1.0, 4.0], "<= 4 x")
    assert (row.value, row.reference_value, row.spread) == (4.0, 2.0, (3.0, 9.0))
    assert (list(row.ratios), row.ratio) == ([4.5, 3.0, 1.0], 3.0), "runs in turns are compared in pairs"


@pytest.mark.parametrize(
    ("goal", "is_met"),
    [
        ("<= 2 x", True),
        ("< 2 x", False),
        (">= 2.5 x", False),
        ("<= 4 ms", True),
        ("> 4 ms", False),
        ("= 4 ms", True),
        ("", None),
    ],
)
def test_goal_limits_the_ratio_or_the_figure(goal: str, *, is_met: bool | None) -> None:
    assert Row("read", 4.0, "ms", "peer", 2.0, goal).is_met is is_met


def test_goal_of_a_ratio_to_nothing_is_open() -> None:
    row = Row("late frames", 1.0, "%", "empty page", 0.0, "<= 2 x")
    assert (row.ratio, row.is_met, list(row.ratios)) == (None, None, [])


@pytest.mark.parametrize("goal", ["within 10 x", "<= 4", "<= 4 s", "fast", "<= x"])
def test_goal_that_no_program_can_check_is_refused(goal: str) -> None:
    with pytest.raises(ValueError, match="a goal is"):
        Row("read", 4.0, "ms", "peer", 2.0, goal)


def test_ratio_without_a_reference_is_refused() -> None:
    with pytest.raises(ValueError, match="a goal is"):
        Row("read", 4.0, "ms", goal="<= 4 x")
    with pytest.raises(ValueError, match="a reference has"):
        Row("read", 4.0, "ms", "peer")


@pytest.mark.parametrize("measured", [[], float("nan"), [1.0, float("inf")]])
def test_figures_that_are_none_are_refused(measured: list[float]) -> None:
    with pytest.raises(ValueError, match="finite"):
        Row("read", measured, "ms")
