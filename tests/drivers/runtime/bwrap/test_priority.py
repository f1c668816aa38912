"""The kernel serves the server before its agents, and no agent can change that."""

import asyncio
import os
from pathlib import Path

import pytest

from roost.core import cpu_load, process_priority
from roost.drivers.runtime.bwrap import cgroup
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.bwrap.preference import PREFERRED_WEIGHT, PreferredContainers
from roost.drivers.runtime.bwrap.record import read_stat
from roost.drivers.runtime.bwrap.start import get_controllers, has_autogroup_only
from tests.drivers.runtime.bwrap.containers import AS_ROOT, RunningContainer, Start

HAS_WEIGHTS = get_controllers().weights_problem is None
weights = pytest.mark.skipif(not HAS_WEIGHTS, reason=str(get_controllers().weights_problem))


def processes_of(container: RunningContainer) -> list[int]:
    """Return the container's processes on the host: the warden, its children, and bwrap's monitor."""
    found = {container.pid, int(read_stat(container.pid)[1])}
    pids = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdecimal()]
    while children := {pid for pid in pids if parent(pid) in found} - found:
        found |= children
    return sorted(found)


def parent(pid: int) -> int:
    fields = read_stat(pid)
    return int(fields[1]) if len(fields) > 1 else 0


def oom_score(pid: int | str) -> int:
    return int(Path(f"/proc/{pid}/oom_score_adj").read_text())


def weight_of(name: str) -> int:
    """Return the weight of a group as a multiple of the agents' together."""
    cpu = next(controller for controller in get_controllers().usable if controller.name == "cpu")
    file, unit = {1: ("cpu.shares", 1024), 2: ("cpu.weight", 100)}[cpu.version]
    return int((cpu.base / name / file).read_text()) // unit


@pytest.mark.container
async def test_every_process_of_a_container_comes_after_the_server(start: Start) -> None:
    container: RunningContainer = await start()
    await container.warden.start("loop", ["sh", "-c", "sh -c 'setsid sleep 100 & sleep 100'; true"], env={})
    async with asyncio.timeout(10):
        while len(processes := processes_of(container)) < 6:  # monitor, warden, two shells, two sleeps
            await asyncio.sleep(0.01)
    assert {oom_score(pid) for pid in processes} == {500}
    assert oom_score("self") < 500
    warden = 0 if HAS_WEIGHTS else 10
    assert os.getpriority(os.PRIO_PROCESS, container.pid) == warden
    monitor = int(read_stat(container.pid)[1])
    programs = set(processes) - {container.pid, monitor}
    assert {os.getpriority(os.PRIO_PROCESS, pid) for pid in programs} == {warden + 9}
    assert await container.sh("ionice") == "best-effort: prio 7\n"


@pytest.mark.container
async def test_no_program_of_a_container_raises_its_priority(start: Start) -> None:
    container: RunningContainer = await start()
    for attempt in ("renice -n 0 $$", "chrt --fifo 1 true", "ionice -c 2 -n 0 true"):
        assert (await container.run("sh", "-c", attempt)).exit_code != 0, attempt
    assert await container.sh("prlimit --nice --rtprio --noheadings -o SOFT,HARD | tr -d ' '") == "00\n00\n"
    assert await container.sh("mount -t cgroup,cgroup2; ls -d /sys/fs/cgroup 2>/dev/null || echo none") == "none\n"


@pytest.mark.container
async def test_no_program_renices_itself(start: Start) -> None:
    container: RunningContainer = await start()
    assert await container.run_python("""
before = os.getpriority(os.PRIO_PROCESS, 0)
try: os.setpriority(os.PRIO_PROCESS, 0, before - 1)
except OSError as error: tell([errno.errorcode[error.errno], os.getpriority(os.PRIO_PROCESS, 0) - before])""") == [
        "EACCES",
        0,
    ]


@pytest.mark.container
@pytest.mark.skipif(not has_autogroup_only(), reason="sessions are no scheduling groups here")
async def test_a_session_of_a_program_comes_after_the_servers(start: Start) -> None:
    container: RunningContainer = await start()

    async def is_lowered() -> bool:  # all users together may do it ten times a second
        return "nice 19" in await container.sh("cat /proc/self/autogroup")

    async with asyncio.timeout(20):
        while not await is_lowered():
            await asyncio.sleep(0.15)


