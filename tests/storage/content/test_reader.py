"""Stored content is read by CID, path and range; damaged or foreign content is not."""

import pytest
from sqlalchemy import Connection

from roost.core import clock
from roost.storage.content import service, store
from roost.storage.content.errors import ContentDamaged, ContentNotAFile, ContentNotAFolder, ContentNotFound
from roost.storage.content.model import BlockLocation, BlockRow, ContentNetwork, ContentScope, Pack, PackReference
from roost.storage.content.reader import ContentReader, ContentStat
from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_PB, IDENTITY, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.profile import PROFILES, UNIXFS_V1_2025, ImportProfile
from tests.storage.storage_env import CONTENT, StorageEnv, entry

EVERY_PROFILE = pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)


async def read_whole(
    reader: ContentReader, scope: ContentScope, file: ContentStat, begin: int = 0, end: int | None = None
) -> bytes:
    return b"".join([piece async for piece in reader.stream_file(scope, file, begin, end)])


@EVERY_PROFILE
@pytest.mark.parametrize(
    ("begin", "end"), [(0, None), (0, 1), (262_143, 262_145), (4_999_999, 1 << 40), (1_000_000, 3_000_000), (7, 7)]
)
async def test_ranges_of_a_file(env: StorageEnv, profile: ImportProfile, begin: int, end: int | None) -> None:
    _, (_, tree) = await env.keep(b"something before it", CONTENT, profile=profile)
    file = await env.reader.stat(env.scope, tree.cid)
    assert file.size == len(CONTENT)
    assert await read_whole(env.reader, env.scope, file, begin, end) == CONTENT[begin:end]


@EVERY_PROFILE
@pytest.mark.parametrize("data", [b"", b"small content"])
async def test_a_file_of_one_block(env: StorageEnv, profile: ImportProfile, data: bytes) -> None:
    pack_id, (tree,) = await env.keep(data, profile=profile)
    file = await env.reader.stat(env.scope, tree.cid)
    assert file.size == len(data)
    for begin, end in ((0, None), (2, 5), (6, 1 << 40), (5, 5), (50, None)):
        assert await read_whole(env.reader, env.scope, file, begin, end) == data[begin:end]
    if data:
        env.blob(pack_id).write_bytes(data[:-1] + bytes((data[-1] ^ 1,)))
        with pytest.raises(ContentDamaged):
            await read_whole(env.reader, env.scope, await env.reader.stat(env.scope, tree.cid))


async def test_the_way_goes_on_from_a_root_that_was_looked_up(env: StorageEnv) -> None:
    async with env.content.receive(PROFILES["v1"]) as pack:
        await pack.write(b"in it")
        file = await pack.end_file()
        folder = pack.add_folder([entry("file", file)])
        hold = PackReference(pack.pack_id, "file/1", env.tenant_id, ContentNetwork.PRIVATE)
        await pack.commit(lambda connection: service.hold_pack(connection, hold))
    root = await env.reader.stat(env.scope, folder.cid)
    steps = await env.reader.resolve(env.scope, root, ["file"])
    assert steps == await env.reader.resolve(env.scope, folder.cid, ["file"])
    assert [step.cid for step in steps] == [folder.cid, file.cid]


async def test_no_more_is_read_than_a_node_says(env: StorageEnv) -> None:
    """The node's size limits the read, even if the index has a larger one."""
    leaf = Cid.for_block(RAW, b"abc")
    node = dagpb.encode_node([PBLink(leaf, "", 3)] * 2, UnixfsData(UnixfsKind.FILE, size=2, sizes=[1, 1]))
    root, pack = Cid.for_block(DAG_PB, node), Pack("0" * 32, 0, clock.utc_now())
    rows = [
        BlockRow(cid, BlockLocation.INLINE, length=len(data), data=data) for cid, data in ((leaf, b"abc"), (root, node))
    ]

    def keep(connection: Connection) -> None:
        store.add_pack(connection, pack, rows, ())
        store.hold_pack(connection, PackReference(pack.id, "file/1", env.tenant_id, ContentNetwork.PRIVATE))

    await env.db.write(keep)
    assert await read_whole(env.reader, env.scope, await env.reader.stat(env.scope, root)) == b"aa"


@EVERY_PROFILE
async def test_every_block_by_its_cid(env: StorageEnv, profile: ImportProfile) -> None:
    _, (tree,) = await env.keep(CONTENT, profile=profile)
    for node in tree.nodes:
        assert await env.reader.read_block(env.scope, node.cid) == node.data
    leaf = Cid(1, RAW if profile.raw else 0x70, 0x12, tree.leaves[32:64])
    assert leaf.matches(await env.reader.read_block(env.scope, leaf))


