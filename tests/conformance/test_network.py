"""What every public network does, whatever those who are asked answer.

Those who misbehave are stand-ins of the tests; those who do not are a storage gateway of ours and two kubo nodes.
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
from roost.storage.pins.model import PinRequest, PinState
from roost.storage.unixfs import car, dagpb
from roost.storage.unixfs.cid import DAG_PB, RAW, Cid
from roost.storage.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.work.store import operations
from tests.conformance.car_server import CarServer, Manner, gateway
from tests.conformance.networks import (
    BLOCKS,
    CAR,
    CID,
    ELSEWHERE,
    FOLDER,
    FOLDER_CAR,
    NOWHERE,
    read,
    through_kubo,
    trustless,
)
from tests.contract.storage import keep
from tests.server import running
from tests.storage.cars import Blocks
from tests.storage.pins.pin_env import open_pin_env
from tests.storage.storage_env import CONTENT, open_storage_env

ON_SQLITE = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)
ASKED: dict[str, Callable[..., PublicNetwork]] = {"trustless": trustless, "kubo": through_kubo}
"""Networks that ask whoever is at an address."""
WHOEVER_IS_ASKED = pytest.mark.parametrize("made", ASKED.values(), ids=ASKED)


@pytest.mark.parametrize("network", [NoNetwork(), trustless(NOWHERE), through_kubo(NOWHERE)], ids=["none", *ASKED])
def test_hosts_that_speak_something_else_are_no_sources(network: PublicNetwork) -> None:
    assert len(network.sources((ELSEWHERE,))) == len(network.sources())


async def test_without_a_network_there_is_nobody_to_ask() -> None:
    assert NoNetwork().sources(("/dns4/example.com/tcp/443/https",)) == ()


@pytest.mark.parametrize("network", [NoNetwork(), trustless(NOWHERE)], ids=["none", "trustless"])
def test_some_cannot_tell_others(network: PublicNetwork) -> None:
    assert not isinstance(network, NetworkAnnouncer)


@WHOEVER_IS_ASKED
async def test_a_car_is_given(made: Callable[..., PublicNetwork]) -> None:
    async with gateway({CID: CAR}) as server:
        (source,) = made(server.url).sources()
        assert await read(source) == CAR


async def test_hosts_are_asked_before_gateways_and_once() -> None:
    network = trustless("http://127.0.0.1:9")
    names = [source.name for source in network.sources(("/dns/a.example/tcp/443/tls/http",) * 2 + (ELSEWHERE,))]
    assert names == ["https://a.example:443", "http://127.0.0.1:9"]


@WHOEVER_IS_ASKED
async def test_what_is_not_there(made: Callable[..., PublicNetwork]) -> None:
    async with gateway({}) as server:
        with pytest.raises((ContentNotAtSource, SourceFailed)):
            await read(made(server.url).sources()[0])


@WHOEVER_IS_ASKED
@pytest.mark.parametrize("manner", [Manner.REDIRECTS, Manner.FAILS, Manner.CUT_OFF])
async def test_answers_that_are_no_car(made: Callable[..., PublicNetwork], manner: Manner) -> None:
    async with gateway({CID: CAR}, manner) as server:
        with pytest.raises(SourceFailed):
            await read(made(server.url).sources()[0])
        assert len(server.asked) == 1


async def test_a_page_is_no_car() -> None:
    async with gateway({CID: CAR}, Manner.WEB_PAGE) as server:
        with pytest.raises(SourceFailed):
            await read(trustless(server.url).sources()[0])


@WHOEVER_IS_ASKED
async def test_one_that_falls_silent_is_left(made: Callable[..., PublicNetwork]) -> None:
    async with gateway({CID: CAR}, Manner.SILENT) as server:
        with pytest.raises(SourceFailed, match="ReadTimeout"):
            await read(made(server.url, idle=0.2).sources()[0])
        await asyncio.wait_for(server.left.wait(), 10)


@WHOEVER_IS_ASKED
async def test_one_that_nobody_listens_at(made: Callable[..., PublicNetwork]) -> None:
    async with gateway({}) as server:
        url = server.url
    with pytest.raises(SourceFailed):
        await read(made(url).sources()[0])


@WHOEVER_IS_ASKED
async def test_a_reader_that_has_enough_hangs_up(made: Callable[..., PublicNetwork]) -> None:
    async with gateway({CID: CAR}, Manner.ENDLESS) as server:
        async with aclosing(made(server.url).sources()[0].car(CID)) as pieces:
            assert await anext(pieces)
        await asyncio.wait_for(server.left.wait(), 10)


@WHOEVER_IS_ASKED
async def test_a_reader_that_is_cancelled_hangs_up(made: Callable[..., PublicNetwork]) -> None:
    async with gateway({CID: CAR}, Manner.SILENT) as server:
        reading = asyncio.create_task(read(made(server.url).sources()[0]))
        async with asyncio.timeout(10):
            while not server.asked:
                await asyncio.sleep(0.01)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        await asyncio.wait_for(server.left.wait(), 10)


def _file_of(child: Cid, times: int, size: int) -> tuple[Cid, bytes]:
    """A file that is the same child again and again."""
    node = dagpb.encode_node(
        [PBLink(child, "", size)] * times, UnixfsData(UnixfsKind.FILE, size=size * times, sizes=[size] * times)
    )
    return Cid.for_block(DAG_PB, node), node


def _tower(levels: int, times: int) -> tuple[Cid, Blocks]:
    """A file that many levels high."""
    blocks: Blocks = [(Cid.for_block(RAW, b"x"), b"x")]
    for level in range(levels):
        blocks.append(_file_of(blocks[-1][0], times, times**level))
    return blocks[-1][0], blocks


def _circle() -> tuple[Cid, Blocks]:
    """A folder in itself, as far as one can be: the block that would close the circle has another's CID."""
    inner = dagpb.encode_node([], UnixfsData(UnixfsKind.DIRECTORY))
    outer = dagpb.encode_node(
        [PBLink(Cid.for_block(DAG_PB, inner), "in", len(inner))], UnixfsData(UnixfsKind.DIRECTORY)
    )
    root = Cid.for_block(DAG_PB, outer)
    back = dagpb.encode_node([PBLink(root, "out", len(outer))], UnixfsData(UnixfsKind.DIRECTORY))
    return root, [(root, outer), (Cid.for_block(DAG_PB, inner), back)]


