"""Control groups on all kinds of machines, simulated by folders; `test_limits.py` uses the real ones."""

import os
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap import cgroup
from roost.drivers.runtime.bwrap.cgroup import CgroupController
from roost.drivers.runtime.contract import ContainerLimits

HYBRID = """\
31 23 0:28 / {top} rw - tmpfs tmpfs rw
32 31 0:29 / {top}/cpu,cpuacct rw,relatime shared:1 - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / {top}/memory rw,relatime - cgroup cgroup rw,memory
41 31 0:38 / {top}/unified rw,relatime - cgroup2 cgroup2 rw
"""
UNIFIED = "30 23 0:27 / {top} rw,relatime - cgroup2 cgroup2 rw,nsdelegate\n"
LIMITS = ContainerLimits(memory_bytes=1 << 20, cpus=0.5, pids=7)


def tree(top: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        (top / name).write_text(content)


def test_each_controller_is_located_separately(tmp_path: Path) -> None:
    tree(tmp_path, {"unified/deep/own/cgroup.controllers": "pids hugetlb\n"})
    own = "4:memory:/server\n3:cpu,cpuacct:/\n1:name=systemd:/x\n0::/deep/own\n"
    assert cgroup.locate_controllers(HYBRID.format(top=tmp_path), own) == {
        "memory": CgroupController("memory", 1, tmp_path / "memory/server"),
        "pids": CgroupController("pids", 2, tmp_path / "unified/deep/own"),
        "cpu": CgroupController("cpu", 1, tmp_path / "cpu,cpuacct"),
    }


def test_in_a_container_the_mount_begins_at_its_own_group(tmp_path: Path) -> None:
    mounts = f"35 31 0:32 /docker/abc {tmp_path} rw - cgroup cgroup rw,memory\n"
    found = cgroup.locate_controllers(mounts, "4:memory:/docker/abc/inner\n")
    assert found == {"memory": CgroupController("memory", 1, tmp_path / "inner")}


def test_a_server_that_moved_to_its_leaf_is_found_above_it(tmp_path: Path) -> None:
    tree(tmp_path, {"service/cgroup.controllers": "memory"})
    found = cgroup.locate_controllers(UNIFIED.format(top=tmp_path), "0::/service/roost-server\n")
    assert found == {"memory": CgroupController("memory", 2, tmp_path / "service")}


def test_nothing_is_mounted() -> None:
    groups = cgroup.find_controllers("", "0::/\n")
    assert not groups.usable
    assert set(groups.unavailable) == {"memory", "pids", "cpu"}
    assert groups.create("one", LIMITS) == []


def test_a_controller_that_does_not_work_is_reported_with_the_reason(tmp_path: Path) -> None:
    mounts = f"35 31 0:32 / {tmp_path} rw - cgroup cgroup rw,memory\n"
    groups = cgroup.find_controllers(mounts, "4:memory:/missing\n")
    assert not groups.usable
    assert "No such file" in groups.unavailable["memory"]


def test_limits_of_version_1(tmp_path: Path) -> None:
    groups = cgroup.CgroupControllers([CgroupController(name, 1, tmp_path / name) for name in cgroup.CONTROLLERS], {})
    for name in cgroup.CONTROLLERS:
        (tmp_path / name).mkdir()
    created = groups.create("one", LIMITS)
    assert created == groups.group_paths("one") == [tmp_path / name / "one" for name in cgroup.CONTROLLERS]
    assert (created[0] / "memory.limit_in_bytes").read_text() == str(1 << 20)
    assert not (created[0] / "memory.memsw.limit_in_bytes").exists()  # not on this kernel
    assert (created[1] / "pids.max").read_text() == "7"
    assert (created[2] / "cpu.cfs_quota_us").read_text() == "50000"


def test_limits_of_version_2_share_a_group(tmp_path: Path) -> None:
    groups = cgroup.CgroupControllers([CgroupController(name, 2, tmp_path) for name in cgroup.CONTROLLERS], {})
    tree(tmp_path, {"one/memory.swap.max": "max"})
    (group,) = groups.create("one", LIMITS)
    values = {file.name: file.read_text() for file in group.iterdir()}
    assert values == {"memory.max": str(1 << 20), "memory.swap.max": "0", "pids.max": "7", "cpu.max": "50000 100000"}


def test_in_version_2_processes_are_moved(tmp_path: Path) -> None:
    groups = cgroup.CgroupControllers([CgroupController(name, 2, tmp_path) for name in cgroup.CONTROLLERS], {})
    groups.create("one", LIMITS)
    with groups.spawn_inside("one"):
        assert not (tmp_path / "one/cgroup.procs").exists()
    groups.move_processes("one", [41, 42])
    assert (tmp_path / "one/cgroup.procs").read_text() == "42"  # the kernel takes one a write


def test_in_version_1_processes_start_in_the_group(tmp_path: Path) -> None:
    groups = cgroup.CgroupControllers([CgroupController("memory", 1, tmp_path)], {})
    groups.create("one", LIMITS)
    with groups.spawn_inside("one"):
        assert (tmp_path / "one/tasks").read_text() == "0"  # the thread itself
        assert not (tmp_path / "tasks").exists()
    assert (tmp_path / "tasks").read_text() == "0"  # and back
    groups.move_processes("one", [41])
    assert not (tmp_path / "one/cgroup.procs").exists()


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n"),
        ("memory.events", "low 0\nhigh 0\nmax 9\noom 3\noom_kill 3\n"),
    ],
)
def test_oom_kills_are_counted(tmp_path: Path, file: str, content: str) -> None:
    assert cgroup.count_oom_kills([tmp_path]) == 0
    (tmp_path / file).write_text(content)
    assert cgroup.count_oom_kills([tmp_path / "other", tmp_path]) == 3


