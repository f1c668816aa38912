"""Limits of memory, processes and processor time by control groups, found for each controller by itself: a machine may
have one in version 1, another in version 2, and a third not at all or not for us.

Groups are made beneath the server's own, so that whatever limits the server limits its containers too. Refuses to
guess: a controller counts as usable once a group with it was really made.
"""

import os
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from roost.drivers.runtime.bwrap import advice
from roost.drivers.runtime.contract import ContainerLimits

CONTROLLERS = ("memory", "pids", "cpu")
_PERIOD = 100_000  # microseconds, the kernel's own default
_LEAF = "roost-server"
_TRIAL = "roost-trial"
_MOVES = 20

_Values = Sequence[tuple[str, int | str]]
_WRITES: Mapping[tuple[str, int], Callable[[ContainerLimits], _Values]] = {
    ("memory", 1): lambda at: (
        ("memory.limit_in_bytes", at.memory_bytes),
        ("memory.memsw.limit_in_bytes", at.memory_bytes),
    ),
    ("memory", 2): lambda at: (("memory.max", at.memory_bytes), ("memory.swap.max", 0)),
    ("pids", 1): lambda at: (("pids.max", at.pids),),
    ("pids", 2): lambda at: (("pids.max", at.pids),),
    ("cpu", 1): lambda at: (("cpu.cfs_period_us", _PERIOD), ("cpu.cfs_quota_us", int(at.cpus * _PERIOD))),
    ("cpu", 2): lambda at: (("cpu.max", f"{int(at.cpus * _PERIOD)} {_PERIOD}"),),
}
_WITHOUT_SWAP_ACCOUNTING = {"memory.memsw.limit_in_bytes", "memory.swap.max"}  # kernels differ


@dataclass(frozen=True)
class CgroupController:
    """Where groups of one controller can be made: `base` is a folder of version 1 or 2."""

    name: str
    version: int
    base: Path


class CgroupControllers:
    """The controllers that this process may use; `refused` says why not, for each of the others."""

    def __init__(self, usable: Sequence[CgroupController], refused: Mapping[str, str]) -> None:
        self.usable = usable
        self.refused = refused

    def group_paths(self, name: str) -> list[Path]:
        """The folders of a group of that name: one for each hierarchy."""
        return list(dict.fromkeys(controller.base / name for controller in self.usable))

    def create(self, name: str, limits: ContainerLimits) -> list[Path]:
        """A group with these limits in each hierarchy. Raises OSError."""
        groups = self.group_paths(name)
        for group in groups:
            group.mkdir(exist_ok=True)
        for controller in self.usable:
            _limit(controller.base / name, controller, limits)
        return groups

    @contextmanager
    def spawn_inside(self, name: str) -> Generator[None]:
        """What the calling thread starts meanwhile is born in the groups of version 1.

        There a thread can move by itself, in no time; to move another process waits for all processors (6 to 12 ms).
        """
        bases = {controller.base for controller in self.usable if controller.version == 1}
        try:
            for base in bases:
                (base / name / "tasks").write_text("0")
            yield
        finally:
            for base in bases:
                (base / "tasks").write_text("0")

    def enter(self, name: str, pids: Sequence[int]) -> None:
        """Move processes into the group of version 2, which knows no other way. Blocking."""
        for base in {controller.base for controller in self.usable if controller.version == 2}:
            for pid in pids:
                (base / name / "cgroup.procs").write_text(str(pid))


def claim(mounts: str | None = None, membership: str | None = None) -> CgroupControllers:
    """Find the controllers and try each. May move the processes of our own version 2 group into a leaf of it, because
    a group that has processes cannot hand its controllers down. Arguments are `/proc/self/{mountinfo,cgroup}`.
    """
    found = locate(
        mounts if mounts is not None else Path("/proc/self/mountinfo").read_text(),
        membership if membership is not None else Path("/proc/self/cgroup").read_text(),
    )
    usable: list[CgroupController] = []
    refused: dict[str, str] = {}
    for name in CONTROLLERS:
        controller = found.get(name)
        if controller is None:
            refused[name] = "no control group with it is mounted here"
            continue
        try:
            _try(controller)
            usable.append(controller)
        except OSError as error:
            refused[name] = (
                f"cgroup v{controller.version} {controller.base}: {error.strerror}; {advice.control_groups()}"
            )
    return CgroupControllers(usable, refused)


