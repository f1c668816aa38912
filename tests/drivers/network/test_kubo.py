"""The kubo driver: exchange of content with two real nodes, and requests that our node never gets."""

import asyncio
import ipaddress
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from roost.core.db import Database
from roost.drivers.network.contract import ContentNotAtSource, NetworkRefused, SourceFailed
from roost.drivers.network.kubo import KuboNetwork
from roost.drivers.network.none import NoNetwork
from roost.net.addresses import Address
from roost.net.dialer import PublicDialer
from roost.net.host_port import parse_host_port
from roost.net.policy import EgressPolicy
from roost.net.resolver import SystemResolver
from roost.storage.content.errors import ContentDamaged
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.profile import V0, V1
from roost.storage.pins.model import PinRequest, PinState
from tests.conformance.car_server import serve_cars
from tests.conformance.kubo import KuboNode, run_kubo_node
from tests.conformance.networks import (
    CAR,
    CID,
    ELSEWHERE,
    FOLDER,
    FOLDER_CAR,
    kubo_network,
    locate,
    read,
    trustless_network,
)
from tests.storage.cars import blocks_of, encode_car
from tests.storage.pins.pin_env import open_pin_env
from tests.storage.storage_env import CONTENT, open_storage_env

ON_SQLITE = pytest.mark.parametrize("dialect", ["sqlite"], indirect=True)


@asynccontextmanager
async def two_nodes(folder: Path) -> AsyncIterator[tuple[KuboNode, KuboNode]]:
    """Run our node, which needs a credential, and another one."""
    async with run_kubo_node(folder / "ours", "bearer:secret") as ours, run_kubo_node(folder / "theirs") as theirs:
        yield ours, theirs


@ON_SQLITE
async def test_content_comes_from_a_peer_over_bitswap(database: Database, tmp_path: Path) -> None:
    env = open_storage_env(database, tmp_path)
    async with two_nodes(tmp_path) as (ours, theirs):
        cid = await theirs.add(CONTENT)
        async with open_pin_env(database, env, network=kubo_network(ours.url, "bearer:secret")) as pin_env:
            pin = await pin_env.pins.add(env.tenant_id, PinRequest(cid, hosts=(ELSEWHERE, theirs.address)))
            assert await pin_env.until(pin, PinState.PINNED, PinState.EXPIRED) is PinState.PINNED
            assert await pin_env.read(cid) == CONTENT
            assert list(await pin_env.pins.list_delegates()) == [ours.address]
            assert not await ours.has(str(Cid.parse(cid).v1()))  # it was fetched, but not pinned


async def test_content_that_no_peer_has_is_abandoned(tmp_path: Path) -> None:
    async with run_kubo_node(tmp_path / "ours") as ours:
        (source,) = kubo_network(ours.url, idle=0.5).sources()
        with pytest.raises(ContentNotAtSource):
            await read(source)
        async with asyncio.timeout(10):
            while not (await ours.call_json("abandoned"))["abandoned"]:
                await asyncio.sleep(0.02)


async def test_announced_content_is_available_until_it_is_withdrawn(tmp_path: Path) -> None:
    file, blocks = blocks_of(V0, CONTENT)
    cid, data = str(file.cid.v1()), encode_car([file.cid.v1()], blocks)
    async with two_nodes(tmp_path) as (ours, theirs):
        network = kubo_network(ours.url, "bearer:secret")
        for _ in range(2):
            await network.announce(cid, lambda: _pieces(data))
            assert await network.has(cid)
        await theirs.call_json("swarm/connect", ours.address)
        assert await theirs.cat(cid) == CONTENT
        assert await theirs.cat(str(file.cid)) == CONTENT
        for _ in range(2):
            await network.withdraw(cid)
            assert not await network.has(cid)


async def test_incomplete_content_is_not_announced(tmp_path: Path) -> None:
    async def damaged() -> AsyncGenerator[bytes, None]:
        yield FOLDER_CAR[:100_000]
        raise ContentDamaged

    async with run_kubo_node(tmp_path / "ours") as ours:
        network = kubo_network(ours.url)
        with pytest.raises(ContentDamaged):
            await network.announce(str(FOLDER), damaged)
        with pytest.raises(NetworkRefused, match="EOF"):
            await network.announce(str(FOLDER), lambda: _pieces(FOLDER_CAR[:-1]))
        assert not await network.has(str(FOLDER))
        with pytest.raises(NetworkRefused, match="did not pin"):
            await network.announce(CID, lambda: _pieces(FOLDER_CAR))
        assert not await network.has(CID)