@EVERY_PROFILE
async def test_a_folder_in_a_folder(env: StorageEnv, profile: ImportProfile) -> None:
    async with env.content.receive(profile) as pack:
        await pack.write(b"hello")
        small = await pack.end_file()
        inner = pack.add_folder([entry("h.txt", small)])
        many = [entry(f"{number}".rjust(80, "n"), small) for number in range(3000)]
        outer = pack.add_folder([entry("in", inner), *many])
        hold = PackReference(pack.pack_id, "file/1", env.tenant_id, ContentNetwork.PRIVATE)
        await pack.commit(lambda connection: service.hold_pack(connection, hold))
    steps = await env.reader.resolve(env.scope, outer.cid, ["in", "h.txt"])
    assert [step.cid for step in steps] == [outer.cid, inner.cid, small.cid]
    assert await read_whole(env.reader, env.scope, steps[-1]) == b"hello"
    names = {link.name async for link in env.reader.list_entries(env.scope, steps[0])}
    assert len(names) == 3001
    assert (await env.reader.resolve(env.scope, outer.cid, ["77".rjust(80, "n")]))[-1].cid == small.cid
    with pytest.raises(ContentNotFound):
        await env.reader.resolve(env.scope, outer.cid, ["in", "other"])
    with pytest.raises(ContentNotAFolder):
        await env.reader.resolve(env.scope, outer.cid, ["in", "h.txt", "x"])
    with pytest.raises(ContentNotAFile):
        await read_whole(env.reader, env.scope, steps[0])


async def test_nobody_sees_what_is_not_theirs(env: StorageEnv) -> None:
    _, (tree,) = await env.keep(CONTENT)
    for scope in (
        ContentScope(ContentNetwork.PUBLIC),
        ContentScope(ContentNetwork.PUBLIC, env.tenant_id),
        ContentScope(ContentNetwork.PRIVATE, env.other_id),
    ):
        with pytest.raises(ContentNotFound):
            await env.reader.stat(scope, tree.cid)


async def test_everybody_sees_what_is_public(env: StorageEnv) -> None:
    _, (tree,) = await env.keep(CONTENT, network=ContentNetwork.PUBLIC)
    for scope in (ContentScope(ContentNetwork.PUBLIC), ContentScope(ContentNetwork.PUBLIC, env.tenant_id)):
        assert (await env.reader.stat(scope, tree.cid)).kind is UnixfsKind.FILE
    with pytest.raises(ContentNotFound):
        await env.reader.stat(ContentScope(ContentNetwork.PUBLIC, env.other_id), tree.cid)


@EVERY_PROFILE
async def test_a_flipped_bit_is_never_served(env: StorageEnv, profile: ImportProfile) -> None:
    pack_id, (tree,) = await env.keep(CONTENT, profile=profile)
    with env.blob(pack_id).open("r+b") as file:
        file.seek(3_000_000)
        file.write(bytes((CONTENT[3_000_000] ^ 1,)))
    stat = await env.reader.stat(env.scope, tree.cid)
    got: list[bytes] = []
    with pytest.raises(ContentDamaged):
        got.extend([piece async for piece in env.reader.stream_file(env.scope, stat)])
    begin = 3_000_000 // profile.chunk * profile.chunk
    assert await read_whole(env.reader, env.scope, stat, 0, begin) == CONTENT[:begin]


async def test_many_small_files_of_packs(env: StorageEnv) -> None:
    contents = [bytes((number,)) * 20_000 for number in range(120)] + [b"", b"x", b"", b"x"]
    trees = (await env.keep(*contents[::2]))[1] + (await env.keep(*contents[1::2], holder="file/2"))[1]
    blocks = await env.reader.find_blocks(env.scope, [tree.cid for tree in reversed(trees)])
    found = {index: data async for index, data in env.reader.read_slices(blocks)}
    assert found == dict(enumerate(reversed(contents[::2] + contents[1::2])))


async def test_small_files_with_a_flipped_bit_are_never_served(env: StorageEnv) -> None:
    contents = [bytes((number,)) * 500_000 for number in range(6)]
    pack_id, trees = await env.keep(*contents, profile=UNIXFS_V1_2025)
    with env.blob(pack_id).open("r+b") as file:
        file.seek(2_100_000)
        file.write(b"x")
    blocks = await env.reader.find_blocks(env.scope, [tree.cid for tree in trees])
    found = env.reader.read_slices(blocks)
    assert [(await anext(found))[1] for _ in range(4)] == contents[:4]
    with pytest.raises(ContentDamaged):
        await anext(found)
    env.blob(pack_id).write_bytes(b"")
    with pytest.raises(ContentDamaged):
        await anext(env.reader.read_slices(blocks))


async def test_a_whole_copy_is_preferred_to_a_damaged_one(env: StorageEnv) -> None:
    for number in range(2):
        _, (tree,) = await env.keep(CONTENT, holder=f"file/{number}")
    stat = await env.reader.stat(env.scope, tree.cid)
    env.blob(stat.block.pack_id).write_bytes(b"")
    with pytest.raises(ContentDamaged):
        await read_whole(env.reader, env.scope, stat)
    again = await env.reader.stat(env.scope, tree.cid)
    assert await read_whole(env.reader, env.scope, again) == CONTENT


async def test_content_in_the_cid_itself(env: StorageEnv) -> None:
    assert await env.reader.read_block(env.scope, Cid(1, RAW, IDENTITY, b"tiny")) == b"tiny"
