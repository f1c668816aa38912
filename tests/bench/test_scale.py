"""Curves of costs: the exponent between sizes, the verdict, and the page."""

from pathlib import Path

import pytest

from bench.scale.curves import Curve, Kind, write_page


@pytest.mark.parametrize(
    ("kind", "last", "is_met"),
    [
        (Kind.FLAT, 1.3, True),
        (Kind.FLAT, 1.6, False),
        (Kind.LOGARITHMIC, 1.6, True),
        (Kind.LOGARITHMIC, 2.0, False),
        (Kind.LINEAR, 10.5, True),
        (Kind.LINEAR, 15.0, False),
    ],
)
def test_a_curve_is_judged_by_its_steepest_part(kind: Kind, last: float, is_met: bool) -> None:
    curve = Curve("list", "files", kind, points={1000: last, 100: 1.0, 10: 1.0})
    assert curve.is_met is is_met
    assert curve.growth[0] == 0


@pytest.mark.parametrize(
    ("costs", "is_met"),
    [
        ((2.9, 2.2, 3.5, 2.0), True),
        ((1.0, 2.0, 2.0, 2.0), False),
        ((1.0, 3.0, 2.0, 2.5), False),
        ((2.0, 1.0, 1.0, 1.5), False),
    ],
)
def test_only_a_peak_that_no_larger_size_has_is_noise(costs: tuple[float, ...], is_met: bool) -> None:
    sizes = (1000, 10_000, 100_000, 1_000_000)
    assert Curve("list", "files", Kind.FLAT, points=dict(zip(sizes, costs, strict=True))).is_met is is_met


def test_a_curve_is_a_row_of_its_table(tmp_path: Path) -> None:
    page = tmp_path / "scale.md"
    curves = [
        Curve("list", "agents", Kind.LINEAR, "all are read", {10: 1.0, 100: 10.0}),
        Curve("list", "files", Kind.FLAT, points={1000: 2.0, 10_000: 2000.0}),
    ]
    write_page(curves, "2026-01-01", "2 cores", page)
    text = page.read_text()
    assert "1 of 2 curves are." in text
    assert "| list | 1 | 10 | 1.00 | linear | yes |\n\n- list: all are read\n" in text
    assert "| list | 2 | 2,000 | 3.00 | flat | **no** |" in text
    assert text.index("## Agents") < text.index("## Files")
