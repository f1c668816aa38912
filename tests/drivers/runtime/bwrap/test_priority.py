"""The kernel serves the server before its agents, and no agent can change that."""

import asyncio
import os
from pathlib import Path

import pytest

from roost.core.machine import cpu_load
from roost.drivers.runtime.bwrap import cgroup
from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.bwrap.record import read_stat
from roost.drivers.runtime.bwrap.start import has_autogroup_only
from tests.conformance.containers import AS_ROOT, RunningContainer, Start
from tests.drivers.runtime.bwrap.priorities import HAS_WEIGHTS, weight_of, weights


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
