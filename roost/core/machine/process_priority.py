"""Priority of processes for processor, disk and memory, where weights of control groups are missing or do not apply.

nice acts among the threads of one scheduling group. Where a control group of its own is such a group, it acts inside it
only. In the kernel's root group, every session is one (sched(7), autogroup), whose own nice value is in
`/proc/PID/autogroup`; a new session begins with 0.
"""

import ctypes
import os
import platform
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_SERVER_NICE, _SERVER_OOM = -10, -900
_GROUP_FILE = "server-group"
_SET_IO_PRIORITY = {"x86_64": 251, "aarch64": 30}
_WHO_PROCESS, _BEST_EFFORT = 1, 2 << 13  # linux/ioprio.h

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class ProcessPriority:
    """nice: -20 (first) to 19. io_level: 0 (first) to 7. oom_score: -1000 (the kernel never kills it) to 1000."""

    nice: int
    io_level: int
    oom_score: int


def record_own_group(group: Path | None, folder: Path) -> None:
    """Record the control group of a server in its folder for the next server, None if it has none of its own."""
    with suppress(OSError):  # the disk may be full
        (folder / _GROUP_FILE).write_text(str(group or ""))


def join_recorded_group(folder: Path) -> None:
    """Move this process to the group of the last server, before imports take seconds beside agents that compute."""
    with suppress(OSError):  # there was none, or it is gone
        if group := (folder / _GROUP_FILE).read_text():
            Path(group, "cgroup.procs").write_text(str(os.getpid()))


def raise_own_priority() -> None:
    """Put this process before others as far as its rights go: a plain user may only lower priorities."""
    oom = _PROC / "self/oom_score_adj"
    with suppress(OSError):
        if int(oom.read_text()) > _SERVER_OOM:
            oom.write_text(str(_SERVER_OOM))
    for thread in (_PROC / "self/task").iterdir():
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, int(thread.name), min(os.getpriority(os.PRIO_PROCESS, 0), _SERVER_NICE))
    if os.getsid(0) == os.getpid():  # the session of a terminal has other programs
        with suppress(OSError):
            (_PROC / "self/autogroup").write_text(str(_SERVER_NICE))


def set_priority(pid: int, priority: ProcessPriority) -> None:
    """Set the priority of a process without threads, which its children inherit, as far as our rights go."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, priority.nice)
    if number := _SET_IO_PRIORITY.get(platform.machine()):
        _libc.syscall(number, _WHO_PROCESS, pid, _BEST_EFFORT | priority.io_level)
    with suppress(OSError):
        (_PROC / str(pid) / "oom_score_adj").write_text(str(priority.oom_score))


def has_autogroup() -> bool:
    """Return whether the session of this process is a scheduling group, unless it is in a control group that is one."""
    try:
        return (_PROC / "sys/kernel/sched_autogroup_enabled").read_text().strip() == "1"
    except OSError:
        return False
