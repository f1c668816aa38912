"""The page of figures: rows in the order of the benchmarks, with what misses its goal and why."""

from pathlib import Path

from bench.figures import write_page
from bench.machine import Conditions
from bench.report import Report
from bench.row import Row

TARGETS = {"row": "bench.row:run", "machine": "bench.machine:run"}
QUIET = Conditions(0.1, 0.0, 0.0)


def test_a_result_is_written_as_a_page(tmp_path: Path) -> None:
    report = Report(tmp_path / "results.json")
    report.add_failure("machine", "no disk\nTraceback", QUIET)
    shortfall = "Python's start is 5 ms of it"
    report.add_row(
        "row", Row("start", [5.0, 6.0, 9.0], "ms", "bare", [1.0, 1.0, 1.0], "<= 4 x", shortfall=shortfall), QUIET
    )
    report.add_row("row", Row("import", [1234.5], "MB/s", goal=">= 5 MB/s", shortfall="never shown"), QUIET)
    report.finish()
    write_page(report.results, TARGETS, tmp_path / "figures.md")
    page = (tmp_path / "figures.md").read_text()
    assert "1 of 2 goals are met." in page
    assert page.index("## row\n\nThe row of a result") < page.index("## machine")
    assert "| start | 6 ms (5 to 9) | bare: 1 ms | 6.00 x | &lt;= 4 x | **no** |" in page
    assert "| import | 1,234 MB/s |  |  | >= 5 MB/s | yes |\n\n- start: Python's start is 5 ms of it\n" in page
    assert "It failed: no disk\n" in page
    assert "never shown" not in page
