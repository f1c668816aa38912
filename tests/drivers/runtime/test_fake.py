"""Behaviour of the fake runtime only: no isolation, and it reports so."""

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
    folder = tmp_path / ("long" * 30)  # longer than the limit of socket paths
    folder.mkdir()
    async with open_runtime_env(FakeRuntime, folder) as opened:
        yield opened


async def test_nothing_is_enforced(env: RuntimeEnv) -> None:
    capabilities = await env.runtime.probe()
    assert capabilities.usable
    assert not any(item.enforced for item in capabilities.enforcement)


async def test_folders_have_their_host_paths(env: RuntimeEnv) -> None:
    container = await env.container()
    result = await container.exec(["sh", "-c", "pwd; echo $HOME"])
    assert result.stdout.decode().splitlines() == [str(env.workspace()), str(env.home())]


async def test_two_containers_may_use_one_port_if_the_kernel_allows(env: RuntimeEnv) -> None:
    wardens = [await env.container(ContainerSpec(name, relays={8799: "api"})) for name in ("one", "two")]
    spaces = {(await warden.exec(["readlink", "/proc/self/ns/net"])).stdout for warden in wardens}
    if len(spaces) == 1:
        pytest.skip("the kernel allows no network namespace")
    for name, warden in zip(("one", "two"), wardens, strict=True):

        async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter, name: str = name) -> None:
            writer.write(name.encode())
            writer.close()
            await writer.wait_closed()

        with closing(await env.runtime.listen(name, "api", answer)):
            asked = "import socket; print(socket.create_connection(('127.0.0.1', 8799)).recv(9).decode(), end='')"
            assert (await warden.exec(["python3", "-c", asked])).stdout == name.encode()


async def test_wardens_of_other_folders_are_ignored(env: RuntimeEnv, tmp_path: Path) -> None:
    await env.container()
    (env.folder / "run" / AGENT / "container.json").unlink()
    assert not await FakeRuntime(tmp_path / "other").list()
    assert (await env.warden().ping()).uptime > 0


async def test_a_timeout_kills_no_command_of_another_container(env: RuntimeEnv) -> None:
    one, two = [await env.container(ContainerSpec(name)) for name in ("one", "two")]
    durations = [sleeper() for _ in range(3)]
    others = [asyncio.create_task(one.exec(["sleep", duration])) for duration in durations]
    await until(lambda: all(map(sleeping, durations)))
    for _ in durations:
        assert (await two.exec(["sleep", "60"], timeout=0.05)).timed_out
    assert all(map(sleeping, durations))
    for task in others:
        task.cancel()
