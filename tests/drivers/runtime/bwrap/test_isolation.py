"""What of the machine a container of bwrap shows, tested from inside a real one."""

import os
from contextlib import closing
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap import plan
from tests.conformance.containers import AS_ROOT, RunningContainer, Start
from tests.conformance.runtimes import drop_stream

pytestmark = pytest.mark.container


async def test_the_root_folder_has_only_the_listed_entries(container: RunningContainer) -> None:
    links = {name for name in ("bin", "sbin", "lib", "lib64", "lib32") if Path("/", name).exists()}
    folders = {"dev", "engine", "etc", "home", "proc", "run", "tmp", "usr", "var", "workspace"}
    assert set((await container.sh("ls -A /")).split()) == folders | links
    assert (await container.sh("ls -A /home /run /var /engine")).split() == [
        *("/engine:", "/home:", "agent", "/run:", "roost", "warden", "/var:", "tmp"),
    ]


async def test_only_listed_parts_of_etc_are_visible(container: RunningContainer) -> None:
    host = {name.split("/")[0] for name in plan.HOST_ETC if Path("/etc", name).exists()}
    assert set((await container.sh("ls -A /etc")).split()) == host | {Path(path).name for path in plan.ETC} | {
        "ssl",
        "pki",
    }
    assert "private" not in await container.sh("ls /etc/ssl")
    assert await container.sh("cat /etc/passwd") == plan.ETC["/etc/passwd"].decode()
    assert await container.sh("hostname") == "agent\n"


@pytest.mark.skipif(not AS_ROOT, reason="only root can give each agent its own user")
async def test_each_agent_has_its_own_host_user(start: Start, tmp_path: Path) -> None:
    one, two = await start("one"), await start("two")
    owners = [Path(f"/proc/{pid}/loginuid").stat().st_uid for pid in (one.pid, two.pid)]
    real = [
        int(line.split()[1])
        for pid in (one.pid, two.pid)
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith("Uid:")
    ]
    assert len(set(real)) == 2
    assert min(real) >= 60_600
    assert owners == [0, 0]  # wardens are not dumpable, so the kernel gives their /proc entries to root
    assert [(tmp_path / "data/agents" / name / "home").stat().st_uid for name in ("one", "two")] == real
    assert os.geteuid() not in real


async def test_only_own_sockets_are_reachable(start: Start, tmp_path: Path) -> None:
    one, two = await start("one"), await start("two")
    connect = "import sys, socket; socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
    with (
        closing(await one.runtime.listen("one", "api", drop_stream)),
        closing(await two.runtime.listen("two", "o", drop_stream)),
    ):
        assert (await one.run("python3", "-c", connect, "/run/roost/api")).exit_code == 0
        assert (await two.run("python3", "-c", connect, "/run/roost/o")).exit_code == 0
        assert (await two.run("python3", "-c", connect, "/run/roost/api")).exit_code != 0
        assert (await one.run("ls", str(tmp_path / "data/run/one/out"))).exit_code != 0
