"""Reimport of received content: with another profile, or as the CAR that it is."""

import pytest

from roost.drivers.blob.contract import BlobNotFound
from roost.storage.content import service
from roost.storage.content.model import ContentNetwork, PackReference
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.errors import MalformedContent
from roost.storage.content.unixfs.profile import PROFILES, V0, V1, ImportProfile
from tests.storage.cars import blocks_of, encode_car, folder_of_files
from tests.storage.storage_env import CONTENT, StorageEnv

FILES = (b"", b"small", CONTENT[:1_300_000], b"small", bytes(262_144))


@pytest.fixture
def dialect() -> str:
    return "sqlite"


async def content(env: StorageEnv, tree_cid: Cid) -> bytes:
    stat = await env.reader.stat(env.scope, tree_cid)
    return b"".join([piece async for piece in env.reader.stream_file(env.scope, stat)])


@pytest.mark.parametrize("after", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("before", [V0, V1], ids=["v0", "v1"])
async def test_the_same_files_under_another_profile(
    env: StorageEnv, before: ImportProfile, after: ImportProfile
) -> None:
    async with env.content.receive(before) as pack:
        for data in FILES:
            await pack.write(data)
            await pack.end_file()
        other, trees = await env.content.import_with_profile(pack, after)
        hold = PackReference(other.pack_id, "file/1", env.tenant_id, ContentNetwork.PRIVATE)
        await other.commit(lambda connection: service.hold_pack(connection, hold))
    assert [tree.cid for tree in trees] == [blocks_of(after, data)[0].cid for data in FILES]
    assert [await content(env, tree.cid) for tree in trees] == list(FILES)
    assert len([blob async for blob in env.content._blobs.list()]) == 1


async def test_a_pack_that_is_a_car(env: StorageEnv) -> None:
    root, blocks = folder_of_files(V1)
    async with env.content.receive(V1) as pack:
        await pack.write(encode_car([root], blocks))
        await pack.end_file()
        car = await env.content.import_car(pack)
        kept = await car.finish()
        hold = PackReference(car.pack_id, "file/1", env.tenant_id, ContentNetwork.PRIVATE)
        await car.commit(lambda connection: service.hold_pack(connection, hold))
    assert kept.cid == root
    steps = await env.reader.resolve(env.scope, root, ["in", "big"])
    assert await content(env, steps[-1].cid) == CONTENT


@pytest.mark.parametrize("data", [b"", b"no CAR", CONTENT[:2_000_000]])
async def test_a_pack_that_is_none(env: StorageEnv, data: bytes) -> None:
    async def read() -> None:
        async with env.content.receive(V1) as pack:
            await pack.write(data)
            await pack.end_file()
            car = await env.content.import_car(pack)
            await car.finish()

    with pytest.raises(MalformedContent):
        await read()


async def test_a_pack_whose_bytes_are_gone(env: StorageEnv) -> None:
    async def read() -> None:
        async with env.content.receive(V1) as pack:
            await pack.write(b"small")
            await pack.end_file()
            await pack.commit_blob()
            env.blob(pack.pack_id).unlink()
            await env.content.import_with_profile(pack, V0)

    with pytest.raises(BlobNotFound):
        await read()
