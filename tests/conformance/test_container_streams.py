"""Byte streams to ports of a container's loopback, over every runtime."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from roost.drivers.runtime.contract import BRIDGE_PORT, WARDEN_PORTS, ContainerSpec
from roost.drivers.runtime.fake import FakeRuntime
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import DialRefused
from tests.conformance.runtimes import AGENT, CARRIER_CASES, RuntimeEnv, open_runtime_env, until

ECHO = """
import socket, sys
server = socket.create_server(("127.0.0.1", 7000))
while True:
    one = server.accept()[0]
    received = b"".join(iter(lambda: one.recv(65536), b""))
    one.sendall(received + b" that was %d" % len(received))
    one.close()
"""


@pytest.fixture(params=CARRIER_CASES)
async def env(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[RuntimeEnv]:
    async with open_runtime_env(request.param, tmp_path) as found:
        yield found


@pytest.fixture
async def container(env: RuntimeEnv) -> WardenClient:
    return await env.container()


async def test_a_stream_supports_half_close(container: WardenClient) -> None:
    await _serve(container, ECHO)
    data = bytes(range(256)) * 20_000
    reader, writer = await container.dial(7000)
    writer.write(data)
    writer.write_eof()
    async with asyncio.timeout(20):
        assert await reader.read() == data + b" that was %d" % len(data)
    writer.close()


async def test_a_port_without_a_listener_is_refused(container: WardenClient) -> None:
    for port in (7999, 0, 65536, -1):
        with pytest.raises(DialRefused):
            await container.dial(port)


async def test_a_listener_of_the_warden_is_refused_in_every_spelling(env: RuntimeEnv) -> None:
    """Also when a program of the agent serves the same port on IPv6."""
    served = asyncio.Event()
    server = "import socket, time; socket.create_server(('::1', 8799), family=socket.AF_INET6); time.sleep(60)"

    def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.set()
        writer.close()

    with closing(await env.runtime.listen(AGENT, "api", serve)):
        spec = ContainerSpec(AGENT, relays={8799: "api", 8798: "api"}, egress="api")
        container = await env.container(spec)
        await container.start("six", ["/usr/bin/python3", "-c", server], env={}, restart=False)
        ports: list[Any] = [8799, 8798, "8799", 8799.9, 8799 + 65536, 8799 - 65536]
        for port in ports:
            with pytest.raises(DialRefused):
                await container.dial(port)
        if env.make is not FakeRuntime:  # the fake one serves names only if the kernel lets it
            own = WARDEN_PORTS - {BRIDGE_PORT}  # its bridge has a socket
            async with asyncio.timeout(10):
                while await _listening_ports(container) != own:  # low ones only once the runtime allows them
                    await asyncio.sleep(0.01)
            for port in WARDEN_PORTS:
                with pytest.raises(DialRefused):
                    await container.dial(port)
        own_program = "import socket; print(socket.create_connection(('127.0.0.1', 8799)).recv(1))"
        assert (await container.exec(["/usr/bin/python3", "-c", own_program])).exit_code == 0
    assert served.is_set()


async def test_a_stream_to_an_ipv6_port(container: WardenClient) -> None:
    await _serve(container, ECHO.replace('"127.0.0.1", 7000)', '"::1", 7000), family=socket.AF_INET6'))
    reader, writer = await container.dial(7000)
    writer.write(b"six")
    writer.write_eof()
    assert await asyncio.wait_for(reader.read(), 10) == b"six that was 3"
    writer.close()


async def test_a_stream_has_backpressure(container: WardenClient) -> None:
    accept = "import socket; one = socket.create_server(('127.0.0.1', 7000)).accept()[0]"
    flood = f"{accept}\nwhile 1: one.sendall(b'x' * 65536)"
    await _serve(container, flood)
    before = await _memory(container)
    reader, writer = await container.dial(7000)
    assert await reader.readexactly(1000)
    quiet = time.monotonic() + 0.3
    await until(lambda: time.monotonic() > quiet)
    assert await _memory(container) - before < 8 * 1024
    writer.close()


async def _listening_ports(container: WardenClient) -> set[int]:
    lines = (await container.exec(["cat", "/proc/net/tcp"])).stdout.decode().splitlines()[1:]
    return {int(line.split()[1][-4:], 16) for line in lines if line.split()[3] == "0A"}


async def _serve(container: WardenClient, program: str) -> None:
    await container.start("server", ["/usr/bin/python3", "-c", program], env={}, restart=False)
    async with asyncio.timeout(10):
        while b":1B58 " not in (await container.exec(["sh", "-c", "cat /proc/net/tcp /proc/net/tcp6"])).stdout:
            await asyncio.sleep(0.01)


async def _memory(container: WardenClient) -> int:
    """Return the warden's resident memory in KiB."""
    status = await container.exec(["cat", f"/proc/{(await container.ping()).pid}/status"])
    return int(next(line.split()[1] for line in status.stdout.decode().splitlines() if line.startswith("VmRSS")))
