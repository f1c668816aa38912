"""Small graphs that take very long to walk: a CAR may link one block from many others."""

import asyncio
import threading
from collections.abc import Sequence

import pytest

from roost.drivers.blob.folder_store import FolderStore
from roost.storage.content import service
from roost.storage.content.errors import ContentNotAFolder, TooDeep, TooManyShards
from roost.storage.content.model import ContentNetwork, ContentScope, PackReference
from roost.storage.content.reader import ContentReader
from roost.storage.content.tar_archive import TarArchive
from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_PB, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.errors import MalformedContent
from tests.storage.cars import encode_car
from tests.storage.storage_env import StorageEnv

Block = tuple[Cid, bytes]
PUBLIC = ContentScope(ContentNetwork.PUBLIC, None)


@pytest.fixture
def dialect() -> str:
    """Use SQLite only; nothing here depends on the database."""
    return "sqlite"


def shard(*links: PBLink) -> Block:
    block = dagpb.encode_node(links, UnixfsData(UnixfsKind.SHARD, hash=0x22, fanout=256))
    return Cid.for_block(DAG_PB, block), block


def shards(leaf: Block, depth: int) -> Sequence[Block]:
    """Return a leaf below that many shards, each of which has 256 links to the one below."""
    blocks = [leaf]
    for _ in range(depth):
        blocks.append(shard(*(PBLink(blocks[-1][0], f"{env:02X}", 1) for env in range(256))))
    return blocks


def file(links: Sequence[tuple[Cid, int]]) -> Block:
    sizes = [size for _, size in links]
    block = dagpb.encode_node(
        [PBLink(cid, "", 1) for cid, _ in links], UnixfsData(UnixfsKind.FILE, size=sum(sizes), sizes=sizes)
    )
    return Cid.for_block(DAG_PB, block), block


async def take(env: StorageEnv, blocks: Sequence[Block]) -> Cid:
    """Receive blocks; the last one is the root."""
    root = blocks[-1][0]
    async with env.content.receive_car() as pack:
        await pack.write(encode_car([root], blocks))
        await pack.finish()
        hold = PackReference(pack.pack_id, f"file/{pack.pack_id}", env.tenant_id, ContentNetwork.PUBLIC)
        await pack.commit(lambda connection: service.hold_pack(connection, hold))
    return root


async def names(reader: ContentReader, root: Cid, most: int) -> list[str]:
    found: list[str] = []
    async for link in reader.list_entries(PUBLIC, await reader.stat(PUBLIC, root)):
        found.append(link.name)
        if len(found) == most:
            break
    return found


async def test_a_folder_of_empty_shards_has_an_end(env: StorageEnv) -> None:
    root = await take(env, shards(shard(), 8))
    async with asyncio.timeout(20):
        with pytest.raises(TooManyShards):
            await names(env.reader, root, 1)
        with pytest.raises(TooManyShards):
            await TarArchive(env.reader, PUBLIC, await env.reader.stat(PUBLIC, root)).check()


async def test_empty_shards_behind_an_entry_have_an_end_too(env: StorageEnv) -> None:
    raw = (Cid.for_block(RAW, b"x"), b"x")
    empty = shards(shard(), 6)
    root = shard(PBLink(raw[0], "00a.txt", 1), *(PBLink(empty[-1][0], f"{n:02X}", 1) for n in range(1, 256)))
    async with asyncio.timeout(20):
        with pytest.raises(TooManyShards):
            await names(env.reader, await take(env, [raw, *empty, root]), 2)


async def test_entries_at_the_end_of_long_ways_are_found(env: StorageEnv) -> None:
    """Names with equal hashes have their own shards down to the last level."""
    raw = (Cid.for_block(RAW, b"x"), b"x")
    blocks = [raw, shard(PBLink(raw[0], "00a.txt", 1), PBLink(raw[0], "01b.txt", 1))]
    for _ in range(6):
        blocks.append(shard(PBLink(blocks[-1][0], "07", 1)))
    blocks.append(shard(*(PBLink(blocks[-1][0], f"{n:02X}", 1) for n in range(256))))
    assert len(await names(env.reader, await take(env, blocks), 10_000)) == 512


