"""What every public network does, and what each source may answer. The gateways here are stand-ins of the tests."""

from contextlib import aclosing

import httpx2
import pytest

from roost.agents.egress.dialer import Dialer
from roost.agents.egress.policy import Policy
from roost.agents.egress.resolver import SystemResolver
from roost.agents.egress.transport import GuardedTransport
from roost.drivers.network.contract import BadHost, NotThere, PublicNetwork, Source, SourceFailed, origin
from roost.drivers.network.none import NoNetwork
from roost.drivers.network.trustless import Trustless
from tests.conformance.car_server import CarServer, Manner, gateway

CID = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
CAR = bytes(range(256)) * 1000
ELSEWHERE = "/dns4/peer.example/tcp/4001/p2p/12D3KooWA"


def trustless(*urls: str, idle: float = 5.0) -> Trustless:
    return Trustless(urls, httpx2.AsyncHTTPTransport, idle=idle)


async def read(source: Source, cid: str = CID) -> bytes:
    async with aclosing(source.car(cid)) as pieces:
        return b"".join([piece async for piece in pieces])


@pytest.mark.parametrize("network", [NoNetwork(), trustless("http://127.0.0.1:9")], ids=["none", "trustless"])
def test_hosts_that_speak_something_else_are_no_sources(network: PublicNetwork) -> None:
    assert len(network.sources((ELSEWHERE,))) == len(network.sources())


async def test_without_a_network_there_is_nobody_to_ask() -> None:
    assert NoNetwork().sources(("/dns4/example.com/tcp/443/https",)) == ()


async def test_a_gateway_gives_a_car() -> None:
    async with gateway({CID: CAR}) as server:
        (source,) = trustless(server.url).sources()
        assert await read(source) == CAR


async def test_hosts_are_asked_before_gateways_and_once() -> None:
    network = trustless("http://127.0.0.1:9")
    names = [source.name for source in network.sources(("/dns/a.example/tcp/443/tls/http",) * 2 + (ELSEWHERE,))]
    assert names == ["https://a.example:443", "http://127.0.0.1:9"]


async def test_what_it_does_not_have() -> None:
    async with gateway({}) as server:
        with pytest.raises(NotThere):
            await read(trustless(server.url).sources()[0])


@pytest.mark.parametrize("manner", [Manner.WEB_PAGE, Manner.REDIRECTS, Manner.FAILS, Manner.CUT_OFF])
async def test_answers_that_are_no_car(manner: Manner) -> None:
    async with gateway({CID: CAR}, manner) as server:
        with pytest.raises(SourceFailed):
            await read(trustless(server.url).sources()[0])
        assert len(server.asked) == 1


async def test_one_that_falls_silent_is_left() -> None:
    async with gateway({CID: CAR}, Manner.SILENT) as server:
        with pytest.raises(SourceFailed, match="ReadTimeout"):
            await read(trustless(server.url, idle=0.2).sources()[0])


async def test_one_that_nobody_listens_at() -> None:
    async with gateway({}) as server:
        url = server.url
    with pytest.raises(SourceFailed):
        await read(trustless(url).sources()[0])


async def test_hosts_of_tenants_are_reached_by_their_own_transport_alone() -> None:
    resolver, trust = SystemResolver(), httpx2.create_ssl_context()
    network = Trustless((), lambda: GuardedTransport(Dialer(Policy(), resolver), "network", trust))
    async with gateway({CID: CAR}) as server:
        for host in (server.host, f"/dns4/localhost/tcp/{server.port}/http"):
            with pytest.raises(SourceFailed):
                await read(network.sources((host,))[0])
        assert server.asked == []
        assert await read(_named(server)) == CAR
    resolver.close()


def _named(server: CarServer) -> Source:
    return trustless().sources((server.host,))[0]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("/ip4/192.0.2.7/tcp/80/http", "http://192.0.2.7:80"),
        ("/ip6/2001:db8::7/tcp/443/https", "https://[2001:db8::7]:443"),
        ("/dns4/example.com/tcp/443/tls/http", "https://example.com:443"),
        ("/dns4/example.com/udp/4001/quic-v1/p2p/12D3KooW", None),
        ("/ip4/192.0.2.7/tcp/4001/p2p/QmPeer", None),
        ("/dnsaddr/bootstrap.example", None),
    ],
)
def test_multiaddrs(host: str, expected: str | None) -> None:
    assert origin(host) == expected


@pytest.mark.parametrize(
    "host",
    [
        *("", "example.com", "http://example.com", "/ip4/example.com/tcp/80/http", "/ip4/::1/tcp/80", "/ip6/1.2.3.4"),
        *(
            "/ip4/192.0.2.7/tcp/65536/http",
            "/dns4/a b/tcp/1",
            "/dns4/example.com/tcp/80/http\r\nX: y",
            "/dns4/" + "a" * 600,
        ),
        "/unix/tmp/socket",
    ],
)
def test_what_is_no_multiaddr(host: str) -> None:
    with pytest.raises(BadHost):
        origin(host)