@weights
@pytest.mark.container
async def test_all_agents_share_one_group_below_the_servers_weight(start: Start) -> None:
    await start("one")
    two: RunningContainer = await start("two")
    groups = two.runtime._starter.control_groups("two")
    assert {group.parent.name for group in groups} == {cgroup.AGENTS}
    for group in groups:
        members = (group / "cgroup.procs").read_text().split()
        assert {str(pid) for pid in processes_of(two)} <= set(members)
    assert weight_of("roost-server") == cgroup.SERVER_WEIGHT
    assert weight_of(cgroup.AGENTS) == 1
    assert any(line.endswith("/roost-server") for line in Path("/proc/self/cgroup").read_text().splitlines())


@weights
@pytest.mark.container
async def test_threads_return_to_the_servers_group_after_a_start(start: Start) -> None:
    await start()
    own = Path("/proc/self/cgroup").read_text()
    assert {path.read_text() for path in Path("/proc/self/task").glob("*/cgroup")} == {own}


@weights
def test_the_next_server_joins_the_group_of_the_last_one_early(tmp_path: Path) -> None:
    BwrapRuntime(tmp_path).take_priority()
    recorded = tmp_path / "server-group"
    group = get_controllers().server_group
    assert recorded.read_text() == str(group)
    recorded.write_text(str(tmp_path))
    process_priority.join_recorded_group(tmp_path)
    assert (tmp_path / "cgroup.procs").read_text() == str(os.getpid())
    recorded.write_text("/missing")
    process_priority.join_recorded_group(tmp_path)  # ignores a group that is gone


@weights
@pytest.mark.container
async def test_a_container_is_preferred_while_requests_come(start: Start) -> None:
    container: RunningContainer = await start()
    name = container.runtime._starter.group_name("one")
    assert weight_of(name) == 1
    preferred = PreferredContainers(container.runtime._starter.group_name, seconds=0.05)
    preferred.add("one")
    preferred.add("one")
    assert weight_of(name) == PREFERRED_WEIGHT
    async with asyncio.timeout(10):
        while weight_of(name) != 1:
            await asyncio.sleep(0.01)
    preferred.add("one")
    assert weight_of(name) == PREFERRED_WEIGHT
    preferred.discard("one")
    container.runtime.take_priority()  # as the next server does after a crash
    assert weight_of(name) == 1


@weights
@pytest.mark.container
async def test_a_new_container_of_a_preferred_agent_is_preferred_again(start: Start) -> None:
    container: RunningContainer = await start()
    runtime = container.runtime
    runtime.prefer("one")
    await runtime.stop("one", grace=0)
    await start()
    assert weight_of(runtime._starter.group_name("one")) == 1
    runtime.prefer("one")
    assert weight_of(runtime._starter.group_name("one")) == PREFERRED_WEIGHT


async def test_preferring_an_agent_without_a_container_does_nothing(tmp_path: Path) -> None:
    BwrapRuntime(tmp_path).prefer("nobody")


@pytest.mark.parametrize(("cpus", "is_pressed", "slots"), [(8, False, 8), (8, True, 4), (1, False, 1), (1, True, 1)])
def test_starts_are_paced_by_processors_and_their_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpus: int, is_pressed: bool, slots: int
) -> None:
    monkeypatch.setattr(cpu_load, "count_cpus", lambda: cpus)
    monkeypatch.setattr(cpu_load, "is_cpu_pressed", lambda: is_pressed)
    assert BwrapRuntime(tmp_path).start_slots() == slots


@pytest.mark.container
async def test_the_probe_reports_priorities(tmp_path: Path) -> None:
    capabilities = await BwrapRuntime(tmp_path / "data").probe()
    found = {item.name: item for item in capabilities.enforcement}
    assert found["cpu-priority"].enforced == (HAS_WEIGHTS or not has_autogroup_only())
    assert HAS_WEIGHTS or "Delegate=yes" in found["cpu-priority"].reason or AS_ROOT
    assert "the score 500" in found["memory-priority"].reason
    assert found["memory-priority"].enforced or "CAP_SYS_RESOURCE" in found["memory-priority"].reason


def test_the_servers_own_priority_never_gets_worse() -> None:
    child = os.fork()
    if child == 0:
        process_priority.raise_own_priority()
        is_raised = os.getpriority(os.PRIO_PROCESS, 0) == -10
        os._exit(0 if is_raised or not AS_ROOT else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
