"""Handshakes that say whether a valid certificate is served; with our own proxy in tests/journeys/test_tls.py."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path

import pytest

from roost.core.machine.unix_socket import Stream
from roost.http.tls.certificates import CertificateChecker
from roost.net.dialer import PublicDialer
from roost.net.host_port import HostPort
from roost.net.policy import EgressPolicy
from roost.net.resolver import SystemResolver
from tests.platforms.tls import Authority

NAME = "app.example.com"


@asynccontextmanager
async def serving(authority: Authority | None, *names: str) -> AsyncIterator[int]:
    async def close(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    context = authority.server(*names) if authority else None
    async with await asyncio.start_server(close, "127.0.0.1", 0, ssl=context) as server:
        yield server.sockets[0].getsockname()[1]


async def check(port: int, *authorities: Path, seconds: float = 10) -> str | None:
    async def connect(_name: str) -> Stream:
        return await asyncio.open_connection("127.0.0.1", port)

    return await CertificateChecker(connect, authorities, _seconds=seconds).check(NAME)


async def test_a_valid_certificate_is_found(tmp_path: Path) -> None:
    authority = Authority("company")
    (tmp_path / "ca.pem").write_bytes(authority.certificate)
    async with serving(authority, NAME) as port:
        assert await check(port, tmp_path / "ca.pem") is None
        unknown = await check(port)
    assert unknown == f"The certificate for {NAME} is not valid: unable to get local issuer certificate"
    async with serving(authority, "other.example.com") as port:
        reason = await check(port, tmp_path / "ca.pem")
    assert reason is not None
    assert reason.startswith(f"The certificate for {NAME} is not valid: Hostname mismatch")


async def test_port_without_tls_has_no_certificate() -> None:
    async with serving(None) as port:
        reason = await check(port)
    assert reason is not None
    assert reason.startswith(f"There is no certificate for {NAME}: ")
    assert await check(port) == f"There is no certificate for {NAME}: Connection refused"


async def test_time_is_bounded() -> None:
    ended = asyncio.Event()

    async def wait(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()
        ended.set()

    async with await asyncio.start_server(wait, "127.0.0.1", 0) as server:
        reason = await check(server.sockets[0].getsockname()[1], seconds=0.1)
        await ended.wait()
    assert reason == f"There is no certificate for {NAME}: none was served within 0 s"


@pytest.mark.parametrize(
    ("opened", "reason"), [((), "not on the public internet"), (("127.0.0.0/8",), "could not be reached")]
)
async def test_private_addresses_are_not_reached(opened: tuple[str, ...], reason: str) -> None:
    policy = EgressPolicy(allow_private=[ip_network(network) for network in opened])
    dialer = PublicDialer(policy, SystemResolver(), is_own=lambda _: False)
    checker = CertificateChecker(lambda _: dialer.dial("certificates", HostPort("localhost", 1)))
    found = await checker.check(NAME)
    assert found is not None
    assert reason in found
