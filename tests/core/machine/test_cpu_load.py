from pathlib import Path

import pytest

from roost.core.machine import cpu_load


@pytest.mark.parametrize(
    ("content", "is_pressed"),
    [
        ("some avg10=92.44 avg60=1.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n", True),
        ("some avg10=12.00 avg60=99.00 avg300=99.00 total=1\n", False),
    ],
)
def test_pressure_is_that_of_the_last_seconds(tmp_path: Path, content: str, is_pressed: bool) -> None:
    (tmp_path / "cpu").write_text(content)
    assert cpu_load.is_cpu_pressed(tmp_path / "cpu") is is_pressed


@pytest.mark.parametrize(("load", "is_pressed"), [(0.5, False), (1000.0, True)])
def test_without_pressure_the_load_average_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, load: float, is_pressed: bool
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (load, 0.0, 0.0))
    assert cpu_load.is_cpu_pressed(tmp_path / "missing") is is_pressed
