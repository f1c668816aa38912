"""Folders that are small to keep and have no end: their pages have one."""

import asyncio
from collections.abc import Sequence

from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_PB, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from tests.http.storage_gateway.crafted_content import LEAF, put
from tests.http.storage_gateway.gateway_env import GatewayEnv


async def shards(env: GatewayEnv, lowest: Sequence[PBLink], height: int) -> Cid:
    """Shards, each linked from all 256 places of the one above; the lowest has these links."""
    blocks = [(LEAF, b"x")]
    links = lowest
    for _ in range(height + 1):
        node = dagpb.encode_node(links, UnixfsData(UnixfsKind.SHARD, hash=0x22, fanout=256))
        blocks.append((Cid.for_block(DAG_PB, node), node))
        links = [PBLink(blocks[-1][0], f"{place:02X}", 1) for place in range(256)]
    return await put(env, blocks[-1][0], blocks)


async def test_a_page_of_empty_shards_is_refused(env: GatewayEnv) -> None:
    cid = await shards(env, [], 8)
    async with asyncio.timeout(20):
        for target in (f"/ipfs/{cid}/", f"/ipfs/{cid}/?format=tar"):
            assert (await env.get(target)).status == 400


async def test_a_page_has_so_many_signs(env: GatewayEnv) -> None:
    cid = await shards(env, [PBLink(LEAF, "00" + "n" * 1_000_000, 1)], 2)
    sent = await env.get(f"/ipfs/{cid}/")
    assert sent.status == 200
    assert len(sent.body) < 5_000_000
    assert b"The first 2 entries are shown." in sent.body


async def test_a_page_has_so_many_entries(env: GatewayEnv) -> None:
    cid = await shards(env, [PBLink(LEAF, "00a.txt", 1)], 2)
    sent = await env.get(f"/ipfs/{cid}/")
    assert b"The first 5,000 entries are shown." in sent.body
