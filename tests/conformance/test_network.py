"""The contract of public networks, with correct and faulty sources.

Faulty sources are stubs; correct ones are a storage gateway of ours and two kubo nodes.
"""

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import httpx2
import pytest
import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import Database
from roost.drivers.network.contract import (
    ContentNotAtSource,
    ContentSource,
    InvalidHostNode,
    NetworkAnnouncer,
    PublicNetwork,
    SourceFailed,
    http_origin,
)
from roost.drivers.network.none import NoNetwork
from roost.drivers.network.trustless import TrustlessNetwork
from roost.net.dialer import PublicDialer
from roost.net.guarded_transport import GuardedTransport
from roost.net.policy import EgressPolicy
from roost.net.resolver import SystemResolver
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_PB, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.pins.model import PinRequest, PinState
from roost.work.store import operations
from tests.conformance.car_server import Behavior, CarServer, serve_cars
from tests.conformance.networks import (
    BLOCKS,
    CAR,
    CID,
    ELSEWHERE,
    FOLDER,
    FOLDER_CAR,
    NOWHERE,
    kubo_network,
    read,
    trustless_network,
)
from tests.contract.storage import keep
from tests.storage.cars import Blocks, encode_car
from tests.storage.pins.pin_env import open_pin_env
from tests.storage.storage_env import CONTENT, open_storage_env
from tests.support.server import running

ON_SQLITE = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
NETWORKS: dict[str, Callable[..., PublicNetwork]] = {"trustless": trustless_network, "kubo": kubo_network}
"""Networks with a source at an address."""
ON_NETWORKS = pytest.mark.parametrize("create_network", NETWORKS.values(), ids=NETWORKS)


@pytest.mark.parametrize(
    "network", [NoNetwork(), trustless_network(NOWHERE), kubo_network(NOWHERE)], ids=["none", *NETWORKS]
)
def test_hosts_with_another_protocol_are_not_sources(network: PublicNetwork) -> None:
    assert len(network.sources((ELSEWHERE,))) == len(network.sources())


async def test_no_network_has_no_sources() -> None:
    assert NoNetwork().sources(("/dns4/example.com/tcp/443/https",)) == ()


@pytest.mark.parametrize("network", [NoNetwork(), trustless_network(NOWHERE)], ids=["none", "trustless"])
def test_some_networks_cannot_announce(network: PublicNetwork) -> None:
    assert not isinstance(network, NetworkAnnouncer)


@ON_NETWORKS
async def test_a_car_is_read(create_network: Callable[..., PublicNetwork]) -> None:
    async with serve_cars({CID: CAR}) as server:
        (source,) = create_network(server.url).sources()
        assert await read(source) == CAR


async def test_hosts_come_before_gateways_and_once() -> None:
    network = trustless_network("http://127.0.0.1:9")
    names = [source.name for source in network.sources(("/dns/a.example/tcp/443/tls/http",) * 2 + (ELSEWHERE,))]
    assert names == ["https://a.example:443", "http://127.0.0.1:9"]


@ON_NETWORKS
async def test_missing_content_is_an_error_of_the_source(create_network: Callable[..., PublicNetwork]) -> None:
    async with serve_cars({}) as server:
        with pytest.raises((ContentNotAtSource, SourceFailed)):
            await read(create_network(server.url).sources()[0])


@ON_NETWORKS
@pytest.mark.parametrize("behavior", [Behavior.REDIRECTS, Behavior.FAILS, Behavior.CUT_OFF])
async def test_answers_that_are_not_a_car(create_network: Callable[..., PublicNetwork], behavior: Behavior) -> None:
    async with serve_cars({CID: CAR}, behavior) as server:
        with pytest.raises(SourceFailed):
            await read(create_network(server.url).sources()[0])
        assert len(server.requests) == 1


async def test_a_web_page_is_not_a_car() -> None:
    async with serve_cars({CID: CAR}, Behavior.WEB_PAGE) as server:
        with pytest.raises(SourceFailed):
            await read(trustless_network(server.url).sources()[0])


@ON_NETWORKS
async def test_a_silent_source_is_disconnected(create_network: Callable[..., PublicNetwork]) -> None:
    async with serve_cars({CID: CAR}, Behavior.SILENT) as server:
        with pytest.raises(SourceFailed, match="did not answer in time"):
            await read(create_network(server.url, idle=0.2).sources()[0])
        await asyncio.wait_for(server.disconnected.wait(), 10)


