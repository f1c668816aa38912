"""Start of a container: limits apply before anything in it runs."""

import asyncio
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.bwrap.start import get_controllers
from roost.drivers.runtime.contract import ContainerSpec, EngineVersion, RuntimeFailed
from roost.warden_client.errors import ContainerNotRunning
from tests.conformance.containers import RunningContainer, Start, containers

pytestmark = pytest.mark.container

PRINT_GROUP_COUNT = """#!/bin/bash
while [ "$1" != -- ]; do
  [ "$1" = --info-fd ] && info=$2; [ "$1" = --block-fd ] && block=$2
  shift
done
printf '{"child-pid": %s}' $$ >&$info
read -n 1 <&$block
grep -c /roost- /proc/$$/cgroup >&2
"""


async def test_a_container_is_in_its_groups_before_it_runs(tmp_path: Path) -> None:
    bwrap = tmp_path / "bwrap"
    bwrap.write_text(PRINT_GROUP_COUNT)
    runtime = BwrapRuntime(tmp_path / "data", bwrap=bwrap)
    groups = len({controller.base for controller in get_controllers().usable})
    with pytest.raises(RuntimeFailed, match=f"warden ended: {groups}$"):
        await runtime.start(ContainerSpec("one"))
    await runtime.delete("one")


async def test_a_container_that_is_killed_during_its_start_may_be_started_again(tmp_path: Path) -> None:
    bwrap = tmp_path / "bwrap"
    bwrap.write_text(PRINT_GROUP_COUNT.replace("grep -c /roost- /proc/$$/cgroup >&2", "kill -9 $$"))
    with pytest.raises(ContainerNotRunning):
        await BwrapRuntime(tmp_path / "data", bwrap=bwrap).start(ContainerSpec("one"))
    runtime = BwrapRuntime(tmp_path / "data")
    assert (await runtime.start(ContainerSpec("one"))).agent_id == "one"
    await runtime.delete("one")


async def test_many_containers_start_concurrently(tmp_path: Path) -> None:
    async with containers(BwrapRuntime(tmp_path / "data")) as start:
        started: list[RunningContainer] = await asyncio.gather(*(start(f"agent-{number}") for number in range(12)))
        assert all(await asyncio.gather(*(container.is_responsive() for container in started)))
        assert len({container.pid for container in started}) == 12
        assert len(await started[0].runtime.list()) == 12


async def test_an_engine_with_a_missing_folder_is_reported(start: Start, tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailed, match="missing"):
        await start(engine=EngineVersion("x", str(tmp_path / "missing")))


async def test_an_unknown_engine_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailed, match=r"hermes 1\.0"):
        await BwrapRuntime(tmp_path / "data").start(ContainerSpec("one", EngineVersion("hermes", "1.0")))


async def test_a_cancelled_start_leaves_nothing(tmp_path: Path) -> None:
    runtime = BwrapRuntime(tmp_path / "data")
    starting = asyncio.create_task(runtime.start(ContainerSpec("one")))
    socket = tmp_path / "data/run/one/w.sock"
    async with asyncio.timeout(10):
        while not socket.exists():
            await asyncio.sleep(0)
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert not await runtime.list()
    assert not socket.exists()
    await runtime.delete("one")