@pytest.mark.parametrize(
    ("file", "stat"),
    [
        ("memory.usage_in_bytes", "inactive_file 10\ntotal_inactive_file 400\n"),
        ("memory.current", "anon 5\ninactive_file 400\n"),
    ],
)
def test_used_memory_is_without_reclaimable_cache(tmp_path: Path, file: str, stat: str) -> None:
    assert cgroup.used_memory([tmp_path]) is None
    (tmp_path / file).write_text("1000\n")
    assert cgroup.used_memory([tmp_path / "other", tmp_path]) == 1000
    (tmp_path / "memory.stat").write_text(stat)
    assert cgroup.used_memory([tmp_path]) == 600


@pytest.mark.parametrize(("version", "file", "unit"), [(1, "cpu.shares", 1024), (2, "cpu.weight", 100)])
def test_the_server_and_its_agents_get_weights(tmp_path: Path, version: int, file: str, unit: int) -> None:
    tree(tmp_path, {f"roost-server/{file}": "", f"roost-agents/{file}": "", f"roost-agents/one/{file}": ""})
    groups = cgroup.CgroupControllers([CgroupController("cpu", version, tmp_path)], {})
    assert groups.weights_problem == "not set up yet"
    groups.enter_server_group()
    assert groups.weights_problem is None
    assert (tmp_path / "roost-server/cgroup.procs").read_text() == str(os.getpid())
    assert (tmp_path / "roost-server" / file).read_text() == str(20 * unit)
    assert (tmp_path / "roost-agents" / file).read_text() == str(unit)
    groups.create("roost-agents/one", LIMITS, 20)
    assert (tmp_path / "roost-agents/one" / file).read_text() == str(20 * unit)
    if version == 2:
        assert (tmp_path / "roost-agents/cgroup.subtree_control").read_text() == "+cpu"
    else:
        with groups.spawn_inside("roost-agents/one"):
            pass
        assert (tmp_path / "roost-server/tasks").read_text() == "0"


def test_a_group_that_cannot_be_entered_is_reported(tmp_path: Path) -> None:
    groups = cgroup.CgroupControllers([CgroupController("cpu", 1, tmp_path / "missing")], {})
    groups.enter_server_group()
    assert "No such file" in str(groups.weights_problem)


@pytest.mark.parametrize(
    ("version", "files", "quota"),
    [
        (1, {"cpu.cfs_quota_us": "150000", "cpu.cfs_period_us": "100000"}, 1.5),
        (1, {"cpu.cfs_quota_us": "-1", "cpu.cfs_period_us": "100000"}, float("inf")),
        (2, {"cpu.max": "50000 100000"}, 0.5),
        (2, {"cpu.max": "max 100000"}, float("inf")),
        (2, {}, float("inf")),
    ],
)
def test_the_quota_of_the_servers_group(tmp_path: Path, version: int, files: dict[str, str], quota: float) -> None:
    tree(tmp_path, files)
    assert cgroup.CgroupControllers([CgroupController("cpu", version, tmp_path)], {}).cpu_quota() == quota
    assert cgroup.CgroupControllers([], {}).cpu_quota() == float("inf")


def test_groups_that_are_not_empty_stay(tmp_path: Path) -> None:
    (tmp_path / "full/child").mkdir(parents=True)
    (tmp_path / "empty").mkdir()
    assert not cgroup.remove_groups([tmp_path / "full", tmp_path / "empty", tmp_path / "missing"])
    assert not (tmp_path / "empty").exists()
    assert cgroup.remove_groups([tmp_path / "missing"])


def test_the_test_groups_are_removed() -> None:
    groups = cgroup.find_controllers()
    assert {controller.name for controller in groups.usable} | set(groups.unavailable) == set(cgroup.CONTROLLERS)
    assert not [path for controller in groups.usable for path in controller.base.glob("roost-trial-*")]