@ON_NETWORKS
async def test_a_source_without_a_listener(create_network: Callable[..., PublicNetwork]) -> None:
    async with serve_cars({}) as server:
        url = server.url
    with pytest.raises(SourceFailed):
        await read(create_network(url).sources()[0])


@ON_NETWORKS
async def test_a_closed_reader_disconnects(create_network: Callable[..., PublicNetwork]) -> None:
    async with serve_cars({CID: CAR}, Behavior.ENDLESS) as server:
        async with aclosing(create_network(server.url).sources()[0].car(CID)) as pieces:
            assert await anext(pieces)
        await asyncio.wait_for(server.disconnected.wait(), 10)


@ON_NETWORKS
async def test_a_cancelled_reader_disconnects(create_network: Callable[..., PublicNetwork]) -> None:
    async with serve_cars({CID: CAR}, Behavior.SILENT) as server:
        reading = asyncio.create_task(read(create_network(server.url).sources()[0]))
        async with asyncio.timeout(10):
            while not server.requests:
                await asyncio.sleep(0.01)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.wait_for(server.disconnected.wait(), 10)


def _file_of(child: Cid, times: int, size: int) -> tuple[Cid, bytes]:
    """Return a file with the same child several times."""
    node = dagpb.encode_node(
        [PBLink(child, "", size)] * times, UnixfsData(UnixfsKind.FILE, size=size * times, sizes=[size] * times)
    )
    return Cid.for_block(DAG_PB, node), node


def _deep_file(levels: int, times: int) -> tuple[Cid, Blocks]:
    """Return a file with this number of levels."""
    blocks: Blocks = [(Cid.for_block(RAW, b"x"), b"x")]
    for level in range(levels):
        blocks.append(_file_of(blocks[-1][0], times, times**level))
    return blocks[-1][0], blocks


def _cyclic_folder() -> tuple[Cid, Blocks]:
    """Return a folder that contains itself, which needs a block with a wrong CID."""
    inner = dagpb.encode_node([], UnixfsData(UnixfsKind.DIRECTORY))
    outer = dagpb.encode_node(
        [PBLink(Cid.for_block(DAG_PB, inner), "in", len(inner))], UnixfsData(UnixfsKind.DIRECTORY)
    )
    root = Cid.for_block(DAG_PB, outer)
    back = dagpb.encode_node([PBLink(root, "out", len(outer))], UnixfsData(UnixfsKind.DIRECTORY))
    return root, [(root, outer), (Cid.for_block(DAG_PB, inner), back)]


FAULTS: dict[str, tuple[tuple[Cid, Blocks], Behavior, PinState]] = {
    "wrong bytes": ((FOLDER, BLOCKS), Behavior.FLIPS_A_BIT, PinState.SEARCHING),
    "cut off": ((FOLDER, BLOCKS), Behavior.CUT_OFF, PinState.SEARCHING),
    "too slow": ((FOLDER, BLOCKS), Behavior.DRIPS, PinState.SEARCHING),
    "no end": ((FOLDER, BLOCKS), Behavior.ENDLESS, PinState.OVER_MAX_SIZE),
    "a huge block": ((FOLDER, BLOCKS), Behavior.HUGE_BLOCK, PinState.SEARCHING),
    "a block missing": ((FOLDER, BLOCKS[1:]), Behavior.HONEST, PinState.SEARCHING),
    "a cycle": (_cyclic_folder(), Behavior.HONEST, PinState.SEARCHING),
    "too deep": (_deep_file(100, 1), Behavior.HONEST, PinState.SEARCHING),
    "too large in few blocks": (_deep_file(7, 100), Behavior.HONEST, PinState.OVER_MAX_SIZE),
    "a size beyond 64 bits": (_deep_file(10, 80), Behavior.HONEST, PinState.SEARCHING),
}


