"""The warden as a process: its replies, and its defence against clients that break the protocol."""

import asyncio
import json
import os
import resource
import signal
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

import roost.warden
from roost.core.machine.unix_socket import StreamHandler
from roost.drivers.runtime.contract import ContainerSpec
from roost.drivers.runtime.fake import FakeRuntime
from roost.warden_client.errors import ContainerNotRunning, WardenFileTooLarge
from tests.conformance.bridged_runtimes import BridgedFakeRuntime
from tests.conformance.runtimes import AGENT, RuntimeEnv, open_runtime_env, sleeper, sleeping, until

PROGRAM = Path(roost.warden.__path__[0]) / "warden.py"


@pytest.fixture
async def env(tmp_path: Path) -> AsyncIterator[RuntimeEnv]:
    async with open_runtime_env(FakeRuntime, tmp_path) as opened:
        await opened.runtime.start(ContainerSpec(AGENT))
        yield opened


async def send_request(env: RuntimeEnv, line: bytes) -> dict[str, Any]:
    """Send a request line and return the reply."""
    reader, writer = await env.runtime.connect(AGENT)
    writer.write(line)
    async with asyncio.timeout(5):
        reply = json.loads(await reader.readline())
    writer.transport.abort()
    return reply


async def test_a_ping_returns_pid_and_uptime(env: RuntimeEnv) -> None:
    reply = await send_request(env, b'{"op": "ping"}\n')
    assert reply["ok"] is True
    assert Path(f"/proc/{reply['pid']}/cmdline").read_bytes().split(b"\0")[4] == str(PROGRAM).encode()
    assert 0 <= reply["uptime"] < 60


@pytest.mark.parametrize(
    "line",
    [b"\n", b"{}\n", b"[]\n", b"7\n", b"null\n", b'"ping"\n', b'{"op": 7}\n', b'{"op": []}\n', b'{"op": "run"}\n',
     b'{"op": "__init__"}\n', b'{"op": "ping"\n', b"\xff\xfe\n", b'{"op": "dial"}\n', b'{"op": "dial", "port": "x"}\n',
     b'{"op": "read", "root": "etc", "path": "passwd", "limit": 9}\n', b'{"op": "read", "root": "home", "limit": 9}\n',
     b'{"op": "exec", "argv": ["true"], "stdin": false}\n', b'{"op": "logs", "limit": []}\n', b"[" * 100_000 + b"\n",
     b'{"op": "exec", "argv": [7], "stdin": false, "timeout": 1}\n', b'{"op": "stop"}\n', b'{"op": "start"}\n'],
)  # fmt: skip
async def test_malformed_requests_are_answered(env: RuntimeEnv, line: bytes) -> None:
    reply = await send_request(env, line)
    assert (reply["ok"], reply["error"]) in [(False, "badRequest"), (False, "execRefused")]
    assert (await send_request(env, b'{"op": "ping"}\n'))["ok"]


async def test_an_endless_request_is_disconnected(env: RuntimeEnv) -> None:
    reader, writer = await env.runtime.connect(AGENT)
    with pytest.raises(ConnectionError):
        await _write_endlessly(writer)
    assert reader.exception() is not None
    assert (await send_request(env, b'{"op": "ping"}\n'))["ok"]


async def test_silent_clients_are_disconnected(env: RuntimeEnv) -> None:
    connections = [await env.runtime.connect(AGENT) for _ in range(5)]
    async with asyncio.timeout(20):
        replies = await asyncio.gather(*(reader.read() for reader, _ in connections))
    assert all(not reply or b'"ok": false' in reply for reply in replies)
    for _, writer in connections:
        writer.close()


async def test_connections_are_bounded_and_the_next_one_is_closed(env: RuntimeEnv) -> None:
    held = [await env.runtime.connect(AGENT) for _ in range(512)]
    reader, writer = await env.runtime.connect(AGENT)
    async with asyncio.timeout(5):
        assert await reader.read() == b""
    for _, other in [*held, (reader, writer)]:
        other.transport.abort()
    async with asyncio.timeout(10):
        while not await _is_responsive(env):
            await asyncio.sleep(0.01)


async def test_a_command_survives_unknown_frames(env: RuntimeEnv) -> None:
    reader, writer = await env.runtime.connect(AGENT)
    writer.write(b'{"op": "exec", "argv": ["cat"], "stdin": true, "timeout": 10, "limit": null}\n')
    assert json.loads(await reader.readline())["ok"]
    writer.write(b"z\0\0\0\3abc" + b"i\0\0\0\3abc" + b"i\0\0\0\0" + b"i\0\0\0\2no")
    assert await reader.readexactly(8) == b"o\0\0\0\3abc"
    assert (await reader.readexactly(5))[:1] == b"x"
    writer.close()


