"""The order of a start: limits before the first step of what runs in the container."""

import asyncio
from pathlib import Path

import pytest

from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.bwrap.start import controllers
from roost.drivers.runtime.contract import ContainerSpec, EngineVersion, RuntimeFailed
from tests.drivers.runtime.bwrap.containers import Inside, Start, containers

pytestmark = pytest.mark.container

TELLS_ITS_GROUPS = """#!/bin/bash
while [ "$1" != -- ]; do
  [ "$1" = --info-fd ] && info=$2; [ "$1" = --block-fd ] && block=$2
  shift
done
printf '{"child-pid": %s}' $$ >&$info
read -n 1 <&$block
grep -c /roost- /proc/$$/cgroup >&2
"""


async def test_it_is_in_its_groups_before_it_runs(tmp_path: Path) -> None:
    bwrap = tmp_path / "bwrap"
    bwrap.write_text(TELLS_ITS_GROUPS)
    runtime = BwrapRuntime(tmp_path / "data", bwrap=bwrap)
    groups = len({one.base for one in controllers().usable})
    with pytest.raises(RuntimeFailed, match=f"warden ended: {groups}$"):
        await runtime.start(ContainerSpec("one"))
    await runtime.delete("one")


async def test_many_start_at_once(tmp_path: Path) -> None:
    async with containers(tmp_path / "data") as start:
        started: list[Inside] = await asyncio.gather(*(start(f"box-{number}") for number in range(12)))
        assert all(await asyncio.gather(*(container.answers() for container in started)))
        assert len({container.pid for container in started}) == 12
        assert len(await started[0].runtime.list()) == 12


async def test_an_engine_whose_folder_is_missing_is_told(start: Start, tmp_path: Path) -> None:
    with pytest.raises(RuntimeFailed, match="missing"):
        await start(engine=EngineVersion("x", str(tmp_path / "missing")))


async def test_an_engine_that_nobody_can_find_is_told(tmp_path: Path) -> None:
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
