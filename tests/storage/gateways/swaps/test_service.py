"""Swapped CIDs: on gateways with the plugin, for files of the tenant, with a history."""

from datetime import timedelta

import pytest

from roost.core import clock, ids
from roost.core.db import Database
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.profile import V0
from roost.storage.files.model import FileNotFound
from roost.storage.gateways.model import GatewayNotFound
from roost.storage.gateways.service import StorageGatewayService
from roost.storage.gateways.swaps import service, store
from roost.storage.gateways.swaps.model import HotSwap, InvalidSwap, SwapNotFound
from roost.storage.gateways.swaps.service import SwapService
from tests.storage.storage_env import StorageEnv

PUBLIC = ContentNetwork.PUBLIC


@pytest.fixture
def gateways(database: Database) -> StorageGatewayService:
    return StorageGatewayService(database)


@pytest.fixture
def swaps(database: Database, gateways: StorageGatewayService) -> SwapService:
    return SwapService(database, gateways)


async def add(env: StorageEnv, data: bytes) -> Cid:
    return Cid.parse((await env.file(data, network=PUBLIC, profile=V0)).cid)


async def test_another_is_served_where_the_plugin_is(
    env: StorageEnv, swaps: SwapService, gateways: StorageGatewayService
) -> None:
    mine, one, two = env.tenant_id, await add(env, b"one"), await add(env, b"two")
    plain, swapping = await gateways.create(mine, "plain"), await gateways.create(mine, "swapping")
    await gateways.install_plugin(mine, swapping.id, 2)
    swapping, foreign = await gateways.get_by_domain("swapping"), await gateways.create(env.other_id, "foreign")
    await gateways.install_plugin(env.other_id, foreign.id, 2)
    foreign = await gateways.get_by_domain("foreign")
    await swaps.put(mine, PUBLIC, str(one.v1()), str(two))
    assert await swaps.find_served_cid(swapping, PUBLIC, one) == two
    assert await swaps.find_served_cid(swapping, PUBLIC, one.v1()) == two
    for gateway, network, cid in (
        (plain, PUBLIC, one),
        (foreign, PUBLIC, one),
        (swapping, ContentNetwork.PRIVATE, one),
        (swapping, PUBLIC, two),
    ):
        assert await swaps.find_served_cid(gateway, network, cid) == cid
    await swaps.delete(mine, PUBLIC, str(one))
    assert await swaps.find_served_cid(swapping, PUBLIC, one) == one
    history = await swaps.history(mine, PUBLIC, str(one), "swapping.gateways.example")
    assert [line.mapped_cid for line in history] == [None, str(two)]
    with pytest.raises(GatewayNotFound):
        await swaps.history(mine, PUBLIC, str(one), "foreign")
    with pytest.raises(SwapNotFound):
        await swaps.delete(mine, PUBLIC, str(one))


async def test_unusable_swaps_are_refused(env: StorageEnv, swaps: SwapService) -> None:
    mine, one, two = env.tenant_id, await add(env, b"one"), await add(env, b"two")
    nowhere = str(Cid.for_block(0x55, b"nowhere"))
    for tenant, network, cid, other in (
        (mine, PUBLIC, str(one), nowhere),
        (mine, PUBLIC, nowhere, str(one)),
        (mine, ContentNetwork.PRIVATE, str(one), str(two)),
        (env.other_id, PUBLIC, str(one), str(two)),
    ):
        with pytest.raises(FileNotFound):
            await swaps.put(tenant, network, cid, other)
    with pytest.raises(InvalidSwap):
        await swaps.put(mine, PUBLIC, str(one), str(one.v1()))
    await swaps.put(mine, PUBLIC, str(one), str(two))
    for act in (swaps.history(env.other_id, PUBLIC, str(one), None), swaps.delete(env.other_id, PUBLIC, str(one))):
        with pytest.raises(SwapNotFound):
            await act


async def test_a_history_has_an_end(env: StorageEnv, swaps: SwapService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "HISTORY_LIMIT", 3)
    mine, one, two = env.tenant_id, await add(env, b"one"), await add(env, b"two")
    for _ in range(5):
        await swaps.put(mine, PUBLIC, str(one), str(two))
    await swaps.delete(mine, PUBLIC, str(one))
    history = await swaps.history(mine, PUBLIC, str(one), None)
    assert [line.mapped_cid for line in history] == [None, str(two), str(two)]


async def test_a_server_whose_clock_is_behind(env: StorageEnv, swaps: SwapService, database: Database) -> None:
    mine, one, two = env.tenant_id, await add(env, b"one"), await add(env, b"two")
    ahead = HotSwap(ids.new_id(), mine, PUBLIC, str(one.v1()), str(two), clock.utc_now() + timedelta(hours=1))
    await database.write(lambda connection: store.insert_swap(connection, ahead))
    await swaps.delete(mine, PUBLIC, str(one))
    assert [line.mapped_cid for line in await swaps.history(mine, PUBLIC, str(one), None)] == [None, str(two)]
