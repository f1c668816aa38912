"""Agents that fill the disk are stopped, say why, and can be continued; the others go on."""

import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import sqlalchemy as sa

from roost.agents.lifecycle.workflows.disk_guard import DiskGuard
from roost.core.machine.disk_space import DiskBallast
from roost.drivers.runtime.contract import ContainerSpec
from roost.drivers.runtime.fake import FakeRuntime
from roost.warden_client.client import WardenClient
from roost.work.model import OperationState
from roost.work.store import operations
from tests.agents.lifecycle.workflows.lifecycle_env import until
from tests.support.server import RunningServer, running

MIB = 1024**2
FILL = "while head -c 4M /dev/zero; do :; done > fill"


class OwnedAgent:
    """An agent and its owner's client."""

    def __init__(self, server: RunningServer, owner: httpx.AsyncClient, record: dict[str, Any]) -> None:
        self.id = record["agentId"]
        self._owner = owner
        self._console = server.agent_client(record)

    async def run(self, command: str) -> int:
        """Run a command and return its exit code, or minus the status of a refusal."""
        answer = await self._console.post("/v0/console/exec", json={"command": command})
        return answer.json()["exitCode"] if answer.status_code == 200 else -answer.status_code

    async def detail(self) -> dict[str, Any]:
        return (await self._owner.get(f"/v0/agents/{self.id}")).json()["agent"]

    async def has_failed(self) -> bool:
        return (await self.detail())["status"] == "failed"

    async def is_stopped_with_a_console(self) -> bool:
        return await self.has_failed() and await self.run("true") == 0

    async def restart(self) -> int:
        return (await self._owner.post(f"/v0/agents/{self.id}/restart")).status_code


Create = Callable[[str], Awaitable[OwnedAgent]]


def creator(server: RunningServer) -> Create:
    owner = server.client(server.key())

    async def create(name: str) -> OwnedAgent:
        answer = await owner.post("/v0/agents", json={"name": name})
        assert answer.status_code == 201, answer.text
        return OwnedAgent(server, owner, answer.json()["agent"])

    return create


async def stop_counts(server: RunningServer) -> DiskGuard:
    """Let only the test count, because a count stops an agent in the middle of the command that fills its disk."""
    guard = server.roost.agents.lifecycle.start.disk_guard
    await guard.stop()
    return guard


@pytest.mark.container
async def test_an_agent_above_its_limit_is_stopped_until_it_deleted_files(tmp_path: Path) -> None:
    async with running(tmp_path / "data", ROOST_AGENT_DISK="64M") as server:
        create, guard = creator(server), await stop_counts(server)
        large, other = await create("large"), await create("other")
        assert await large.run("head -c 80M /dev/urandom > big; sync big") == 0
        await guard.measure_agents()
        await until(large.is_stopped_with_a_console)
        reason = (await large.detail())["statusReason"]
        assert "0.08 GiB" in reason
        assert "limit of 0.06 GiB" in reason
        assert "roost exec" in reason
        assert await large.run("echo x > small") != 0
        assert await large.restart() == 500
        assert (await large.detail())["statusReason"] == reason
        assert await large.run("rm big") == 0
        assert await large.restart() == 200
        assert await large.run("echo x > small") == 0
        assert (await other.detail())["status"] == "running"


async def test_an_agent_with_too_many_files_to_count_is_stopped(tmp_path: Path) -> None:
    async with running(tmp_path / "data", runtime=FakeRuntime(tmp_path / "data")) as server:
        agent, guard = await creator(server)("deep"), await stop_counts(server)
        deep = "for i in $(seq 110); do mkdir d && cd d || exit; done"
        assert await agent.run(deep) == 0
        await guard.measure_agents()
        await until(agent.is_stopped_with_a_console)
        assert "too deep" in (await agent.detail())["statusReason"]