async def test_content_cannot_end_its_part_of_the_form(tmp_path: Path) -> None:
    file, blocks = blocks_of(V1, b"\r\n--" + b"0" * 32 + b"--\r\n" + b"\r\n--\r\n\r\n" * 100)
    data = encode_car([file.cid], blocks)
    async with run_kubo_node(tmp_path / "ours") as ours:
        await kubo_network(ours.url).announce(str(file.cid), lambda: _pieces(data))
        assert await ours.has(str(file.cid))


async def test_a_node_that_rejects_us_or_is_unreachable(tmp_path: Path) -> None:
    async with run_kubo_node(tmp_path / "ours", "bearer:secret") as ours:
        stranger, url = kubo_network(ours.url, "bearer:guess"), ours.url
        with pytest.raises(NetworkRefused, match="403"):
            await stranger.announce(CID, lambda: _pieces(CAR))
        with pytest.raises(SourceFailed, match="403"):
            await read(stranger.sources()[0])
        assert await stranger.addresses() == ()
    gone = kubo_network(url, "bearer:secret")
    with pytest.raises(SourceFailed):
        await gone.withdraw(CID)
    assert await gone.addresses() == ()


async def test_a_basic_credential(tmp_path: Path) -> None:
    async with run_kubo_node(tmp_path / "ours", "basic:me:pass:word") as ours:
        assert not await kubo_network(ours.url, "basic:me:pass:word").has(CID)
        with pytest.raises(NetworkRefused, match="403"):
            await kubo_network(ours.url, "basic:me:pass").has(CID)


async def test_only_public_addresses_are_returned(tmp_path: Path) -> None:
    async with run_kubo_node(tmp_path / "ours") as ours:
        network = KuboNetwork(ours.url, None, trustless_network(), locate, EgressPolicy().admits_address)
        assert await network.addresses() == []


@pytest.mark.parametrize(
    "host",
    [
        "/ip4/127.0.0.1/tcp/4001/p2p/QmPeer",
        "/ip6/::1/udp/4001/quic-v1/p2p/QmPeer",
        "/dns4/localhost/tcp/4001/p2p/QmPeer",
        "/ip4/10.0.0.1/tcp/4001/p2p/QmRelay/p2p-circuit/p2p/QmPeer",
        *("/dnsaddr/localhost/p2p/QmPeer", "/ip4/192.0.2.1/tcp/4001/ip4/127.0.0.1/tcp/22/p2p/QmPeer", "/p2p/QmPeer"),
    ],
)
async def test_peers_are_resolved_and_checked_by_roost(host: str) -> None:
    resolver = SystemResolver()
    dialer = PublicDialer(EgressPolicy(), resolver)

    async def guarded(name: str, port: int) -> tuple[Sequence[Address], int]:
        return await dialer.resolve("network", parse_host_port(f"[{name}]" if ":" in name else name, port))

    async with serve_cars({CID: CAR}) as server:
        (source,) = KuboNetwork(server.url, None, NoNetwork(), guarded, lambda _: True).sources((host,))
        assert await read(source) == CAR
        assert [path.partition("?")[0] for path in server.requests] == ["/api/v0/dag/export"]
    resolver.close()


async def test_a_peers_name_is_replaced_by_its_addresses() -> None:
    async def elsewhere(host: str, port: int) -> tuple[Sequence[Address], int]:
        assert (host, port) == ("peer.example", 4001)
        return [ipaddress.ip_address("192.0.2.7"), ipaddress.ip_address("2001:db8::7")], 4002

    async with serve_cars({CID: CAR}) as server:
        await read(KuboNetwork(server.url, None, NoNetwork(), elsewhere, lambda _: True).sources((ELSEWHERE,))[0])
        assert [path for path in server.requests if "swarm/connect" in path] == [
            "/api/v0/swarm/connect?arg=%2Fip4%2F192.0.2.7%2Ftcp%2F4002%2Fp2p%2F12D3KooWA",
            "/api/v0/swarm/connect?arg=%2Fip6%2F2001%3Adb8%3A%3A7%2Ftcp%2F4002%2Fp2p%2F12D3KooWA",
        ]


async def _pieces(data: bytes) -> AsyncGenerator[bytes, None]:
    for at in range(0, len(data), 100_000):
        yield data[at : at + 100_000]
