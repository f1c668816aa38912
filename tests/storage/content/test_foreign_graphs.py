"""Files of other importers: read by range, proved by range, verified.

Nothing here looks like our importer's output: nodes have content, branches any depth, leaves any size or repetition,
content is inside CIDs, CIDs have either version.
"""

import random
from collections.abc import Mapping

import pytest

from roost.storage.content.car_export import DagScope, EntityBytes, export_car
from roost.storage.content.errors import ContentDamaged
from roost.storage.content.model import MAX_FILE_DEPTH
from roost.storage.content.unixfs import car, dagpb
from roost.storage.content.unixfs.cid import DAG_PB, IDENTITY, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from tests.storage.cars import encode_car, take
from tests.storage.storage_env import StorageEnv

SEEDS = pytest.mark.parametrize("seed", range(12))
Graph = dict[Cid, bytes]


@pytest.fixture
def dialect() -> str:
    return "sqlite"


def random_file(chance: random.Random, blocks: Graph, depth: int = 0) -> tuple[Cid, bytes]:
    """Build a random file; return its root and content, and add its blocks to the given ones."""
    own = chance.randbytes(chance.choice([0, 0, 1, 50, 700]))
    form = chance.choice(["raw", "raw", "node", "inline", "branch", "branch", "branch"])
    if depth == 0 or (form == "branch" and depth < 5):
        below = [random_file(chance, blocks, depth + 1) for _ in range(chance.randint(1 if depth else 2, 5))]
        if chance.random() < 0.3:
            below.append(below[0])
        sizes = [len(data) for _, data in below]
        data = own + b"".join(data for _, data in below)
        told = chance.choice([None, len(data)])
        links = [PBLink(cid, "", chance.randint(0, 1 << 40)) for cid, _ in below]
        node = dagpb.encode_node(links, UnixfsData(UnixfsKind.FILE, own, told, sizes))
        cid = Cid.for_block(DAG_PB, node, chance.choice([0, 1]))
        blocks[cid] = node
        return cid, data
    if form == "inline":
        return Cid(1, RAW, IDENTITY, own[:40]), own[:40]
    if form == "node":
        leaf = dagpb.encode_node([], UnixfsData(chance.choice([UnixfsKind.FILE, UnixfsKind.RAW]), own, len(own)))
        cid = Cid.for_block(DAG_PB, leaf)
        blocks[cid] = leaf
    else:
        cid = Cid.for_block(RAW, own)
        blocks[cid] = own
    return cid, own


def ranges(chance: random.Random, size: int) -> list[tuple[int, int]]:
    ends = [sorted((chance.randint(0, size), chance.randint(0, size))) for _ in range(6)]
    return [(0, size), (0, 0), (size, size), (size // 2, size // 2 + 1), *((first, last) for first, last in ends)]


async def read(env: StorageEnv, cid: Cid, begin: int, end: int) -> bytes:
    stat = await env.reader.stat(env.scope, cid)
    return b"".join([piece async for piece in env.reader.stream_file(env.scope, stat, begin, end)])


def read_out_of(blocks: Mapping[bytes, bytes], cid: Cid, begin: int, end: int) -> bytes:
    """Read the same range as a client that has these blocks only."""
    block = cid.digest if cid.hash == IDENTITY else blocks[cid.digest]
    if cid.codec != DAG_PB:
        return block[begin:end]
    node = dagpb.decode_node(block)
    found, at = node.unixfs.data[begin:end], len(node.unixfs.data)
    for link, size in zip(node.links, node.unixfs.sizes, strict=True):
        if at < end and at + size > begin:
            found += read_out_of(blocks, link.cid, max(0, begin - at), min(size, end - at))
        at += size
    return found


@SEEDS
async def test_every_range_is_the_file_s(env: StorageEnv, seed: int) -> None:
    chance, blocks = random.Random(seed), Graph()
    root, data = random_file(chance, blocks)
    kept = await take(env, encode_car([root], chance.sample(list(blocks.items()), len(blocks))))
    assert (kept.cid, kept.kind, kept.size) == (root, UnixfsKind.FILE, len(data))
    for begin, end in ranges(chance, len(data)):
        assert await read(env, root, begin, end) == data[begin:end]


@SEEDS
async def test_exported_range_is_enough_to_read_it(env: StorageEnv, seed: int) -> None:
    chance, blocks = random.Random(seed), Graph()
    root, data = random_file(chance, blocks)
    await take(env, encode_car([root], blocks.items()))
    steps = await env.reader.resolve(env.scope, root, [])
    for begin, end in ranges(chance, len(data)):
        if begin == end:
            continue
        reader, got = car.CarReader(), dict[bytes, bytes]()
        async for piece in export_car(env.reader, env.scope, steps, DagScope.ENTITY, EntityBytes(begin, end - 1)):
            got |= {one.cid.digest: one.data for one in reader.feed(piece)}
        reader.finish()
        assert read_out_of(got, root, begin, end) == data[begin:end]
        assert got.keys() <= {cid.digest for cid in blocks}


@SEEDS
async def test_a_byte_that_changed_is_never_read(env: StorageEnv, seed: int) -> None:
    """With damage anywhere in the pack, a range is correct or refused."""
    chance, blocks = random.Random(seed), Graph()
    root, data = random_file(chance, blocks)
    await take(env, encode_car([root], blocks.items()))
    (blob,) = [blob async for blob in env.content._blobs.list()]
    path = env.blob(blob.key)
    broken = bytearray(path.read_bytes())
    broken[chance.randrange(len(broken))] ^= 1 << chance.randrange(8)
    path.write_bytes(broken)
    for begin, end in ranges(chance, len(data)):
        try:
            assert await read(env, root, begin, end) == data[begin:end]
        except ContentDamaged:
            continue


async def test_as_deep_as_it_may_be(env: StorageEnv) -> None:
    blocks: Graph = {Cid.for_block(RAW, b"deep"): b"deep"}
    for _ in range(MAX_FILE_DEPTH):
        below = list(blocks)[-1]
        node = dagpb.encode_node([PBLink(below, "", 4)], UnixfsData(UnixfsKind.FILE, sizes=[4]))
        blocks[Cid.for_block(DAG_PB, node)] = node
    root = list(blocks)[-1]
    await take(env, encode_car([root], blocks.items()))
    assert await read(env, root, 1, 3) == b"ee"


@pytest.mark.parametrize(
    ("first", "last", "within"),
    [
        (0, None, (0, 10)),
        (0, 0, (0, 1)),
        (3, 5, (3, 6)),
        (0, 100, (0, 10)),
        (-3, None, (7, 10)),
        (-3, -2, (7, 9)),
        (-100, -1, (0, 10)),
        (9, None, (9, 10)),
    ],
)
def test_spans_of_ten_bytes(first: int, last: int | None, within: tuple[int, int]) -> None:
    assert EntityBytes(first, last).resolve(10) == within


@pytest.mark.parametrize(("first", "last"), [(10, None), (5, 4), (100, 200), (-1, -2), (0, -11)])
def test_spans_with_nothing_in_them(first: int, last: int) -> None:
    begin, end = EntityBytes(first, last).resolve(10)
    assert b"0123456789"[begin : max(end, 0)] == b""
