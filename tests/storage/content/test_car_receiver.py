"""A received CAR is a whole file or folder, or nothing is stored."""

from collections.abc import Iterable

import pytest

from roost.storage.content import car_receiver
from roost.storage.content.car_receiver import CarContents
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_CBOR, DAG_PB, IDENTITY, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.errors import MalformedContent
from roost.storage.content.unixfs.profile import V1, ImportProfile
from tests.storage.cars import EVERY_PROFILE, Blocks, blocks_of, encode_car, folder_of_files, take
from tests.storage.storage_env import CONTENT, StorageEnv


@pytest.fixture
def dialect() -> str:
    """Use SQLite only; other tests cover this SQL on both databases."""
    return "sqlite"


async def refused(env: StorageEnv, blocks: Iterable[tuple[Cid, bytes]], roots: list[Cid], why: str) -> None:
    with pytest.raises(MalformedContent, match=why):
        await take(env, encode_car(roots, blocks))
    assert not [blob async for blob in env.content._blobs.list()]


@EVERY_PROFILE
async def test_a_folder_is_read_out_of_it(env: StorageEnv, profile: ImportProfile) -> None:
    root, blocks = folder_of_files(profile, 3000)
    kept = await take(env, encode_car([root], blocks))
    assert kept == CarContents(root, UnixfsKind.SHARD, len(CONTENT) + 5 * 3000, 3001)
    steps = await env.reader.resolve(env.scope, root, ["in", "big"])
    parts = [piece async for piece in env.reader.stream_file(env.scope, steps[-1], 1_000_000, 3_000_001)]
    assert b"".join(parts) == CONTENT[1_000_000:3_000_001]
    assert len([link async for link in env.reader.list_entries(env.scope, steps[0])]) == 3001


@EVERY_PROFILE
async def test_a_file_alone(env: StorageEnv, profile: ImportProfile) -> None:
    tree, blocks = blocks_of(profile, CONTENT)
    kept = await take(env, encode_car([tree.cid], reversed(blocks)), 1 << 22)
    assert kept == CarContents(tree.cid, UnixfsKind.FILE, len(CONTENT), 1)
    for cid, block in blocks:
        assert await env.reader.read_block(env.scope, cid) == block


async def test_a_block_alone(env: StorageEnv) -> None:
    tree, blocks = blocks_of(V1, b"small")
    assert await take(env, encode_car([tree.cid], blocks)) == CarContents(tree.cid, UnixfsKind.RAW, 5, 1)
    stat = await env.reader.stat(env.scope, tree.cid)
    assert b"".join([piece async for piece in env.reader.stream_file(env.scope, stat)]) == b"small"


async def test_no_file_lacks_a_block(env: StorageEnv) -> None:
    root, blocks = folder_of_files(V1)
    for lost in (0, 5, len(blocks) - 2):
        await refused(env, blocks[:lost] + blocks[lost + 1 :], [root], f"lacks the block {blocks[lost][0]}")
    await refused(env, blocks[:-1], [root], "does not have the block of its root")


async def test_a_root_without_a_block_is_told(env: StorageEnv) -> None:
    root = Cid(1, RAW, IDENTITY, b"inline!")
    await refused(env, [(root, b"inline!")], [root], "cannot be an identity CID")


async def test_one_root_is_needed(env: StorageEnv) -> None:
    root, blocks = folder_of_files(V1)
    await refused(env, blocks, [], "0 roots")
    await refused(env, blocks, [root, blocks[0][0]], "2 roots")


async def test_truncated_or_changed_car_is_refused(env: StorageEnv) -> None:
    root, blocks = folder_of_files(V1)
    data = encode_car([root], blocks)
    for broken in (data[:-1], data[:3_000_000] + b"!" + data[3_000_001:]):
        with pytest.raises(MalformedContent):
            await take(env, broken)
    assert not [blob async for blob in env.content._blobs.list()]


async def test_a_hash_function_that_is_not_taken_is_named(env: StorageEnv) -> None:
    other = Cid(1, RAW, 0x1E, bytes(32))  # blake3
    await refused(env, [(other, b"x")], [other], "has the hash function 0x1e; it must be sha2-256")
    node = dagpb.encode_node([PBLink(other, "a", 1)], UnixfsData(UnixfsKind.DIRECTORY))
    root = Cid.for_block(DAG_PB, node)
    await refused(env, [(root, node)], [root], "a link with the hash function 0x1e; it must be sha2-256")


