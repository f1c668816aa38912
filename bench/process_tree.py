"""All processes that a benchmark started: their CPU time and their end.

The harness adopts orphans of its benchmarks, so that all of them stay its descendants.
"""

import ctypes
import os
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_SET_CHILD_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER, linux/prctl.h
_SECONDS_PER_TICK = 1 / os.sysconf("SC_CLK_TCK")
_END_SECONDS = 10.0


class ProcessStat(NamedTuple):
    """A process of `/proc`; `cpu_seconds` has the time of its children for which it has waited, too."""

    pid: int
    parent: int
    is_zombie: bool
    cpu_seconds: float


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    if ctypes.CDLL(None, use_errno=True).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl: no child subreaper")


def reap_orphans(child: int) -> None:
    """Wait for all children that have ended, except for `child`, which has another waiter."""
    with suppress(ChildProcessError):
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid == child:
                return
            os.waitpid(ended.si_pid, 0)


def find_descendants(root: int) -> Sequence[ProcessStat]:
    """Return the process `root` and its descendants."""
    processes = {process.pid: process for process in _read_processes()}
    return [process for process in processes.values() if _descends(processes, process, root)]


def end_descendants(root: int) -> int:
    """Kill all descendants of this process `root`; return how many there were. Raises TimeoutError."""
    ended, deadline = set[int](), time.monotonic() + _END_SECONDS
    while True:
        reap_orphans(root)
        alive = [process.pid for process in find_descendants(root) if process.pid != root and not process.is_zombie]
        if not alive:
            return len(ended)
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {alive} did not end within {_END_SECONDS:g} s of their kill")
        for pid in alive:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        ended |= set(alive)
        time.sleep(0.02)


def _read_processes() -> Iterator[ProcessStat]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # it has ended
                fields = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
                cpu = sum(map(int, fields[11:15])) * _SECONDS_PER_TICK
                yield ProcessStat(int(entry.name), int(fields[1]), fields[0] == "Z", cpu)


def _descends(processes: dict[int, ProcessStat], process: ProcessStat | None, root: int) -> bool:
    while process is not None and process.pid != root:
        process = processes.get(process.parent)
    return process is not None
