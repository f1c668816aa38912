"""Durations of actions. Actions that are compared take turns, so that other work of the machine meets them all."""

import statistics
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

RUNS = 5


def measure_seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def median_ms(action: Callable[[], object], rounds: int, *, warm: int = 1) -> float:
    """Return the median duration of `action` in milliseconds."""
    for _ in range(warm):
        action()
    return statistics.median(measure_seconds(action) * 1000 for _ in range(rounds))


def take_turns(*measurements: Callable[[], float], runs: int = RUNS) -> Sequence[Sequence[float]]:
    """Return the runs of each measurement."""
    rounds = [[measure() for measure in measurements] for _ in range(runs)]
    return list(zip(*rounds, strict=True))


def split_runs(values: Sequence[float]) -> Sequence[Sequence[float]]:
    """Split many values, in the order of their measurement, into runs of the same size; leave out a rest."""
    size = len(values) // RUNS
    return [values[number * size : (number + 1) * size] for number in range(RUNS)]


def percentile_95(values: Sequence[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]


def time_in_turns(
    *actions: Callable[[], object], rounds: int, warm: int = 1, runs: int = RUNS
) -> Sequence[Sequence[float]]:
    """Return the runs of each action: medians of `rounds` durations, in milliseconds."""
    for action in actions:
        for _ in range(warm):
            action()
    return take_turns(*(partial(median_ms, action, rounds, warm=0) for action in actions), runs=runs)


async def time_in_turns_async(
    *actions: Callable[[], Awaitable[object]], rounds: int, warm: int = 1, runs: int = RUNS
) -> Sequence[Sequence[float]]:
    """Return the runs of each action: medians of `rounds` durations, in milliseconds."""
    for action in actions:
        for _ in range(warm):
            await action()
    times = [[await _async_median_ms(action, rounds) for action in actions] for _ in range(runs)]
    return list(zip(*times, strict=True))


async def _async_median_ms(action: Callable[[], Awaitable[object]], rounds: int) -> float:
    durations: list[float] = []
    for _ in range(rounds):
        began = time.perf_counter()
        await action()
        durations.append((time.perf_counter() - began) * 1000)
    return statistics.median(durations)
