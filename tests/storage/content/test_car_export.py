"""CAR export: the requested blocks, each once, with the path to them."""

from collections.abc import Iterable

import pytest

from roost.storage.content import service
from roost.storage.content.car_export import DagScope, EntityBytes, export_car
from roost.storage.content.errors import InvalidByteRange, TooManyBlocks
from roost.storage.content.model import ContentNetwork, PackReference
from roost.storage.content.tree_walk import walk_tree
from roost.storage.content.unixfs import car, dagpb
from roost.storage.content.unixfs.cid import DAG_PB, IDENTITY, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.profile import V1, ImportProfile
from tests.storage.cars import EVERY_PROFILE, Blocks, blocks_of, encode_car, folder_of_files, take
from tests.storage.storage_env import CONTENT, StorageEnv, entry


@pytest.fixture
def dialect() -> str:
    """Use SQLite only; other tests cover this SQL on both databases."""
    return "sqlite"


async def sent(
    env: StorageEnv, root: Cid, path: list[str], dag_scope: DagScope = DagScope.ALL, span: EntityBytes | None = None
) -> Blocks:
    """Return the blocks of an exported CAR, checked to be unique."""
    reader, steps = car.CarReader(), await env.reader.resolve(env.scope, root, path)
    found: Blocks = []
    async for piece in export_car(env.reader, env.scope, steps, dag_scope, span):
        found += [(one.cid, one.data) for one in reader.feed(piece)]
    reader.finish()
    assert reader.roots == [steps[-1].cid]
    assert len({cid for cid, _ in found}) == len(found)
    return found


@EVERY_PROFILE
async def test_all_of_it_goes_out(env: StorageEnv, profile: ImportProfile) -> None:
    root, blocks = folder_of_files(profile, 3000)
    await take(env, encode_car([root], blocks))
    assert sorted(map(str, dict(await sent(env, root, [])))) == sorted(map(str, dict(blocks)))


@EVERY_PROFILE
async def test_imported_blocks_are_exported(env: StorageEnv, profile: ImportProfile) -> None:
    tree, blocks = blocks_of(profile, CONTENT)
    await env.keep(b"before", CONTENT, profile=profile)
    assert dict(await sent(env, tree.cid, [])) == dict(blocks)


async def test_modes_and_links_go_out_and_come_back(env: StorageEnv) -> None:
    async with env.content.receive(V1) as pack:
        await pack.write(b"#!/bin/sh")
        script = await pack.end_file(0o755)
        folder = pack.add_folder([entry("run", script), entry("link", pack.add_link("run"))], 0o700)
        hold = PackReference(pack.pack_id, "file/1", env.tenant_id, ContentNetwork.PRIVATE)
        await pack.commit(lambda connection: service.hold_pack(connection, hold))
    blocks = await sent(env, folder.cid, [])
    assert len(blocks) == 4
    env.db.run(lambda connection: service.release_packs(connection, "file/1"))
    contents = await take(env, encode_car([folder.cid], blocks))
    assert (contents.cid, contents.kind, contents.files) == (folder.cid, UnixfsKind.DIRECTORY, 2)
    members = [(one.path, one.kind, one.mode, one.target) async for one in walk_tree(env.reader, env.scope, folder.cid)]
    assert sorted(members) == [
        ("", "folder", 0o700, b""),
        ("link", "link", None, b"run"),
        ("run", "file", 0o755, b""),
    ]


async def test_the_way_is_proved(env: StorageEnv) -> None:
    """A client with only the root's CID can verify each step to the block."""
    root, blocks = folder_of_files(V1, 3000)
    await take(env, encode_car([root], blocks))
    for scope, most in ((DagScope.BLOCK, 4), (DagScope.ENTITY, 30), (DagScope.ALL, 30)):
        found = await sent(env, root, ["in", "big"], scope)
        assert found[0][0] == root
        assert len(found) <= most
        linked = {root} | {
            link.cid for cid, data in found if cid.codec == DAG_PB for link in dagpb.decode_node(data).links
        }
        assert {cid for cid, _ in found} <= linked