async def test_a_stopped_agent_stays_so_when_the_server_starts_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with running(data, runtime=FakeRuntime(data), stop=False, ROOST_AGENT_DISK="64M") as server:
        agent, guard = await creator(server)("large"), await stop_counts(server)
        assert await agent.run("head -c 80M /dev/urandom > big; sync big") == 0
        await guard.measure_agents()
        await until(agent.is_stopped_with_a_console)
        before = await agent.detail()
        (container,) = await server.roost.drivers.runtime.list()
    async with running(data, runtime=FakeRuntime(data), ROOST_AGENT_DISK="64M") as server:
        agent = OwnedAgent(server, server.client(server.key()), before)

        async def has_failed_again() -> bool:
            """Return whether the start of the adopted agent, its second, has failed."""
            query = sa.select(operations.c.state).where(operations.c.kind == "agent.start")
            states = await server.roost.core.db.read(lambda connection: connection.scalars(query).all())
            return states.count(OperationState.FAILED) == 2

        await until(has_failed_again)
        await until(agent.is_stopped_with_a_console)
        assert (await agent.detail())["statusReason"] == before["statusReason"]
        assert list(await server.roost.drivers.runtime.list()) == [container]


@contextmanager
def mounted(folder: Path, *options: str | Path) -> Iterator[Path]:
    folder.mkdir()
    if subprocess.run(["mount", *options, folder], check=False).returncode:
        pytest.skip("a disk of its own takes root")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@pytest.mark.parametrize("command", [FILL, "i=0; while fallocate -l 8M $i; do i=$((i+1)); done; sleep 30"])
async def test_who_filled_the_disk_is_stopped_and_the_server_goes_on(tmp_path: Path, command: str) -> None:
    """The disk of 256 MiB, of which 16 are the reserve, is full before the next check."""
    with mounted(tmp_path / "disk", "-t", "tmpfs", "-o", "size=256m", "tmpfs") as data:
        async with running(data, runtime=FakeRuntime(data)) as server:
            create = creator(server)
            writer, other = await create("writer"), await create("other")
            await until(lambda: has_ballast(data))
            assert await other.run("head -c 20M /dev/zero > before") == 0
            assert await writer.run(f"({command}) > /dev/null 2>&1 &") == 0
            await until(writer.is_stopped_with_a_console)
            assert "disk of the server is almost full" in (await writer.detail())["statusReason"]
            assert (await other.detail())["status"] == "running"
            assert await writer.restart() == 500
            assert await writer.run("rm -f fill [0-9]*") == 0
            assert await writer.restart() == 200
            assert await other.run("echo x > small") == 0
            await until(lambda: has_ballast(data))


async def test_a_data_folder_that_takes_no_ballast_disables_only_that(tmp_path: Path) -> None:
    runtime = FakeRuntime(tmp_path / "data")
    await runtime.start(ContainerSpec("one"))
    (tmp_path / "ballast").symlink_to(tmp_path / "missing" / "folder")
    guard = DiskGuard(runtime, None, MIB, DiskBallast(tmp_path / "ballast", MIB))
    for _ in range(2):
        await guard.check_space()
    assert guard._ballast is None
    await runtime.delete("one")


async def has_ballast(data: Path) -> bool:
    file = data / "ballast"
    return file.exists() and file.stat().st_blocks * 512 >= 15 * MIB


async def test_who_writes_is_stopped_at_the_reserve_without_a_count(tmp_path: Path) -> None:
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(256 * MIB)
    subprocess.run(["mkfs.ext4", "-q", "-m", "0", image], check=True)
    with mounted(tmp_path / "disk", "-o", "loop", image) as data:  # the kernel counts writes to a disk, not to memory
        runtime = FakeRuntime(data)
        guard = DiskGuard(runtime, None, 1024 * MIB, None)
        for agent_id in ("writer", "other"):
            await runtime.start(ContainerSpec(agent_id))
        write = partial(WardenClient(partial(runtime.connect, "writer")).exec, timeout=30)
        kept = runtime.disk.read_space().reserved(1024 * MIB)
        (data / "filler").write_bytes(bytes(runtime.disk.read_space().free - int(1.5 * kept)))
        os.sync()
        assert (await write(["sh", "-c", "head -c 4M /dev/urandom > before; sync before"])).exit_code == 0
        await guard.check_space()
        assert {found.agent_id for found in await runtime.list()} == {"writer", "other"}
        assert (await write(["sh", "-c", "head -c 8M /dev/urandom > file; sync file"])).exit_code == 0
        await guard.check_space()
        assert {found.agent_id for found in await runtime.list()} == {"other"}
        assert "almost full" in str(await guard.find_excess("writer"))
        assert await guard.find_excess("other") is None
        (data / "filler").unlink()
        assert await guard.find_excess("writer") is None
        await runtime.delete("other")