@ON_SQLITE
@ON_NETWORKS
@pytest.mark.parametrize(("content", "behavior", "state"), FAULTS.values(), ids=FAULTS)
async def test_faulty_content_is_not_stored(
    create_network: Callable[..., PublicNetwork],
    content: tuple[Cid, Blocks],
    behavior: Behavior,
    state: PinState,
    database: Database,
    tmp_path: Path,
) -> None:
    root, blocks = content
    env, patience = open_storage_env(database, tmp_path), 2.0 if behavior is Behavior.DRIPS else 60.0
    async with (
        serve_cars({str(root): encode_car([root], blocks)}, behavior) as server,
        open_pin_env(database, env, network=create_network(server.url), progress_timeout=patience) as pin_env,
    ):
        pin = await pin_env.pin(root)
        async with asyncio.timeout(30):
            while not await database.read(_is_round_over):
                await asyncio.sleep(0.02)
        assert await pin_env.status(pin) is state
        assert (await pin_env.all_files(), len(server.requests)) == ([], 1)
    assert [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == []


def _is_round_over(connection: Connection) -> bool:
    """Return whether a round through all sources has ended."""
    over = sa.or_(operations.c.failures > 0, operations.c.finished_at.is_not(None))
    return connection.execute(sa.select(operations.c.id).where(over)).first() is not None


@ON_SQLITE
async def test_faulty_sources_do_not_prevent_a_correct_one(database: Database, tmp_path: Path) -> None:
    env = open_storage_env(database, tmp_path)
    cars = {str(FOLDER): FOLDER_CAR}
    async with (
        serve_cars(cars, Behavior.DRIPS) as slow,
        serve_cars(cars, Behavior.ENDLESS) as endless,
        serve_cars(cars) as honest,
    ):
        network = trustless_network(slow.url, endless.url, honest.url)
        async with open_pin_env(database, env, network=network, progress_timeout=3.0) as pin_env:
            assert (
                await pin_env.until(await pin_env.pin(FOLDER), PinState.PINNED, PinState.OVER_MAX_SIZE)
                is PinState.PINNED
            )
            assert await pin_env.read(str(FOLDER), "in", "big") == CONTENT


@ON_SQLITE
async def test_a_storage_gateway_of_ours_is_a_source(database: Database, tmp_path: Path) -> None:
    env = open_storage_env(database, tmp_path / "here")
    async with running(tmp_path / "there") as other:
        public = await keep(other, "acme", ContentNetwork.PUBLIC, CONTENT)
        private = await keep(other, "acme", ContentNetwork.PRIVATE, CONTENT[:-1])
        listed = await other.client(other.key("acme"), "api.localhost").get("/v3/ipfs/gateways")
        name = listed.json()["data"]["rows"][0]["domain"]
        host = f"/dns4/{name}.gateways.localhost/tcp/{other.port}/http"
        network = TrustlessNetwork((), LoopbackTransport)
        async with open_pin_env(database, env, network=network) as pin_env:
            pin = await pin_env.pins.add(env.tenant_id, PinRequest(public.cid, hosts=(host,)))
            assert await pin_env.until(pin, PinState.PINNED) is PinState.PINNED
            assert await pin_env.read(public.cid) == CONTENT
            (source,) = network.sources((host,))
            with pytest.raises(ContentNotAtSource):
                await read(source, private.cid)


class LoopbackTransport(httpx2.AsyncHTTPTransport):
    """Transport that resolves every name to the loopback, because not every machine resolves names in `localhost`."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.url = request.url.copy_with(host="127.0.0.1")  # `Host` is unchanged
        return await super().handle_async_request(request)


async def test_hosts_of_tenants_are_only_reached_through_their_own_transport() -> None:
    resolver, trust = SystemResolver(), httpx2.create_ssl_context()
    network = TrustlessNetwork((), lambda: GuardedTransport(PublicDialer(EgressPolicy(), resolver), "network", trust))
    async with serve_cars({CID: CAR}) as server:
        for host in (server.host, f"/dns4/localhost/tcp/{server.port}/http"):
            with pytest.raises(SourceFailed):
                await read(network.sources((host,))[0])
        assert server.requests == []
        assert await read(_host_source(server)) == CAR
    resolver.close()


def _host_source(server: CarServer) -> ContentSource:
    return trustless_network().sources((server.host,))[0]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("/ip4/192.0.2.7/tcp/80/http", "http://192.0.2.7:80"),
        ("/ip6/2001:db8::7/tcp/443/https", "https://[2001:db8::7]:443"),
        ("/dns4/example.com/tcp/443/tls/http", "https://example.com:443"),
        ("/dns4/example.com/udp/4001/quic-v1/p2p/12D3KooW", None),
        ("/ip4/192.0.2.7/tcp/4001/p2p/QmPeer", None),
        ("/dnsaddr/bootstrap.example", None),
        ("/p2p/12D3KooWA", None),
    ],
)
def test_multiaddrs_become_http_origins(host: str, expected: str | None) -> None:
    assert http_origin(host) == expected


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
def test_malformed_multiaddrs_are_refused(host: str) -> None:
    with pytest.raises(InvalidHostNode):
        http_origin(host)
