"""Processors that this process may use, and whether tasks wait for them."""

import os
from pathlib import Path

_PRESSURE = Path("/proc/pressure/cpu")
_PRESSED_PERCENT = 50.0


def count_cpus() -> int:
    return len(os.sched_getaffinity(0))


def is_cpu_pressed(pressure: Path = _PRESSURE) -> bool:
    """Return whether tasks waited for a processor for most of the last ten seconds (PSI, else the load average)."""
    try:
        fields = dict(word.split("=") for word in pressure.read_text().splitlines()[0].split()[1:])
        return float(fields["avg10"]) > _PRESSED_PERCENT
    except (OSError, ValueError, LookupError):
        return os.getloadavg()[0] > 2 * count_cpus()
