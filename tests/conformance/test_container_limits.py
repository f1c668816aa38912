"""Limits protect other containers and the server."""

import pytest

from roost.drivers.runtime.bwrap.driver import BwrapRuntime
from roost.drivers.runtime.bwrap.start import get_controllers
from roost.drivers.runtime.contract import ContainerLimits
from tests.conformance.containers import RunningContainer, Start

MIB = 1 << 20


def skip_without_controller(container: RunningContainer, name: str) -> None:
    """Skip the test of a container of bwrap if the server's user has no such control groups; Docker has its own."""
    is_limited = any(controller.name == name for controller in get_controllers().usable)
    if isinstance(container.runtime, BwrapRuntime) and not is_limited:
        pytest.skip(get_controllers().unavailable.get(name, ""))


async def test_a_fork_bomb_ends_at_the_limit(start: Start) -> None:
    bombed, other = await start("one", limits=ContainerLimits(pids=40)), await start("two")
    count = await bombed.run_python("""
import signal, time
children = []
try:
    for _ in range(500):
        child = os.fork()
        if child == 0: time.sleep(100)
        children.append(child)
except OSError: pass
tell(len(children))
for child in children: os.kill(child, signal.SIGKILL)""")
    assert 10 < count < 40
    assert await bombed.is_responsive()
    assert await other.is_responsive()


async def test_a_memory_hog_is_killed_alone(start: Start) -> None:
    hog, other = await start("one", limits=ContainerLimits(memory_bytes=128 * MIB)), await start("two")
    skip_without_controller(hog, "memory")
    result = await hog.run("python3", "-c", "b = bytearray(500 << 20)")
    assert result.exit_code == 137
    assert await hog.is_responsive()
    assert await other.is_responsive()


async def test_processor_time_is_limited(start: Start) -> None:
    container = await start(limits=ContainerLimits(cpus=0.5))
    skip_without_controller(container, "cpu")
    used = await container.run_python("""
import time
began = time.monotonic()
while time.process_time() < 0.3: pass
tell([time.monotonic() - began, time.process_time()])""")
    assert used[0] > 1.5 * used[1]  # half a processor at most, however fast or busy the machine is


async def test_a_file_does_not_grow_beyond_the_limit(start: Start) -> None:
    container = await start(limits=ContainerLimits(file_bytes=MIB))
    assert (await container.run("sh", "-c", "head -c 2M /dev/zero > /workspace/file")).exit_code != 0
    assert await container.sh("stat -c %s /workspace/file") == f"{MIB}\n"
    assert await container.is_responsive()


@pytest.mark.parametrize("place", ["/tmp", "/dev/shm"])
async def test_files_in_memory_are_bounded(start: Start, place: str) -> None:
    container = await start(limits=ContainerLimits(tmp_bytes=MIB))
    assert (await container.run("sh", "-c", f"head -c 2M /dev/zero > {place}/file")).exit_code != 0
    assert int(await container.sh(f"stat -c %s {place}/file")) <= MIB


async def test_open_files_are_bounded(start: Start) -> None:
    container: RunningContainer = await start(limits=ContainerLimits(open_files=64))
    assert await container.sh("ulimit -Hn; ulimit -Hc") == "64\n0\n"
