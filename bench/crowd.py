"""20 creations of Hermes at once, and the latency of the API meanwhile.

The reference is what the machine needs at best: the engine's own start, once for each agent, on all processors.
"""

import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

from bench.agents import start_alone
from bench.row import Row
from roost import app, config
from tests.journeys.server_process import up

_AGENTS, _STARTS, _READS = 20, 5, 400


def run(folder: Path) -> Iterator[Row]:
    engines = app.create_engines(config.load_settings({**os.environ, "ROOST_DATA": str(folder)}))
    (hermes,) = (engine for engine in engines if engine.id == "hermes")
    own = [start_alone(hermes) for _ in range(_STARTS)]
    share = _AGENTS / len(os.sched_getaffinity(0))
    compiled = {"PYTHONDONTWRITEBYTECODE": ""}  # as an installed server is
    with up(folder / "data", "--no-first-agent", **compiled) as server, ThreadPoolExecutor(_AGENTS) as executor:
        with server.client() as client:
            read = partial(client.get, "/v0/agents")
            idle = _read_latencies(read, lambda count: count < _READS)
            began = time.perf_counter()
            creations = [executor.submit(server.create, f"a{number}", hermes.id) for number in range(_AGENTS)]
            busy = _read_latencies(read, lambda _count: not all(map(Future.done, creations)))
            took = time.perf_counter() - began
        failures = sum(creation.exception() is not None for creation in creations)
    best = [seconds * share for seconds in own]
    yield Row(f"{_AGENTS} creations of Hermes at once, until all answer", took, "s", "own starts", best, "<= 1 x")
    yield Row("failed creations", failures, "agents", goal="= 0 agents")
    name = "list of agents, during the creations"
    yield Row(f"{name}, p50", statistics.median(busy), "ms", "idle", statistics.median(idle))
    yield Row(f"{name}, p99", _percentile_99(busy), "ms", "idle", _percentile_99(idle), "<= 5 x")


def _read_latencies(read: Callable[[], object], goes_on: Callable[[int], bool]) -> Sequence[float]:
    """Return the latencies of requests in milliseconds, one request after the other."""
    times: list[float] = []
    while goes_on(len(times)):
        began = time.perf_counter()
        read()
        times.append((time.perf_counter() - began) * 1000)
    return times


def _percentile_99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]