async def test_a_frame_that_is_too_long_ends_the_command(env: RuntimeEnv) -> None:
    reader, writer = await env.runtime.connect(AGENT)
    writer.write(b'{"op": "exec", "argv": ["sleep", "1000"], "stdin": true, "timeout": 100, "limit": null}\n')
    assert json.loads(await reader.readline())["ok"]
    writer.write(b"i\xff\xff\xff\xff")
    async with asyncio.timeout(5):
        assert b"1000" not in await reader.read()
    writer.close()


async def test_a_write_that_fails_is_answered_and_leaves_no_file(env: RuntimeEnv) -> None:
    container = env.warden()
    resource.prlimit((await container.ping()).pid, resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    with pytest.raises(WardenFileTooLarge):
        await container.write("big", bytes(5_000_000))
    assert not list(env.workspace().iterdir())
    await container.write("small", b"x")


async def test_sigterm_ends_all_processes(env: RuntimeEnv) -> None:
    container, durations = env.warden(), [sleeper() for _ in range(3)]
    watched, command, lost = durations
    await container.start("gateway", ["sleep", watched], env={})
    running = asyncio.create_task(container.exec(["sleep", command]))
    await container.exec(["sh", "-c", f"(env -i setsid sleep {lost} &)"])
    await until(lambda: all(map(sleeping, durations)))
    pid = (await container.ping()).pid
    os.kill(pid, signal.SIGTERM)
    await asyncio.gather(running, return_exceptions=True)
    await until(lambda: not any(map(sleeping, durations)))
    assert await asyncio.to_thread(os.waitpid, pid, 0) == (pid, 0)


async def test_commands_inherit_nothing_of_the_warden(env: RuntimeEnv) -> None:
    held = (await env.warden().exec(["ls", "-l", "/proc/self/fd"])).stdout.decode()
    assert sorted(line.split()[8] for line in held.splitlines()[1:]) == ["0", "1", "2", "3"]
    assert "socket:" not in held
    ignored = (await env.warden().exec(["grep", "SigIgn", "/proc/self/status"])).stdout.decode()
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        assert not int(ignored.split()[1], 16) & 1 << (number - 1)


async def test_memory_use_is_bounded(env: RuntimeEnv) -> None:
    pid = (await env.warden().ping()).pid
    for _ in range(50):
        await env.warden().exec(["true"])
    status = Path(f"/proc/{pid}/status").read_text()
    assert int(next(line.split()[1] for line in status.splitlines() if line.startswith("RssAnon"))) < 16 * 1024
    assert b"ssl" not in Path(f"/proc/{pid}/maps").read_bytes()


async def _write_endlessly(writer: asyncio.StreamWriter) -> None:
    async with asyncio.timeout(10):
        while True:
            writer.write(b"x" * 65536)
            await writer.drain()


async def _is_responsive(env: RuntimeEnv) -> bool:
    try:
        return bool(await env.warden().ping())
    except ContainerNotRunning:
        return False


async def test_a_command_is_killed_if_its_client_left_before_the_reply(env: RuntimeEnv) -> None:
    for _ in range(5):
        _, writer = await env.runtime.connect(AGENT)
        duration = sleeper()
        request = {"op": "exec", "argv": ["sleep", duration], "timeout": 600, "stdin": False}
        writer.write(json.dumps(request).encode() + b"\n")
        writer.transport.abort()  # the request is sent, but nothing receives the reply
        assert (await send_request(env, b'{"op": "ping"}\n'))["ok"]
        await until(lambda duration=duration: not sleeping(duration))


async def test_the_relays_go_back_to_the_older_bridge_when_the_newest_ends(tmp_path: Path) -> None:
    def answer(name: bytes) -> StreamHandler:
        def write(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(name)
            writer.close()

        return write

    fetch = "import socket; print(socket.create_connection(('127.0.0.1', 8799)).makefile().read(), end='')"
    async with open_runtime_env(BridgedFakeRuntime, tmp_path) as env:
        old, new = env.runtime, env.again()
        assert isinstance(new, BridgedFakeRuntime)
        await old.listen(AGENT, "api", answer(b"old"))
        container = await env.container(ContainerSpec(AGENT, relays={8799: "api"}))

        async def ask() -> bytes:
            return (await container.exec(["/usr/bin/python3", "-c", fetch], timeout=30)).stdout

        assert await ask() == b"old"
        await new.listen(AGENT, "api", answer(b"new"))
        assert await ask() == b"new"
        await new.bridges.drop(AGENT)
        async with asyncio.timeout(60):
            while (answered := await ask()) != b"old":
                assert answered == b""  # the warden has not seen the end of the bridge yet
