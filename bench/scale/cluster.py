"""What each agent costs a server whose agents are pods, by their number, while some of them fail and are started again.

The server, PostgreSQL and the watch of the pods are real, the API server is the tests' fake with pods as objects only,
and one program answers as all wardens, over a bridge with TLS for each.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from bench.scale.bulk import open_in_bulk
from bench.scale.curves import Curve, Kind
from bench.scale.records import add_agents
from tests.support.databases import postgres_copy, run_postgres

STORED = "agents in a cluster"
_CHANGED_SHARE, _SECONDS = 0.001, 20.0
_ROOT = Path(__file__).parents[2]


class _Figure(NamedTuple):
    """A curve; `scale` makes its figure of what the server measured, for so many agents."""

    name: str
    measured: str
    kind: Kind
    scale: Callable[[float, int], float]
    note: str = ""


_FIGURES = (
    _Figure("processor time for each agent and second, ms", "cpu", Kind.FLAT, lambda value, size: value * 1000 / size),
    _Figure("memory for each agent, KiB", "memory", Kind.FLAT, lambda value, size: value / 1024 / size),
    _Figure("SQL statements a second", "statements", Kind.LINEAR, lambda value, _: value),
    _Figure("agents that wait for their start at the end", "waiting", Kind.LINEAR, lambda value, _: value),
    _Figure("requests to the API server a second", "requests", Kind.LINEAR, lambda value, _: value),
    _Figure(
        "processor time of the start for each agent, ms", "start", Kind.FLAT, lambda value, size: value * 1000 / size
    ),
)


def measure_cluster(folder: Path, sizes: Sequence[int]) -> Iterator[Curve]:
    curves = [Curve(one.name, STORED, one.kind, one.note, unit="each second") for one in _FIGURES]
    with run_postgres() as postgres:
        for size in sizes:
            with contextmanager(postgres_copy)(postgres, "template0") as url:
                measured = _measure_size(folder / f"cluster-{size}", url, size)
            for curve, figure in zip(curves, _FIGURES, strict=True):
                if value := figure.scale(measured[figure.measured], size):  # few agents do not fail in that time
                    curve.points[size] = value
                    print(f"{size:>9,} {STORED}: {figure.name}: {value:.3g}", flush=True)
    yield from curves


def _measure_size(data: Path, url: str, size: int) -> dict[str, float]:
    environment = {"ROOST_DATABASE_URL": url, "ROOST_KEK": "0" * 64}
    with open_in_bulk(data, **environment) as (connection, host_id, sealer):
        add_agents(connection, 1, size, host_id, sealer)
    argv = [sys.executable, "-m", "bench.scale.cluster_server"]
    argv += [json.dumps({"ROOST_DATA": str(data), **environment}), str(_CHANGED_SHARE), str(_SECONDS)]
    with data.with_suffix(".log").open("ab") as log:
        done = subprocess.run(argv, cwd=_ROOT, stdout=subprocess.PIPE, stderr=log, check=True)
    return json.loads(done.stdout)