async def test_blocks_outside_files_are_refused(env: StorageEnv) -> None:
    odd = Cid.for_block(DAG_CBOR, b"\xa0")
    await refused(env, [(odd, b"\xa0")], [odd], "a link with an unsupported codec")
    link = dagpb.encode_node([], UnixfsData(UnixfsKind.SYMLINK, b"/etc/passwd"))
    cid = Cid.for_block(DAG_PB, link)
    await refused(env, [(cid, link)], [cid], "neither a file nor a folder")


@pytest.mark.parametrize("sizes", [[4], [6], [], [5, 0]])
async def test_files_that_tell_wrong_sizes(env: StorageEnv, sizes: list[int]) -> None:
    small = Cid.for_block(RAW, b"small")
    lie = dagpb.encode_node([PBLink(small, "", 5)], UnixfsData(UnixfsKind.FILE, size=sum(sizes), sizes=sizes))
    cid = Cid.for_block(DAG_PB, lie)
    await refused(env, [(small, b"small"), (cid, lie)], [cid], "declares a wrong size")


async def test_files_that_are_too_deep(env: StorageEnv) -> None:
    blocks: Blocks = [(Cid.for_block(RAW, b"small"), b"small")]
    for _ in range(65):
        node = dagpb.encode_node([PBLink(blocks[-1][0], "", 5)], UnixfsData(UnixfsKind.FILE, size=5, sizes=[5]))
        blocks.append((Cid.for_block(DAG_PB, node), node))
    await refused(env, blocks, [blocks[-1][0]], "too deep")
    assert (await take(env, encode_car([blocks[-2][0]], blocks))).size == 5


async def test_it_holds_so_many_blocks_and_links(env: StorageEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    root, blocks = folder_of_files(V1)
    monkeypatch.setattr(car_receiver, "MAX_BLOCKS", 5)
    await refused(env, blocks, [root], "more than 5 blocks")
    monkeypatch.setattr(car_receiver, "MAX_BLOCKS", 100)
    monkeypatch.setattr(car_receiver, "MAX_LINKS", 15)
    await refused(env, blocks, [root], "more than 15 links")


async def test_a_folder_of_folders_twice_each_is_counted(env: StorageEnv) -> None:
    """2^60 empty files from 61 blocks are counted without walking them."""
    blocks: Blocks = [(Cid.for_block(RAW, b""), b"")]
    for _ in range(60):
        below = blocks[-1][0]
        node = dagpb.encode_node([PBLink(below, "a", 1), PBLink(below, "b", 1)], UnixfsData(UnixfsKind.DIRECTORY))
        blocks.append((Cid.for_block(DAG_PB, node), node))
    kept = await take(env, encode_car([blocks[-1][0]], blocks))
    assert kept.files == 2**31 - 1


async def test_more_bytes_than_can_be_counted(env: StorageEnv) -> None:
    block = b"x" * 100
    blocks: Blocks = [(Cid.for_block(RAW, block), block)]
    for level in range(40):
        below = [PBLink(blocks[-1][0], name, 0) for name in ("a", "b", "c")]
        folder = dagpb.encode_node(below, UnixfsData(UnixfsKind.DIRECTORY))
        blocks.append((Cid.for_block(DAG_PB, folder), folder))
        if level == 10:
            await take(env, encode_car([blocks[-1][0]], blocks))
    with pytest.raises(MalformedContent, match="larger than"):
        await take(env, encode_car([blocks[-1][0]], blocks))


async def test_content_in_cids(env: StorageEnv) -> None:
    tiny = Cid(1, RAW, IDENTITY, b"tiny")
    node = dagpb.encode_node([PBLink(tiny, "", 4)], UnixfsData(UnixfsKind.FILE, size=4, sizes=[4]))
    cid = Cid.for_block(DAG_PB, node)
    assert (await take(env, encode_car([cid], [(cid, node)]))).size == 4


async def test_blocks_beside_the_root_are_not_content(env: StorageEnv) -> None:
    tree, blocks = blocks_of(V1, b"small")
    await take(env, encode_car([tree.cid], [*blocks, (Cid.for_block(RAW, b"beside"), b"beside")]))
    with pytest.raises(ContentNotFound):
        await env.reader.read_block(env.scope, Cid.for_block(RAW, b"beside"))