async def test_the_list_of_a_folder_goes_out_without_its_files(env: StorageEnv) -> None:
    root, blocks = folder_of_files(V1, 3000)
    await take(env, encode_car([root], blocks))
    found = await sent(env, root, [], DagScope.ENTITY)
    assert 1 < len(found) < 500
    assert all(dagpb.decode_node(data).unixfs.kind is UnixfsKind.SHARD for _, data in found)
    assert len(await sent(env, root, [], DagScope.BLOCK)) == 1


@pytest.mark.parametrize(
    ("text", "leaves"),
    [("0:0", [0]), ("262143:262144", [0, 1]), ("-1:*", [19]), ("4900000:-1", [18, 19]), ("0:*", range(20))],
)
async def test_parts_of_a_file(env: StorageEnv, text: str, leaves: Iterable[int]) -> None:
    _, (tree,) = await env.keep(CONTENT)
    found = await sent(env, tree.cid, [], span=EntityBytes.parse(text))
    wanted = [Cid.for_block(RAW, CONTENT[n * V1.chunk : (n + 1) * V1.chunk]) for n in leaves]
    assert [cid for cid, _ in found] == [tree.cid, *wanted]


@pytest.mark.parametrize("text", ["", "1", "a:b", "1:2:3", ":5", "1:", "1 :2", "9" * 30 + ":*"])
def test_malformed_spans_are_refused(text: str) -> None:
    with pytest.raises(InvalidByteRange):
        EntityBytes.parse(text)


async def test_export_ends_at_the_limit_of_blocks(env: StorageEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    _, (tree,) = await env.keep(CONTENT)
    monkeypatch.setattr("roost.storage.content.car_export.MAX_BLOCKS", 5)
    with pytest.raises(TooManyBlocks):
        await sent(env, tree.cid, [])


async def test_repeated_blocks_are_exported_once(env: StorageEnv) -> None:
    """2^50 files from 51 blocks."""
    blocks: Blocks = [(Cid.for_block(RAW, b"x"), b"x")]
    for _ in range(50):
        below = blocks[-1][0]
        node = dagpb.encode_node([PBLink(below, "a", 1), PBLink(below, "b", 1)], UnixfsData(UnixfsKind.DIRECTORY))
        blocks.append((Cid.for_block(DAG_PB, node), node))
    kept = await take(env, encode_car([blocks[-1][0]], blocks))
    assert len(await sent(env, kept.cid, [])) == 51


@pytest.mark.parametrize("first", [RAW, DAG_PB])
async def test_a_node_that_is_also_linked_as_plain_bytes_loses_nothing(env: StorageEnv, first: int) -> None:
    leaf = (Cid.for_block(RAW, b"x"), b"x")
    node = dagpb.encode_node([PBLink(leaf[0], "", 1)], UnixfsData(UnixfsKind.FILE, size=1, sizes=[1]))
    both = [Cid.for_block(codec, node) for codec in ((RAW, DAG_PB) if first == RAW else (DAG_PB, RAW))]
    links = [PBLink(cid, name, len(node)) for cid, name in zip(both, "ab", strict=True)]
    folder = dagpb.encode_node(links, UnixfsData(UnixfsKind.DIRECTORY))
    root = Cid.for_block(DAG_PB, folder)
    await take(env, encode_car([root], [leaf, *((cid, node) for cid in both), (root, folder)]))
    assert sorted(data for _, data in await sent(env, root, [])) == sorted([folder, node, b"x"])


async def test_content_in_cids_is_no_block(env: StorageEnv) -> None:
    node = dagpb.encode_node(
        [PBLink(Cid(1, RAW, IDENTITY, b"tiny"), "", 4)], UnixfsData(UnixfsKind.FILE, size=4, sizes=[4])
    )
    cid = Cid.for_block(DAG_PB, node)
    await take(env, encode_car([cid], [(cid, node)]))
    assert await sent(env, cid, []) == [(cid, node)]
