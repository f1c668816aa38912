"""Requests of ours that go where a tenant sends them: what is refused, what is pinned, who is believed."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from ipaddress import ip_address, ip_network
from typing import Any

import httpx2 as httpx
import pytest

from roost.net.dialer import PublicDialer
from roost.net.errors import AddressRefused, EgressProblem, HostRefused, HostUnreachable, InvalidTarget, PortRefused
from roost.net.guarded_transport import GuardedTransport
from roost.net.policy import EgressPolicy
from tests.net.loopback import OPEN, FakeResolver, OriginServer, serving
from tests.net.test_dialer import silent, watched
from tests.platforms.tls import Authority


@asynccontextmanager
async def guarded(
    policy: EgressPolicy = OPEN,
    names: Mapping[str, Sequence[str]] | FakeResolver | None = None,
    trust: ssl.SSLContext | None = None,
    **options: Any,
) -> AsyncIterator[httpx.AsyncClient]:
    resolver = names if isinstance(names, FakeResolver) else FakeResolver(names)
    transport = GuardedTransport(PublicDialer(policy, resolver), "a1", trust or ssl.create_default_context())
    async with httpx.AsyncClient(transport=transport, **options) as client:
        yield client


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0", "[::1]", "[::ffff:127.0.0.1]"),
        *("10.0.0.8", "192.168.1.1", "172.16.0.1", "169.254.169.254", "100.100.100.200", "[fd00::1]", "[fe80::1]"),
        *("inside.example", "mixed.example", "metadata.example"),
    ],
)
async def test_private_addresses_are_refused_before_a_connection(host: str) -> None:
    names = {
        "inside.example": ["127.0.0.1"],
        "mixed.example": ["8.8.8.8", "127.0.0.1"],
        "metadata.example": ["169.254.169.254"],
    }
    async with watched() as (port, came), guarded(EgressPolicy(), names) as client:
        with pytest.raises(AddressRefused):
            await client.get(f"http://{host}:{port}/v1/models")
        assert not came


async def test_the_operators_other_rules_count_too() -> None:
    async with guarded(EgressPolicy(deny_hosts=["bad.example"])) as client:
        with pytest.raises(HostRefused):
            await client.get("https://api.bad.example/")
        with pytest.raises(PortRefused):
            await client.get("http://good.example:25/")


@pytest.mark.parametrize("url", ["http://user:pass@x.example/", "http://x_%20y.example/"])
async def test_malformed_urls_are_refused(url: str) -> None:
    async with guarded() as client:
        with pytest.raises((InvalidTarget, httpx.InvalidURL)):
            await client.get(url)


async def test_a_request_goes_to_the_address_under_the_name() -> None:
    origin = OriginServer()
    async with serving(origin) as port, guarded(names={"x.example": ["127.0.0.1"]}) as client:
        answer = await client.post(f"http://x.example:{port}/a?b=1", content=b"body")
        assert answer.text == "hello"
    assert origin.heads[0].startswith(b"POST /a?b=1 HTTP/1.1\r\n")
    assert b"\r\nHost: x.example:%d\r\n" % port in origin.heads[0]
    assert origin.bodies == [b"body"]


async def test_a_name_that_changes_its_answer_is_judged_at_every_request() -> None:
    names = FakeResolver({"x.example": ["127.0.0.1"]})
    only = EgressPolicy(allow_private=[ip_network("127.0.0.1/32")])
    keeps = OriginServer(reply=b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    async with serving(keeps) as port, guarded(only, names) as client:
        await client.get(f"http://x.example:{port}/")
        names.names["x.example"] = ["127.0.0.2"]
        with pytest.raises(AddressRefused):
            await client.get(f"http://x.example:{port}/")
    assert names.asked == ["x.example"] * 2


async def test_every_hop_of_a_redirect_is_judged() -> None:
    async with watched() as (inner, came):
        away = OriginServer(
            reply=b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.2:%d/\r\nContent-Length: 0\r\n\r\n" % inner
        )
        only = EgressPolicy(allow_private=[ip_network("127.0.0.1/32")])
        async with serving(away) as port, guarded(only, follow_redirects=True) as client:
            with pytest.raises(AddressRefused):
                await client.get(f"http://127.0.0.1:{port}/")
        assert away.heads
        assert not came


async def test_the_next_address_is_tried_and_the_body_sent_again() -> None:
    origin = OriginServer()
    async with serving(origin) as port, guarded(names={"x.example": ["127.0.0.66", "127.0.0.1"]}) as client:
        assert (await client.post(f"http://x.example:{port}/", content=b"body")).text == "hello"
    assert origin.bodies == [b"body"]


async def test_silent_host_ends_in_time_without_its_address() -> None:
    with silent("127.0.0.2") as port:
        async with guarded(names={"x.example": ["127.0.0.2"], "y.example": ["127.0.0.66"]}) as client:
            with pytest.raises(EgressProblem, match=r"x\.example did not answer in time"):
                await client.get(f"http://x.example:{port}/", timeout=httpx.Timeout(5, connect=0.05))
            with pytest.raises(HostUnreachable, match=r"y\.example could not be reached"):
                await client.get(f"http://y.example:{port}/")


async def test_a_place_of_the_operators_has_its_own_port() -> None:
    origin = OriginServer()
    async with serving(origin) as port:
        policy = EgressPolicy(allow_private=OPEN.allow_private, hosts={"x.example": (ip_address("127.0.0.1"), port)})
        async with guarded(policy) as client:
            assert (await client.get("http://x.example/")).text == "hello"
    assert b"\r\nHost: x.example\r\n" in origin.heads[0]


async def test_the_certificate_has_to_be_the_names() -> None:
    authority = Authority("Test")
    there = authority.server("x.example")
    trust = ssl.create_default_context(cadata=authority.certificate.decode())

    async def attend(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(attend, "127.0.0.1", 0, ssl=there)
    port = server.sockets[0].getsockname()[1]
    names = {"x.example": ["127.0.0.1"], "y.example": ["127.0.0.1"]}
    async with guarded(names=names, trust=trust) as client:
        assert (await client.get(f"https://x.example:{port}/")).text == "ok"
    for host in ("y.example", "127.0.0.1"):
        async with guarded(names=names, trust=trust) as client:
            with pytest.raises(httpx.ConnectError, match="certificate"):
                await client.get(f"https://{host}:{port}/")
    async with guarded(names=names) as client:
        with pytest.raises(httpx.ConnectError, match="certificate"):
            await client.get(f"https://x.example:{port}/")
    server.close()
    await server.wait_closed()
