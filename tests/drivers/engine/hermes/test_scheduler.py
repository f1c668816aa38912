"""Times in a zone, computed by the plugin in Hermes's own Python."""

import json
import subprocess
from pathlib import Path

import pytest

from roost import config
from roost.drivers.engine.hermes import driver
from roost.drivers.engine.hermes.driver import Hermes
from roost.drivers.engine.hermes.virtual_environment import TARGET

PLUGIN = Path(driver.__file__).with_name("scheduler.py")
PROGRAM = """
import importlib.util, json, sys
from datetime import datetime
spec = importlib.util.spec_from_file_location("plugin", sys.argv[1])
plugin = importlib.util.module_from_spec(spec)
spec.loader.exec_module(plugin)
times = []
for expr, zone, begin, count in json.loads(sys.argv[2]):
    at = datetime.fromisoformat(begin)
    for _ in range(count):
        at = plugin.next_cron_time(expr, zone, at)
        times.append(at.isoformat())
print(json.dumps(times))
"""
CASES = [
    ("0 9 * * *", "Europe/Berlin", "2026-07-01T00:00:00+00:00", ["2026-07-01T07:00", "2026-07-02T07:00"]),
    ("0 9 * * *", "Europe/Berlin", "2026-12-01T00:00:00+00:00", ["2026-12-01T08:00"]),
    # 02:30 is skipped on 8 March in New York: an hour later by the clock, once
    ("30 2 * * *", "America/New_York", "2026-03-08T00:00:00+00:00", ["2026-03-08T07:30", "2026-03-09T06:30"]),
    # 01:30 occurs twice on 1 November: only the first matches
    ("30 1 * * *", "America/New_York", "2026-11-01T00:00:00+00:00", ["2026-11-01T05:30", "2026-11-02T06:30"]),
    # an expression for every hour matches in both
    (
        "*/30 * * * *",
        "America/New_York",
        "2026-11-01T05:00:00+00:00",
        ["2026-11-01T05:30", "2026-11-01T06:00", "2026-11-01T06:30", "2026-11-01T07:00"],
    ),
]


@pytest.mark.engine
def test_the_next_time_in_a_zone(tmp_path: Path) -> None:
    engine = Hermes(config.load_settings().engines)
    folder = engine.folders(engine.default_version)[TARGET]
    cases = json.dumps([(expr, zone, begin, len(times)) for expr, zone, begin, times in CASES])
    result = subprocess.run(
        [folder / "bin/python3", "-c", PROGRAM, PLUGIN, cases],
        env={"HERMES_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert [at[:16] for at in json.loads(result.stdout)] == [at for *_, times in CASES for at in times]
