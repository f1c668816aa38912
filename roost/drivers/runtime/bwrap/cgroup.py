"""Limits of memory, processes and processor time by control groups, and the server's priority over its agents.

Each controller is found separately: a machine may have one in version 1, another in version 2, and a third not at all
or not writable for us. Groups are created below the server's own, so that limits of the server apply to its containers
too. A controller is usable if creating a group with it succeeded.

    <the server's group>/roost-server                weight 20: the server and Caddy
    <the server's group>/roost-sandbox-...           weight 5: a program that a request waits for
    <the server's group>/roost-agents/roost-...      weight 1 for all agents and background work together
Decision 0048 says why.
"""

import asyncio
import math
import os
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from roost.drivers.runtime.contract import ContainerLimits

CONTROLLERS = ("memory", "pids", "cpu")
AGENTS = "roost-agents"
SERVER_WEIGHT, SANDBOX_WEIGHT = 20, 5
"""How many times as much processor time as all agents together the server and each sandbox get when all want it."""
_PERIOD = 100_000  # microseconds, the kernel's default
_LEAF = "roost-server"
_TEST_GROUP = "roost-trial"
_MOVE_ATTEMPTS = 20
_REMOVAL_SECONDS, _PAUSE_SECONDS = 2.0, 0.005

_Values = Sequence[tuple[str, int | str]]
_LIMIT_FILES: Mapping[tuple[str, int], Callable[[ContainerLimits], _Values]] = {
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
_SWAP_FILES = {"memory.memsw.limit_in_bytes", "memory.swap.max"}  # missing in kernels without swap accounting
_WEIGHT_FILES: Mapping[int, Mapping[str, int]] = {1: {"cpu.shares": 1024}, 2: {"cpu.weight": 100, "io.weight": 100}}
"""Files of a group's weight by version, with the kernel's default. `io.weight` has an effect with some schedulers."""


@dataclass(frozen=True)
class CgroupController:
    """A controller and the folder (`base`) of version 1 or 2 in which its groups are created."""

    name: str
    version: int
    base: Path


class CgroupControllers:
    """Controllers that this process may use, and the reasons why the others are unavailable."""

    def __init__(self, usable: Sequence[CgroupController], unavailable: Mapping[str, str]) -> None:
        self.usable = usable
        self.unavailable = unavailable
        self.weights_problem: str | None = unavailable.get("cpu", "not set up yet")
        """Why the server has no priority by weights, None if it has."""
        self.server_group: Path | None = None
        self._cpu = next((controller for controller in usable if controller.name == "cpu"), None)

    def enter_server_group(self) -> None:
        """Move this process to a group that has priority over the group of the agents."""
        if self._cpu is None:
            return
        leaf = self._cpu.base / _LEAF
        try:
            leaf.mkdir(exist_ok=True)
            (leaf / "cgroup.procs").write_text(str(os.getpid()))
            self.server_group = leaf
            self.set_weight(_LEAF, SERVER_WEIGHT)
            self._create_folders(AGENTS)
            self.set_weight(AGENTS, 1)
            self.weights_problem = None
        except OSError as error:
            self.weights_problem = f"cgroup v{self._cpu.version} {leaf}: {error.strerror}"

    def set_weight(self, name: str, factor: int) -> None:
        """Set the weight of a group among its siblings, as a multiple of that of all agents. Raises OSError."""
        if self._cpu is None:
            return
        for file, unit in _WEIGHT_FILES[self._cpu.version].items():
            path = self._cpu.base / name / file
            if path.exists():
                path.write_text(str(unit * factor))

    def cpu_quota(self) -> float:
        """Return how many processors the server's group may use, infinity without a limit."""
        if self._cpu is None:
            return math.inf
        if self._cpu.version == 2:
            quota, period = (*read_words(self._cpu.base / "cpu.max"), "max", "max")[:2]
        else:
            files = ("cpu.cfs_quota_us", "cpu.cfs_period_us")
            quota, period = (" ".join(read_words(self._cpu.base / file)) for file in files)
        return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() else math.inf

    def group_paths(self, name: str) -> list[Path]:
        """Return the folders of a group, one for each hierarchy."""
        return list(dict.fromkeys(controller.base / name for controller in self.usable))

    def create(self, name: str, limits: ContainerLimits, weight: int = 1) -> list[Path]:
        """Create a group with these limits in each hierarchy, and return its folders. Raises OSError."""
        parent, _, _ = name.rpartition("/")
        if parent:
            self._create_folders(parent)
        groups = self.group_paths(name)
        for group in groups:
            group.mkdir(exist_ok=True)
        for controller in self.usable:
            _write_limits(controller.base / name, controller, limits)
        self.set_weight(name, weight)
        return groups

    def _create_folders(self, parent: str) -> None:
        """Create a group that has others below it, to which all our controllers apply."""
        for controller in self.usable:
            group = controller.base / parent
            group.mkdir(exist_ok=True)
            if controller.version == 2:
                _enable(group, controller.name)

    @contextmanager
    def spawn_inside(self, name: str) -> Generator[None]:
        """Let the calling thread start processes inside the groups of version 1.

        Moving the own thread there takes no time; moving another process waits for all processors (6 to 12 ms).
        """
        bases = {controller.base for controller in self.usable if controller.version == 1}
        leaf = self.server_group
        homes = [leaf if leaf and leaf.parent == base else base for base in bases]
        try:
            for base in bases:
                (base / name / "tasks").write_text("0")
            yield
        finally:
            for home in homes:
                (home / "tasks").write_text("0")

    def move_processes(self, name: str, pids: Sequence[int]) -> None:
        """Move processes into the group of version 2, to which `spawn_inside` does not apply. Blocking."""
        for base in {controller.base for controller in self.usable if controller.version == 2}:
            for pid in pids:
                (base / name / "cgroup.procs").write_text(str(pid))


def find_controllers(mounts: str | None = None, membership: str | None = None) -> CgroupControllers:
    """Find the controllers and test each.

    May move the processes of our own version 2 group into a child of it, because a group with processes cannot delegate
    its controllers; in version 1, moves this process into such a child. The arguments replace
    `/proc/self/{mountinfo,cgroup}` in tests.
    """
    found = locate_controllers(
        mounts if mounts is not None else Path("/proc/self/mountinfo").read_text(),
        membership if membership is not None else Path("/proc/self/cgroup").read_text(),
    )
    usable: list[CgroupController] = []
    unavailable: dict[str, str] = {}
    for name in CONTROLLERS:
        controller = found.get(name)
        if controller is None:
            unavailable[name] = "no control group with this controller is mounted"
            continue
        try:
            _test_controller(controller)
            usable.append(controller)
        except OSError as error:
            unavailable[name] = (
                f"cgroup v{controller.version} {controller.base}: {error.strerror}; {_control_group_advice()}"
            )
    groups = CgroupControllers(usable, unavailable)
    groups.enter_server_group()
    return groups


def locate_controllers(mounts: str, membership: str) -> dict[str, CgroupController]:
    """Return the group of this process for each controller; no controller is in both versions."""
    own = {names: path for _, names, path in (line.split(":", 2) for line in membership.splitlines())}
    found: dict[str, CgroupController] = {}
    for root, point, kind, options in _parse_mounts(mounts):
        if kind == "cgroup2" and "" in own:
            base = _without_leaf(_host_path(point, root, own[""]))
            for name in read_words(base / "cgroup.controllers"):
                found[name] = CgroupController(name, 2, base)
        elif kind == "cgroup":
            for names, path in own.items():
                if names and set(names.split(",")) <= set(options.split(",")):
                    base = _without_leaf(_host_path(point, root, path))
                    found |= {name: CgroupController(name, 1, base) for name in names.split(",")}
    return {name: found[name] for name in CONTROLLERS if name in found}


async def remove_ended_groups(groups: Collection[Path]) -> None:
    """Remove the groups of processes that have ended, once these are reaped; give up after 2 s."""
    with suppress(TimeoutError):  # a group that stays costs little and is reused
        async with asyncio.timeout(_REMOVAL_SECONDS):
            while not remove_groups(groups):  # noqa: ASYNC110 - the kernel has no event for it
                await asyncio.sleep(_PAUSE_SECONDS)


def remove_groups(groups: Iterable[Path]) -> bool:
    """Remove groups and return whether all are gone; one stays until its last process is reaped."""
    all_gone = True
    for group in groups:
        try:
            group.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            all_gone = False
    return all_gone


def count_oom_kills(groups: Iterable[Path]) -> int:
    """Return how many processes of a container the kernel killed for lack of memory."""
    for group in groups:
        for name in ("memory.events", "memory.oom_control"):
            words = read_words(group / name)
            if "oom_kill" in words:
                return int(words[words.index("oom_kill") + 1])
    return 0


def used_memory(groups: Iterable[Path]) -> int | None:
    """Return the bytes of memory that a container uses without reclaimable cache, None if it is unknown."""
    for group in groups:
        for total, cache in (("memory.current", "inactive_file"), ("memory.usage_in_bytes", "total_inactive_file")):
            if used := read_words(group / total):
                stat = read_words(group / "memory.stat")
                cached = int(stat[stat.index(cache) + 1]) if cache in stat else 0
                return max(0, int(used[0]) - cached)
    return None


def _test_controller(controller: CgroupController) -> None:
    if controller.version == 2:
        _delegate(controller)
    group = controller.base / f"{_TEST_GROUP}-{os.getpid()}"
    group.mkdir(exist_ok=True)
    try:
        _write_limits(group, controller, ContainerLimits())
    finally:
        group.rmdir()


def _delegate(controller: CgroupController) -> None:
    """Enable the controller for the groups below `base`."""
    if controller.name in read_words(controller.base / "cgroup.subtree_control"):
        return
    if (controller.base / "cgroup.type").exists():  # the root group has no type and may have processes
        leaf = controller.base / _LEAF
        leaf.mkdir(exist_ok=True)
        for _ in range(_MOVE_ATTEMPTS):  # a process may fork while it moves
            pids = read_words(controller.base / "cgroup.procs")
            if not pids:
                break
            for pid in pids:
                with suppress(ProcessLookupError):
                    (leaf / "cgroup.procs").write_text(pid)
    _enable(controller.base, controller.name)
    with suppress(OSError):  # only for its weights
        _enable(controller.base, "io")


def _enable(group: Path, controller: str) -> None:
    switch = group / "cgroup.subtree_control"
    if controller not in read_words(switch):
        switch.write_text(f"+{controller}")


def _write_limits(group: Path, controller: CgroupController, limits: ContainerLimits) -> None:
    for name, value in _LIMIT_FILES[controller.name, controller.version](limits):
        if name not in _SWAP_FILES or (group / name).exists():
            (group / name).write_text(str(value))


def _parse_mounts(mounts: str) -> Iterable[tuple[str, str, str, str]]:
    """Yield root, mount point, type and options of each control group mount (proc_pid_mountinfo(5))."""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        kind, _, options = right.split(" ", 2)
        if kind in {"cgroup", "cgroup2"}:
            fields = left.split()
            yield fields[3], fields[4], kind, options


def _host_path(point: str, root: str, path: str) -> Path:
    """Return the folder of a group; in a container the mount shows only groups below its root."""
    inside = path.removeprefix(root) if root != "/" else path
    return Path(point, inside.lstrip("/"))


def _without_leaf(base: Path) -> Path:
    return base.parent if base.name == _LEAF else base


def _control_group_advice() -> str:
    if os.geteuid() == 0:
        return "this container or service may not create groups"
    return "run the server with systemd-run --user --scope -p Delegate=yes, as a service with Delegate=yes, or as root"


def read_words(file: Path) -> list[str]:
    """Return the words of a file, none if it cannot be read."""
    try:
        return file.read_text().split()
    except OSError:
        return []
