"""What the fake adds to the contract (`tests/conformance/test_runtime.py`): it fences off nothing, and says so."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from roost.drivers.runtime.contract import ContainerSpec
from roost.drivers.runtime.fake import FakeRuntime
from tests.conformance.runtimes import AGENT, RuntimeEnv, open_runtime_env, sleeper, sleeping, until


@pytest.fixture
async def env(tmp_path: Path) -> AsyncIterator[RuntimeEnv]:
    folder = tmp_path / ("long" * 30)  # a socket's address would not hold it
    folder.mkdir()
    async with open_runtime_env(FakeRuntime, folder) as found:
        yield found


async def test_it_promises_nothing(env: RuntimeEnv) -> None:
    found = await env.runtime.probe()
    assert found.usable
    assert not any(item.enforced for item in found.enforcement)
    assert not found.enforces("network")


async def test_its_folders_are_where_they_are_on_the_host(env: RuntimeEnv) -> None:
    container = await env.container()
    result = await container.exec(["sh", "-c", "pwd; echo $HOME"])
    assert result.stdout.decode().splitlines() == [str(env.workspace()), str(env.home())]


async def test_two_boxes_may_use_one_port_where_the_kernel_lets_them(env: RuntimeEnv) -> None:
    wardens = [await env.container(ContainerSpec(name, relays={8799: "api"})) for name in ("one", "two")]
    spaces = {(await warden.exec(["readlink", "/proc/self/ns/net"])).stdout for warden in wardens}
    if len(spaces) == 1:
        pytest.skip("the kernel allows no network of one's own here")
    for name, warden in zip(("one", "two"), wardens, strict=True):

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str = name) -> None:
            writer.write(name.encode())
            writer.close()
            await writer.wait_closed()

        with closing(await env.runtime.listen(name, "api", answer)):
            reader, writer = await warden.dial(8799)
            assert await reader.read() == name.encode()
            writer.close()


async def test_a_warden_of_another_folder_is_none_of_its_business(env: RuntimeEnv, tmp_path: Path) -> None:
    await env.container()
    (env.folder / "run" / AGENT / "container.json").unlink()
    assert not await FakeRuntime(tmp_path / "other").list()
    assert (await env.warden().ping()).uptime > 0


async def test_a_box_ends_no_command_of_another(env: RuntimeEnv) -> None:
    one, two = [await env.container(ContainerSpec(name)) for name in ("one", "two")]
    durations = [sleeper() for _ in range(3)]
    spared = [asyncio.create_task(one.exec(["sleep", duration])) for duration in durations]
    await until(lambda: all(map(sleeping, durations)))
    for _ in durations:
        assert (await two.exec(["sleep", "60"], timeout=0.05)).timed_out
    assert all(map(sleeping, durations))
    for task in spared:
        task.cancel()
