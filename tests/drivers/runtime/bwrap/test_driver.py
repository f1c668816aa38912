"""Behaviour of this runtime only; `tests/conformance/test_runtime.py` tests what all runtimes share."""

import asyncio
import os
import signal
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.bwrap.record import HostProcess, load_record
from roost.drivers.runtime.bwrap.start import get_controllers
from roost.drivers.runtime.contract import ContainerSpec, RuntimeFailed
from roost.warden_client.errors import ContainerNotRunning
from tests.conformance.containers import AS_ROOT, RunningContainer, Start, containers
from tests.conformance.runtimes import drop_stream, until

pytestmark = pytest.mark.container
_ROUNDS = int(os.environ.get("ROOST_TEST_ROUNDS", "5"))


def groups(folder: Path, agent_id: str = "one") -> list[Path]:
    record = load_record(folder / "data/run" / agent_id / "container.json")
    assert record
    return list(record.groups)


async def test_a_container_is_in_its_groups_and_stop_removes_them(container: RunningContainer, tmp_path: Path) -> None:
    before = groups(tmp_path)
    assert len(before) == len({controller.base for controller in get_controllers().usable})
    for group in before:
        assert str(container.pid) in (group / "cgroup.procs").read_text().split()
    await container.runtime.stop("one")
    assert not any(group.exists() for group in before)


async def test_a_container_survives_its_monitor(container: RunningContainer, tmp_path: Path) -> None:
    record = load_record(tmp_path / "data/run/one/container.json")
    assert record
    record.monitor.kill()
    assert await record.monitor.wait_until_gone(10)
    assert [one.agent_id for one in await container.runtime.list()] == ["one"]
    assert await container.is_responsive()
    await container.runtime.stop("one")
    assert not record.warden.is_alive()


async def test_a_container_that_died_can_be_started_again(start: Start, tmp_path: Path) -> None:
    first = await start("one")
    before = groups(tmp_path)
    os.kill(first.pid, signal.SIGKILL)
    await until(lambda: HostProcess.find(first.pid) is None)
    second = await start("one")
    assert second.pid != first.pid
    assert await second.is_responsive()
    assert groups(tmp_path) == before


async def test_an_imitated_warden_is_not_listed(container: RunningContainer, tmp_path: Path) -> None:
    """An agent can imitate the command line of a warden; the container is not affected."""
    config = (Path(f"/proc/{container.pid}/cmdline").read_bytes().rstrip(b"\0").rpartition(b"\0"))[2].decode()
    await container.warden.start("forger", ["sh", "-c", "sleep 1000; true", config], env={}, restart=False)
    listed = await BwrapRuntime(tmp_path / "data").list()
    assert [(one.agent_id, one.pid) for one in listed] == [("one", container.pid)]
    assert (await container.warden.processes())["forger"].state == "running"
    assert await container.is_responsive()


async def test_a_copied_folder_leaves_the_containers_of_the_original_alone(
    container: RunningContainer, tmp_path: Path
) -> None:
    subprocess.run(["cp", "-a", tmp_path / "data", tmp_path / "copy"], check=True)
    copy = BwrapRuntime(tmp_path / "copy", claims=tmp_path / "claims-of-copy")
    assert await copy.list() == []
    started = await copy.start(ContainerSpec("one"))
    assert started.pid != container.pid
    await copy.delete("one")
    assert await container.is_responsive()
    assert [(one.agent_id, one.pid) for one in await container.runtime.list()] == [("one", container.pid)]


async def test_a_failed_start_reports_the_error_and_leaves_no_group(tmp_path: Path) -> None:
    runtime = BwrapRuntime(tmp_path / "data", bwrap=Path("/bin/false"))
    with pytest.raises(RuntimeFailed, match="did not start"):
        await runtime.start(ContainerSpec("one"))
    with pytest.raises(ContainerNotRunning):
        await runtime.connect("one")
    assert not list((tmp_path / "data/run/one").glob("*.*"))
    assert not [
        path
        for controller in get_controllers().usable
        for path in controller.base.glob(f"roost-{runtime._paths.mark[:8]}-*")
    ]


async def test_sockets_are_for_the_server_and_relays_for_the_agent(container: RunningContainer, tmp_path: Path) -> None:
    with closing(await container.runtime.listen("one", "api", drop_stream)):
        ours, theirs = (tmp_path / "data/run/one" / name for name in ("w.sock", "out/api"))
        assert stat.S_IMODE(ours.stat().st_mode) == stat.S_IMODE(theirs.stat().st_mode) == 0o600
        assert ours.stat().st_uid == os.geteuid()
        assert (theirs.stat().st_uid != os.geteuid()) == AS_ROOT


async def test_a_folder_whose_path_is_too_long_for_a_socket(tmp_path: Path) -> None:
    async with containers(BwrapRuntime(tmp_path / ("long" * 40))) as start:
        assert await (await start("one")).is_responsive()


async def test_starts_of_another_process_are_not_taken_for_orphans(container: RunningContainer, tmp_path: Path) -> None:
    """`roost doctor` probes beside a running server, which looks for processes that an interrupted start left."""
    other = BwrapRuntime(tmp_path / "data", claims=tmp_path / "claims")

    async def list_on() -> None:
        while True:
            assert [one.agent_id for one in await container.runtime.list() if one.agent_id != "two"] == ["one"]

    watching = asyncio.create_task(list_on())
    for _ in range(_ROUNDS):
        assert (await other.probe()).usable
        await other.start(ContainerSpec("two"))
        await other.delete("two")
    assert not watching.done()
    watching.cancel()