async def test_shards_that_are_deeper_than_a_hash_is_long(env: StorageEnv) -> None:
    """Each has an entry, which allows for the one below."""
    raw = (Cid.for_block(RAW, b"x"), b"x")
    blocks = [raw, shard(PBLink(raw[0], "00end.txt", 1))]
    for _ in range(8):
        blocks.append(shard(PBLink(raw[0], "00a.txt", 1), PBLink(blocks[-1][0], "01", 1)))
    assert len(await names(env.reader, await take(env, blocks), 100)) == 9
    blocks.append(shard(PBLink(raw[0], "00a.txt", 1), PBLink(blocks[-1][0], "01", 1)))
    with pytest.raises(TooDeep):
        await names(env.reader, await take(env, blocks), 100)


@pytest.mark.parametrize("fanout", [16, 1024, None])
async def test_shards_of_another_width_are_no_folder(env: StorageEnv, fanout: int | None) -> None:
    raw = (Cid.for_block(RAW, b"x"), b"x")
    names_of = {16: "0", 1024: "000", None: "00"}
    block = dagpb.encode_node(
        [PBLink(raw[0], f"{names_of[fanout]}a", 1)], UnixfsData(UnixfsKind.SHARD, hash=0x22, fanout=fanout)
    )
    root = await take(env, [raw, (Cid.for_block(DAG_PB, block), block)])
    with pytest.raises(ContentNotAFolder):
        await names(env.reader, root, 1)
    with pytest.raises(ContentNotAFolder):
        await env.reader.resolve(PUBLIC, root, ["a"])


class CountingStore(FolderStore):
    """Blob store that counts its reads."""

    count = 0

    async def read(self, key: str, offset: int, length: int) -> bytes:
        self.count += 1
        return await super().read(key, offset, length)


async def test_bytes_between_nothings_are_read(env: StorageEnv) -> None:
    """Links of size 0 are not followed; a file of many links to a file of many links would take forever."""
    one, nothing = (Cid.for_block(RAW, b"1"), b"1"), (Cid.for_block(RAW, b""), b"")
    inner = file([(one[0], 1), *[(nothing[0], 0)] * 1000, (one[0], 1)])
    outer = file([(inner[0], 2)] * 1000)
    root = await take(env, [one, nothing, inner, outer])
    blobs = CountingStore(env.folder / "blobs")
    reader = ContentReader(env.db, blobs)
    pieces = [piece async for piece in reader.stream_file(PUBLIC, await reader.stat(PUBLIC, root), 0, 21)]
    assert b"".join(pieces) == b"1" * 21
    assert blobs.count < 50


async def test_others_have_their_turn_while_a_graph_is_walked(env: StorageEnv) -> None:
    one = (Cid.for_block(RAW, b"1"), b"1")
    root = await take(env, [one, file([(one[0], 1)] * 2000)])
    stat = await env.reader.stat(PUBLIC, root)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    busy = asyncio.create_task(others())
    pieces = [piece async for piece in env.reader.stream_file(PUBLIC, stat)]
    busy.cancel()
    assert len(pieces) == 2000
    assert turns >= 20


async def test_others_go_on_while_a_large_folder_is_taken_apart(
    env: StorageEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaf = (Cid.for_block(RAW, b"x"), b"x")
    node = dagpb.encode_node(
        [PBLink(leaf[0], f"{number:05d}", 1) for number in range(3_000)], UnixfsData(UnixfsKind.DIRECTORY)
    )
    root = await take(env, [leaf, (Cid.for_block(DAG_PB, node), node)])
    began, goes_on = threading.Event(), threading.Event()
    decode = dagpb.decode_node

    def slow(block: bytes) -> dagpb.PBNode:
        began.set()
        assert goes_on.wait(20)
        return decode(block)

    monkeypatch.setattr(dagpb, "decode_node", slow)
    asked = asyncio.create_task(env.reader.resolve(PUBLIC, root, ["02999"]))
    async with asyncio.timeout(20):
        while not began.is_set():
            await asyncio.sleep(0.01)
    goes_on.set()
    assert (await asked)[-1].cid == leaf[0]


async def test_sizes_without_links_take_no_memory(env: StorageEnv) -> None:
    block = dagpb.encode_node((), UnixfsData(UnixfsKind.FILE, sizes=[0] * 10_000))
    cid = Cid.for_block(DAG_PB, block)
    async with env.content.receive_car() as pack:
        await pack.write(encode_car([cid], [(cid, block)]))
        with pytest.raises(MalformedContent, match="declares a wrong size"):
            await pack.finish()
        assert [len(node.link_sizes) for node in pack._nodes.values()] == [1]
