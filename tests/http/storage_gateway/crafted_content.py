"""Content built block by block, public on a gateway."""

from collections.abc import Sequence

from roost.storage.content import service
from roost.storage.content.model import ContentNetwork, PackReference
from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_PB, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from tests.http.storage_gateway.gateway_env import GatewayEnv
from tests.storage.cars import Blocks, encode_car

LEAF = Cid.for_block(RAW, b"x")


async def put(env: GatewayEnv, root: Cid, blocks: Blocks) -> Cid:
    """The tenant's, as the CAR of these blocks."""
    async with env.storage.content.receive_car() as pack:
        await pack.write(encode_car([root], blocks))
        kept = await pack.finish()
        hold = PackReference(pack.pack_id, f"file/{pack.pack_id}", env.storage.tenant_id, ContentNetwork.PUBLIC)
        await pack.commit(lambda connection: service.hold_pack(connection, hold))
    return kept.cid


async def folder(env: GatewayEnv, links: Sequence[PBLink]) -> Cid:
    """A folder of these links, which lead to `LEAF`."""
    node = dagpb.encode_node(links, UnixfsData(UnixfsKind.DIRECTORY))
    cid = Cid.for_block(DAG_PB, node)
    return await put(env, cid, [(cid, node), (LEAF, b"x")])


async def nested_folders(env: GatewayEnv, height: int, names: Sequence[str]) -> Cid:
    """Folders in folders, each with the one below it under each of these names."""
    blocks: Blocks = [(LEAF, b"x")]
    for _ in range(height):
        below = blocks[-1][0]
        node = dagpb.encode_node([PBLink(below, name, 1) for name in names], UnixfsData(UnixfsKind.DIRECTORY))
        blocks.append((Cid.for_block(DAG_PB, node), node))
    return await put(env, blocks[-1][0], blocks)
