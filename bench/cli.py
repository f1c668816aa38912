"""The completion of a command's name, compared with the start of Python alone, by CPU time of the process.

CPU time, because other work of the machine would change the time that passes.
"""

import os
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench.row import Row

_ROUNDS = 20
_LINES = ("roost ag", "roost agents l")


def run(_folder: Path) -> Iterator[Row]:
    bare = _cpu_ms([sys.executable, "-c", "pass"])
    for line in _LINES:
        took = _cpu_ms([sys.executable, "-m", "roost"], line)
        yield Row(f"completion of `{line}`, CPU time", took, "ms", "Python", bare, "<= 8 x")


def _cpu_ms(command: Sequence[str], line: str = "") -> Sequence[float]:
    words = {"_ROOST_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    environment = {**os.environ, **(words if line else {})}
    _run(command, environment)  # compiles the modules
    return [_run(command, environment) for _ in range(_ROUNDS)]


def _run(command: Sequence[str], environment: Mapping[str, str]) -> float:
    began = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (ended.ru_utime + ended.ru_stime - began.ru_utime - began.ru_stime) * 1000