def locate(mounts: str, membership: str) -> dict[str, CgroupController]:
    """Where this process is for each controller. What is bound to version 1 is not offered by version 2."""
    own = {names: path for _, names, path in (line.split(":", 2) for line in membership.splitlines())}
    found: dict[str, CgroupController] = {}
    for root, point, kind, options in _mounted(mounts):
        if kind == "cgroup2" and "" in own:
            base = _leafless(_host_path(point, root, own[""]))
            for name in _read_words(base / "cgroup.controllers"):
                found[name] = CgroupController(name, 2, base)
        elif kind == "cgroup":
            for names, path in own.items():
                if names and set(names.split(",")) <= set(options.split(",")):
                    found |= {
                        name: CgroupController(name, 1, _host_path(point, root, path)) for name in names.split(",")
                    }
    return {name: found[name] for name in CONTROLLERS if name in found}


def remove(groups: Iterable[Path]) -> bool:
    """Whether all of them are gone; one whose last process is not reaped yet stays."""
    left = False
    for group in groups:
        try:
            group.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            left = True
    return not left


def oom_kills(groups: Iterable[Path]) -> int:
    """How many processes of a container the kernel killed because it had used up its memory."""
    for group in groups:
        for name in ("memory.events", "memory.oom_control"):
            words = _read_words(group / name)
            if "oom_kill" in words:
                return int(words[words.index("oom_kill") + 1])
    return 0


def _try(controller: CgroupController) -> None:
    if controller.version == 2:
        _hand_down(controller)
    trial = controller.base / f"{_TRIAL}-{os.getpid()}"
    trial.mkdir(exist_ok=True)
    try:
        _limit(trial, controller, ContainerLimits())
    finally:
        trial.rmdir()


def _hand_down(controller: CgroupController) -> None:
    """Let the groups beneath `base` have the controller."""
    switch = controller.base / "cgroup.subtree_control"
    if controller.name in _read_words(switch):
        return
    if (controller.base / "cgroup.type").exists():  # the root of all groups has none, and may have processes
        leaf = controller.base / _LEAF
        leaf.mkdir(exist_ok=True)
        for _ in range(_MOVES):  # a process may fork while it moves
            pids = _read_words(controller.base / "cgroup.procs")
            if not pids:
                break
            for pid in pids:
                with suppress(ProcessLookupError):
                    (leaf / "cgroup.procs").write_text(pid)
    switch.write_text(f"+{controller.name}")


def _limit(group: Path, controller: CgroupController, limits: ContainerLimits) -> None:
    for name, value in _WRITES[controller.name, controller.version](limits):
        if name not in _WITHOUT_SWAP_ACCOUNTING or (group / name).exists():
            (group / name).write_text(str(value))


def _mounted(mounts: str) -> Iterable[tuple[str, str, str, str]]:
    """Root, mount point, type and options of each control group mount (proc_pid_mountinfo(5))."""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind in {"cgroup", "cgroup2"}:
            fields = left.split()
            yield fields[3], fields[4], kind, options


def _host_path(point: str, root: str, path: str) -> Path:
    """The folder of a group; in a container the mount shows only what lies beneath its own root."""
    inside = path.removeprefix(root) if root != "/" else path
    return Path(point, inside.lstrip("/"))


def _leafless(base: Path) -> Path:
    return base.parent if base.name == _LEAF else base


def _read_words(file: Path) -> list[str]:
    try:
        return file.read_text().split()
    except OSError:
        return []
