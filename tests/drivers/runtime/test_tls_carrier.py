"""Carriers over TCP and TLS: a warden at a port of this machine, its own agent's certificate, and everybody else."""

import asyncio
import json
import os
import signal
import socket
import ssl
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

import roost.warden
from roost.core.sensitive import Sensitive
from roost.drivers.runtime.bridge import WINDOW_BYTES, Bridge
from roost.drivers.runtime.bridges import Bridges
from roost.drivers.runtime.tls_carrier import (
    listen_tls_carriers,
    make_bridge_certificate,
    make_bridge_context,
    open_tls_carrier,
)
from roost.warden.tls import HANDSHAKE_SECONDS
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import ContainerNotRunning, DialRefused
from tests.support.acme import find_free_ports

AGENT, OTHER = "abcdefgh12345678", "bcdefgh123456789"
ALERT = 21  # type of a record, RFC 8446, section 5.1
PROGRAM = Path(roost.warden.__path__[0]) / "warden.py"


@dataclass
class Warden:
    port: int
    certificate: Sensitive[str]
    pid: int

    async def open_carrier(self, _: str, bridge: Bridge) -> None:
        await open_tls_carrier("127.0.0.1", self.port, make_bridge_context(self.certificate), bridge)

    @property
    def client(self) -> WardenClient:
        bridges = Bridges(self.open_carrier)
        return WardenClient(lambda: bridges.connect(AGENT))


@pytest.fixture
async def warden(tmp_path: Path) -> AsyncIterator[Warden]:
    certificate, port = make_bridge_certificate(AGENT), find_free_ports(1)[0]
    (tmp_path / "certificate.pem").write_text(certificate.reveal())
    config = {
        "agent": AGENT, "workspace": str(tmp_path), "home": str(tmp_path), "env": {"PATH": os.environ["PATH"]},
        "bridge": {"port": port, "certificate": str(tmp_path / "certificate.pem")},
    }  # fmt: skip
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-S", "-E", "-I", str(PROGRAM), json.dumps(config), start_new_session=True
    )
    try:
        await wait_for_port(port)
        yield Warden(port, certificate, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        assert await process.wait() == 0


async def wait_for_port(port: int) -> None:
    async with asyncio.timeout(15):
        while True:
            with suppress(ConnectionRefusedError):
                (await asyncio.open_connection("127.0.0.1", port))[1].close()
                return
            await asyncio.sleep(0.01)


async def test_requests_pass_through_the_carrier(warden: Warden) -> None:
    result = await warden.client.exec(["sh", "-c", "head -c 1000000 /dev/zero; echo x >&2"], timeout=20)
    assert (len(result.stdout), result.stderr, result.exit_code) == (1_000_000, b"x\n", 0)
    await warden.client.ping()


async def test_much_data_passes_in_both_directions(warden: Warden) -> None:
    blocks = [number.to_bytes(2) * 16 * 1024 for number in range(200)]

    async def send() -> AsyncIterator[bytes]:
        for block in blocks:
            yield block

    async with warden.client.exec_stream(["cat"], stdin=send(), timeout=30) as outputs:
        received = [output.data async for output in outputs]
    assert b"".join(received) == b"".join(blocks)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_a_warden_is_reached_by_both_versions_of_ip(warden: Warden, host: str) -> None:
    if host == "::1" and not has_ipv6():
        pytest.skip("this machine has no IPv6")
    ended = Bridge(lambda _: None)
    await open_tls_carrier(host, warden.port, make_bridge_context(warden.certificate), ended)
    async with asyncio.timeout(30):
        await ended.ping()
    ended.abort()


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as sock:
            sock.bind(("::1", 0))
    except OSError:
        return False
    return True


async def test_the_port_of_the_bridge_is_dialled_by_no_one_else(warden: Warden) -> None:
    with pytest.raises(DialRefused):
        await warden.client.dial(warden.port)


async def test_another_agents_certificate_is_refused(warden: Warden) -> None:
    other = make_bridge_context(make_bridge_certificate(OTHER))
    other.load_verify_locations(cadata=warden.certificate.reveal())  # so that only the warden refuses
    reader, writer = await asyncio.open_connection("127.0.0.1", warden.port, ssl=other, server_hostname="")
    with pytest.raises(ssl.SSLError, match="alert"):
        await reader.read()
    writer.close()
    await warden.client.ping()


async def test_another_warden_is_refused(warden: Warden) -> None:
    wrong = Warden(warden.port, make_bridge_certificate(AGENT), warden.pid)
    with pytest.raises(ssl.SSLCertVerificationError):
        await wrong.open_carrier(AGENT, Bridge(lambda _: None))
    with pytest.raises(ContainerNotRunning):
        await wrong.client.ping()


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"p" + bytes(8),
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x16\x03\x01\xff\xff" + b"x" * 70_000,
        b"\x15\x03\x03\x00\x02\x02\x00",
    ],
)
async def test_who_shows_no_certificate_is_disconnected(warden: Warden, sent: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", warden.port)
    writer.write(sent)
    async with asyncio.timeout(HANDSHAKE_SECONDS + 10):
        answer = await read_until_end(reader)
    writer.close()
    assert not answer or answer[0] == ALERT
    await warden.client.ping()


async def test_old_versions_of_tls_are_refused(warden: Warden) -> None:
    context = make_bridge_context(warden.certificate)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(OSError):
        await asyncio.open_connection("127.0.0.1", warden.port, ssl=context, server_hostname="")


async def test_a_slow_reader_does_not_stop_others(warden: Warden) -> None:
    client = warden.client
    async with client.exec_stream(["sh", "-c", "while :; do head -c 1000000 /dev/zero; done"], timeout=60) as outputs:
        assert (await anext(outputs)).data
        assert (await client.exec(["echo", "done"], timeout=20)).stdout == b"done\n"


class ShortAnswer(asyncio.Protocol):
    """The other end of a bridge: it answers the first stream with all that its window allows, and goes."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        if data.startswith(b"o"):
            for _ in range(8):
                self.transport.write(struct.pack("!cII", b"d", 1, WINDOW_BYTES // 8) + bytes(WINDOW_BYTES // 8))
            self.transport.write(struct.pack("!cII", b"e", 1, 0))
            self.transport.close()


@pytest.mark.parametrize("anyio_backend", [("asyncio", {"use_uvloop": used}) for used in (False, True)])
async def test_an_answer_that_has_arrived_is_read_after_the_carrier_has_ended() -> None:
    """Also by a reader that had paused its stream, as one does whose client is slow."""
    certificate, (port,) = make_bridge_certificate(AGENT), find_free_ports(1)
    listener = await listen_tls_carriers("127.0.0.1", port, certificate, ShortAnswer)
    bridge = Bridge(lambda _: None)
    try:
        await open_tls_carrier("127.0.0.1", port, make_bridge_context(certificate), bridge)
        reader, writer = bridge.open()
        async with asyncio.timeout(30):
            await bridge.ended
            assert len(await reader.read()) == WINDOW_BYTES
        writer.close()
    finally:
        bridge.abort()
        listener.close()


async def test_a_broken_carrier_is_opened_again(warden: Warden) -> None:
    carriers: list[Bridge] = []

    async def open_carrier(agent_id: str, bridge: Bridge) -> None:
        carriers.append(bridge)
        await warden.open_carrier(agent_id, bridge)

    bridges = Bridges(open_carrier)
    client = WardenClient(lambda: bridges.connect(AGENT))
    await client.ping()
    carriers[0].abort()
    await client.ping()
    assert len(carriers) == 2


async def read_until_end(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionResetError:  # it had not read all
        return b""