LIES: dict[str, tuple[tuple[Cid, Blocks], Manner, PinState]] = {
    "wrong bytes": ((FOLDER, BLOCKS), Manner.FLIPS_A_BIT, PinState.SEARCHING),
    "cut off": ((FOLDER, BLOCKS), Manner.CUT_OFF, PinState.SEARCHING),
    "a drip": ((FOLDER, BLOCKS), Manner.DRIPS, PinState.SEARCHING),
    "no end": ((FOLDER, BLOCKS), Manner.ENDLESS, PinState.OVER_MAX_SIZE),
    "a huge block": ((FOLDER, BLOCKS), Manner.HUGE_BLOCK, PinState.SEARCHING),
    "a block missing": ((FOLDER, BLOCKS[1:]), Manner.HONEST, PinState.SEARCHING),
    "a circle": (_circle(), Manner.HONEST, PinState.SEARCHING),
    "too deep": (_tower(100, 1), Manner.HONEST, PinState.SEARCHING),
    "too large in few blocks": (_tower(7, 100), Manner.HONEST, PinState.OVER_MAX_SIZE),
    "a size beyond all numbers": (_tower(10, 80), Manner.HONEST, PinState.SEARCHING),
}


@ON_SQLITE
@WHOEVER_IS_ASKED
@pytest.mark.parametrize(("content", "manner", "end"), LIES.values(), ids=LIES)
async def test_lies_become_nothing(
    made: Callable[..., PublicNetwork],
    content: tuple[Cid, Blocks],
    manner: Manner,
    end: PinState,
    database: Database,
    tmp_path: Path,
) -> None:
    root, blocks = content
    env, patience = open_storage_env(database, tmp_path), 0.5 if manner is Manner.DRIPS else 60.0
    async with (
        gateway({str(root): b"".join(car.write_car([root], blocks))}, manner) as server,
        open_pin_env(database, env, network=made(server.url), patience=patience) as pin_env,
    ):
        pin = await pin_env.pin(root)
        async with asyncio.timeout(30):
            while not await database.read(_tried):
                await asyncio.sleep(0.02)
        assert await pin_env.status(pin) is end
        assert (await pin_env.all_files(), len(server.asked)) == ([], 1)
    assert [path for path in (tmp_path / "blobs").rglob("*") if path.is_file()] == []


def _tried(connection: Connection) -> bool:
    """Whether a round through all sources is over."""
    over = sa.or_(operations.c.failures > 0, operations.c.finished_at.is_not(None))
    return connection.execute(sa.select(operations.c.id).where(over)).first() is not None


@ON_SQLITE
async def test_a_liar_does_not_stand_before_the_honest(database: Database, tmp_path: Path) -> None:
    env = open_storage_env(database, tmp_path)
    cars = {str(FOLDER): FOLDER_CAR}
    async with gateway(cars, Manner.DRIPS) as slow, gateway(cars, Manner.ENDLESS) as liar, gateway(cars) as honest:
        network = trustless(slow.url, liar.url, honest.url)
        async with open_pin_env(database, env, network=network, patience=3.0) as pin_env:
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
        network = TrustlessNetwork((), ToLoopback)
        async with open_pin_env(database, env, network=network) as pin_env:
            pin = await pin_env.pins.add(env.tenant_id, PinRequest(public.cid, hosts=(host,)))
            assert await pin_env.until(pin, PinState.PINNED) is PinState.PINNED
            assert await pin_env.read(public.cid) == CONTENT
            (source,) = network.sources((host,))
            with pytest.raises(ContentNotAtSource):
                await read(source, private.cid)


class ToLoopback(httpx2.AsyncHTTPTransport):
    """Knows where names below `localhost` are, on every machine."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        request.url = request.url.copy_with(host="127.0.0.1")  # what stands in `Host` stays
        return await super().handle_async_request(request)


async def test_hosts_of_tenants_are_reached_by_their_own_transport_alone() -> None:
    resolver, trust = SystemResolver(), httpx2.create_ssl_context()
    network = TrustlessNetwork((), lambda: GuardedTransport(PublicDialer(EgressPolicy(), resolver), "network", trust))
    async with gateway({CID: CAR}) as server:
        for host in (server.host, f"/dns4/localhost/tcp/{server.port}/http"):
            with pytest.raises(SourceFailed):
                await read(network.sources((host,))[0])
        assert server.asked == []
        assert await read(_named(server)) == CAR
    resolver.close()


def _named(server: CarServer) -> ContentSource:
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
        ("/p2p/12D3KooWA", None),
    ],
)
def test_multiaddrs(host: str, expected: str | None) -> None:
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
def test_what_is_no_multiaddr(host: str) -> None:
    with pytest.raises(InvalidHostNode):
        http_origin(host)
