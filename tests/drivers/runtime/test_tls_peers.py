"""Calls between two servers over TLS: answers, refusals, bodies, breaks, and who may call."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.runtime.bridge import Bridge
from roost.drivers.runtime.peer_contract import PeerCall, PeerFailed, PeerLink
from roost.drivers.runtime.tls_carrier import make_bridge_certificate, make_bridge_context, open_tls_carrier
from roost.drivers.runtime.tls_peers import TlsPeerNetwork
from tests.support.acme import find_free_ports

CERTIFICATE = make_bridge_certificate("servers")


async def load_certificate() -> Sensitive[str]:
    return CERTIFICATE


class Servers:
    """The server `here` and the one that it calls, `there`."""

    def __init__(self) -> None:
        self.port = find_free_ports(1)[0]
        self.address = f"127.0.0.1:{self.port}"
        self.here = TlsPeerNetwork(None, "1", load_certificate)
        self.there = TlsPeerNetwork(self.address, "1", load_certificate)
        self.there.handle("echo", self.echo)
        self.there.handle("refuse", self.refuse)
        self.there.handle("talk", self.talk)
        self.bodies: list[bytes | None] = []

    async def echo(self, call: PeerCall) -> None:
        try:
            body = b"".join([chunk async for chunk in call.read_body()])
        except ConnectionError:
            self.bodies.append(None)
            raise
        self.bodies.append(body)

    async def refuse(self, _: PeerCall) -> None:
        raise PeerFailed("No space left")

    async def talk(self, call: PeerCall) -> bool:
        call.accept()
        reader, writer = call.stream
        while line := await reader.readline():
            writer.write(line.upper())
        call.stream[1].close()
        return True

    @asynccontextmanager
    async def link(self) -> AsyncIterator[PeerLink]:
        await self.there.start()
        try:
            async with self.here.link("there", self.address) as link:
                yield link
        finally:
            await self.here.stop()
            await self.there.stop()


@pytest.fixture
async def servers() -> Servers:
    return Servers()


async def parts(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_a_body_arrives_whole(servers: Servers) -> None:
    async with servers.link() as link:
        await link.run("echo", parts([b"x" * 300_000] * 20))
        await link.run("echo", parts([]))
    assert servers.bodies == [b"x" * 6_000_000, b""]


async def test_a_body_without_its_end_is_none(servers: Servers) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"beginning"
        raise RuntimeError("the source broke")

    async with servers.link() as link:
        with pytest.raises(RuntimeError):
            await link.run("echo", broken())
        await link.run("echo", parts([b"next"]))
    assert servers.bodies == [None, b"next"]


async def test_an_accepted_call_is_a_stream(servers: Servers) -> None:
    async with servers.link() as link:
        reader, writer = await link.call("talk")
        for word in (b"one\n", b"two\n"):
            writer.write(word)
            assert await reader.readline() == word.upper()
        writer.write_eof()
        assert await reader.read() == b""
        writer.close()


async def test_refusals_name_their_reason(servers: Servers) -> None:
    async with servers.link() as link:
        with pytest.raises(PeerFailed, match=r"The server there refused: No space left"):
            await link.run("refuse")
        with pytest.raises(PeerFailed, match="does not know this call"):
            await link.run("unknown")


async def test_a_server_that_is_away_fails_the_call(servers: Servers) -> None:
    async with servers.here.link("there", servers.address) as link:
        with pytest.raises(PeerFailed, match=r"there does not answer"):
            await link.run("refuse")
    await servers.here.stop()


async def test_a_server_that_ends_breaks_its_streams(servers: Servers) -> None:
    async with servers.link() as link:
        reader, writer = await link.call("talk")
        await servers.there.stop()
        with pytest.raises(ConnectionError):
            await reader.readline()
        writer.close()


async def test_another_version_of_roost_is_refused_unless_a_call_is_the_same_in_all(servers: Servers) -> None:
    newer = TlsPeerNetwork(None, "2", load_certificate)
    async with servers.link(), newer.link("there", servers.address) as link:
        with pytest.raises(PeerFailed, match="It runs Roost 1, and this server another version"):
            await link.run("echo", parts([]))
        servers.there.handle("echo", servers.echo, any_version=True)
        await link.run("echo", parts([b"old"]))
    await newer.stop()
    assert servers.bodies == [b"old"]


@pytest.mark.parametrize("certificate", [make_bridge_certificate("servers"), None], ids=["another", "none"])
async def test_others_get_no_further_than_the_handshake(servers: Servers, certificate: Sensitive[str] | None) -> None:
    context = ssl._create_unverified_context() if certificate is None else make_bridge_context(certificate)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    async with servers.link():
        bridge = Bridge(lambda _: None)
        with pytest.raises(OSError):
            await _open_and_ping(servers.port, context, bridge)
        bridge.abort()


async def _open_and_ping(port: int, context: ssl.SSLContext, bridge: Bridge) -> None:
    """Make a client of TLS 1.3 read, because it learns of a refusal only then."""
    await open_tls_carrier("127.0.0.1", port, context, bridge)
    await bridge.ping()


@pytest.mark.parametrize("line", [b"no json\n", b"[]\n", b"{}\n", json.dumps({"call": ["x"]}).encode() + b"\n", b""])
async def test_a_malformed_call_ends_its_stream_only(servers: Servers, line: bytes) -> None:
    async with servers.link() as link:
        reader, writer = await servers.here._bridges.connect(servers.address)
        writer.write(line)
        writer.write_eof()
        async with asyncio.timeout(5):
            assert b"{}" not in await reader.read()
        writer.close()
        await link.run("echo", parts([]))
