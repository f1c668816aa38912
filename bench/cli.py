"""The completion of a command's name, compared with the start of Python alone, by CPU time of the process.

CPU time, because other work of the machine would change the time that passes.
"""

import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.table import Row

_ROUNDS = 20
_GOAL = "typed on without a pause: within 300 ms"


def run(_folder: Path) -> Sequence[Row]:
    bare = _cpu_ms([sys.executable, "-c", "pass"])
    return [
        Row(
            f"completion of `{line}`, CPU time",
            _cpu_ms([sys.executable, "-m", "roost"], line),
            "ms",
            "Python",
            bare,
            _GOAL,
        )
        for line in ("roost ag", "roost agents l")
    ]


def _cpu_ms(command: Sequence[str], line: str = "") -> float:
    words = {"_ROOST_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    environment = {**os.environ, **(words if line else {})}
    _run(command, environment)  # compiles the modules
    return statistics.median(_run(command, environment) for _ in range(_ROUNDS))


def _run(command: Sequence[str], environment: Mapping[str, str]) -> float:
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime) * 1000
