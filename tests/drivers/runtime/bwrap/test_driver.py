"""What only this runtime has; what it has in common with the others is tried in `tests/conformance/test_runtime.py`."""

import os
import signal
import stat
from contextlib import closing
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.bwrap.record import HostProcess, load
from roost.drivers.runtime.bwrap.start import controllers
from roost.drivers.runtime.contract import ContainerNotRunning, ContainerSpec, RuntimeFailed
from tests.conformance.runtimes import drop_stream, until
from tests.drivers.runtime.bwrap.containers import AS_ROOT, Inside, Start, containers

pytestmark = pytest.mark.container


def groups(folder: Path, agent_id: str = "one") -> list[Path]:
    record = load(folder / "data/run" / agent_id / "container.json")
    assert record
    return list(record.groups)


async def test_the_box_is_in_its_groups_and_they_go_with_it(container: Inside, tmp_path: Path) -> None:
    made = groups(tmp_path)
    assert len(made) == len({one.base for one in controllers().usable})
    for group in made:
        assert str(container.pid) in (group / "cgroup.procs").read_text().split()
    await container.runtime.stop("one")
    assert not any(group.exists() for group in made)


async def test_a_box_survives_its_monitor(container: Inside, tmp_path: Path) -> None:
    record = load(tmp_path / "data/run/one/container.json")
    assert record
    record.monitor.kill()
    assert await record.monitor.gone(10)
    assert [one.agent_id for one in await container.runtime.list()] == ["one"]
    assert await container.answers()
    await container.runtime.stop("one")
    assert not record.warden.alive()


async def test_a_box_that_died_can_be_started_again(start: Start, tmp_path: Path) -> None:
    first = await start("one")
    made = groups(tmp_path)
    os.kill(first.pid, signal.SIGKILL)
    await until(lambda: HostProcess.find(first.pid) is None)
    second = await start("one")
    assert second.pid != first.pid
    assert await second.answers()
    assert groups(tmp_path) == made


async def test_what_claims_to_be_a_box_is_none(container: Inside, tmp_path: Path) -> None:
    """An agent can imitate the command line of a warden: it is not listed, and the container is not harmed."""
    config = (Path(f"/proc/{container.pid}/cmdline").read_bytes().rstrip(b"\0").rpartition(b"\0"))[2].decode()
    await container.warden.start("forger", ["sh", "-c", "sleep 1000; true", config], env={}, restart=False)
    listed = await BwrapRuntime(tmp_path / "data").list()
    assert [(one.agent_id, one.pid) for one in listed] == [("one", container.pid)]
    assert (await container.warden.processes())["forger"].state == "running"
    assert await container.answers()


async def test_a_failed_start_says_what_bwrap_said_and_leaves_no_group(tmp_path: Path) -> None:
    runtime = BwrapRuntime(tmp_path / "data", bwrap=Path("/bin/false"))
    with pytest.raises(RuntimeFailed, match="did not start"):
        await runtime.start(ContainerSpec("one"))
    with pytest.raises(ContainerNotRunning):
        await runtime.connect("one")
    assert not list((tmp_path / "data/run/one").glob("*.*"))
    assert not [left for one in controllers().usable for left in one.base.glob(f"roost-{runtime._paths.mark[:8]}-*")]


async def test_sockets_are_for_the_server_and_relays_for_the_agent(container: Inside, tmp_path: Path) -> None:
    with closing(await container.runtime.listen("one", "api", drop_stream)):
        ours, theirs = (tmp_path / "data/run/one" / name for name in ("w.sock", "out/api"))
        assert stat.S_IMODE(ours.stat().st_mode) == stat.S_IMODE(theirs.stat().st_mode) == 0o600
        assert ours.stat().st_uid == os.geteuid()
        assert (theirs.stat().st_uid != os.geteuid()) == AS_ROOT


async def test_a_folder_whose_path_is_too_long_for_a_socket(tmp_path: Path) -> None:
    async with containers(tmp_path / ("long" * 40)) as start:
        assert await (await start("one")).answers()
