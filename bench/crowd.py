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
from threading import Barrier

from bench.agents import AGENT_NICE, run_alone, start_alone
from bench.row import Row
from bench.timing import measure_seconds, take_turns
from roost import app, config
from roost.drivers.engine.contract import Engine
from tests.journeys.server_process import ServerProcess, up

_FIRST_PORT = 18_600  # of engines that start at once
_AGENTS, _STARTS, _READS = 20, 5, 400
_SHORTFALL = (
    "As many starts of the engine alone, at once, take what the last reference says; the rest is what Roost adds to "
    "each: container, warden and records."
)
_PAUSE_SECONDS = 0.05  # without it, reading alone would take a processor from the creations
_CREATE_SECONDS = 720  # as long as the server waits, beside programs that take the processors


def run(folder: Path) -> Iterator[Row]:
    engines = app.create_engines(config.load_settings({**os.environ, "ROOST_DATA": str(folder)}))
    (hermes,) = (engine for engine in engines if engine.id == "hermes")
    own, yielding = take_turns(partial(start_alone, hermes), partial(start_alone, hermes, AGENT_NICE), runs=_STARTS)
    together = _start_together(hermes)
    share = _AGENTS / len(os.sched_getaffinity(0))
    compiled = {"PYTHONDONTWRITEBYTECODE": ""}  # as an installed server is
    with up(folder / "data", "--no-first-agent", **compiled) as server, ThreadPoolExecutor(_AGENTS) as executor:
        with server.client() as client:
            read = partial(client.get, "/v0/agents")
            idle = _read_latencies(read, lambda count: count < _READS)
            began = time.perf_counter()
            creations = [executor.submit(_create, server, f"a{number}", hermes.id) for number in range(_AGENTS)]
            busy = _read_latencies(read, lambda _count: not all(map(Future.done, creations)))
            took = time.perf_counter() - began
        failures = sum(creation.exception() is not None for creation in creations)
    best, beside_others = ([seconds * share for seconds in runs] for runs in (own, yielding))
    name = f"{_AGENTS} creations of Hermes at once, until all answer"
    others = {"own starts at the priority of agents": beside_others, "own starts, all at once": together}
    yield Row(name, took, "s", "own starts", best, "<= 1 x", others, _SHORTFALL)
    yield Row("failed creations", failures, "agents", goal="= 0 agents")
    name = "list of agents, during the creations"
    yield Row(f"{name}, p50", statistics.median(busy), "ms", "idle", statistics.median(idle))
    yield Row(f"{name}, p99", _percentile_99(busy), "ms", "idle", _percentile_99(idle), "<= 5 x")


def _start_together(engine: Engine) -> float:
    """Return the seconds until as many engines without Roost are ready, all of which run until then."""
    ready = Barrier(_AGENTS)

    def start(number: int) -> None:
        with run_alone(engine, nice=AGENT_NICE, port=_FIRST_PORT + number):
            ready.wait(_CREATE_SECONDS)

    with ThreadPoolExecutor(_AGENTS) as executor:
        return measure_seconds(lambda: list(executor.map(start, range(_AGENTS))))


def _create(server: ServerProcess, name: str, engine: str) -> None:
    with server.client() as client:
        body = {"name": name, "engine": engine}
        client.post("/v0/agents", json=body, timeout=_CREATE_SECONDS).raise_for_status()


def _read_latencies(read: Callable[[], object], goes_on: Callable[[int], bool]) -> Sequence[float]:
    """Return the latencies of requests in milliseconds, one request after the other."""
    times: list[float] = []
    while goes_on(len(times)):
        began = time.perf_counter()
        read()
        times.append((time.perf_counter() - began) * 1000)
        time.sleep(_PAUSE_SECONDS)
    return times


def _percentile_99(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=100, method="inclusive")[98]
