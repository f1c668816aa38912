"""What else the machine did during a measurement: CPU time of other programs, load average, and CPU steal."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.process_tree import find_descendants

_TICKS = os.sysconf("SC_CLK_TCK")
_SHORTEST_SECONDS = 0.5
"""Rows that come faster were measured together."""


class Conditions(NamedTuple):
    """The state of the machine during a measurement.

    load: the load average of one minute, which counts the benchmark's own processes. other_cpus: how many CPUs other
    programs used. steal: percent of the CPU time that the hypervisor gave to other machines.
    """

    load: float
    other_cpus: float
    steal: float


class _CpuTimes(NamedTuple):
    at: float
    busy: float
    steal: float
    total: float
    own: float


class MachineWatch:
    """Measures the conditions since the last measurement, from the CPU times of the kernel."""

    def __init__(self, root: int) -> None:
        self._root, self._last = root, _read_times(root)
        self._conditions: Conditions | None = None

    def measure(self) -> Conditions:
        """Return the conditions since the last call; rows that were measured together have the same."""
        if self._conditions is None or time.monotonic() - self._last.at >= _SHORTEST_SECONDS:
            last, now = self._last, _read_times(self._root)
            others = max(0.0, now.busy - last.busy - (now.own - last.own)) / (now.at - last.at)
            steal = 100 * (now.steal - last.steal) / max(now.total - last.total, 1 / _TICKS)
            self._last, self._conditions = now, Conditions(os.getloadavg()[0], others, steal)
        return self._conditions


def _read_times(root: int) -> _CpuTimes:
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:9]
    user, nice, system, idle, wait, interrupts, soft, steal = _seconds(fields)
    busy = user + nice + system + interrupts + soft
    own = sum(process.cpu_seconds for process in find_descendants(root))
    return _CpuTimes(time.monotonic(), busy, steal, busy + idle + wait + steal, own)


def _seconds(ticks: Sequence[str]) -> Sequence[float]:
    return [int(value) / _TICKS for value in ticks]
