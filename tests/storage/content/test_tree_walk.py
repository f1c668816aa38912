"""A walk yields every member of a tree as it was kept; a hostile tree is refused."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection

from roost.core import clock
from roost.core.problem import Problem
from roost.storage.content import service, store
from roost.storage.content.errors import ContentDamaged, ContentNotFound, TooDeep, TooManyEntries
from roost.storage.content.model import (
    BlockLocation,
    BlockMatch,
    BlockRow,
    ContentNetwork,
    ContentScope,
    Pack,
    PackReference,
)
from roost.storage.content.receiver import ContentReceiver
from roost.storage.content.tree_walk import MemberKind, TreeMember, walk_tree
from roost.storage.content.unixfs import dagpb
from roost.storage.content.unixfs.cid import DAG_CBOR, DAG_PB, IDENTITY, RAW, Cid
from roost.storage.content.unixfs.dagpb import PBLink, UnixfsData, UnixfsKind
from roost.storage.content.unixfs.directory import DirectoryEntry, hash_name
from roost.storage.content.unixfs.entry_name import encode_entry_name
from roost.storage.content.unixfs.errors import InvalidEntryName, MalformedContent
from roost.storage.content.unixfs.importer import DagTree
from roost.storage.content.unixfs.profile import UNIXFS_V1_2025, V0, ImportProfile
from tests.storage.storage_env import CONTENT, StorageEnv, entry

LEAF = Cid(1, RAW, IDENTITY, b"x")
FILE, FOLDER, LINK = MemberKind.FILE, MemberKind.FOLDER, MemberKind.LINK


async def keep_tree(
    env: StorageEnv, build: Callable[[ContentReceiver], DagTree], files: Sequence[tuple[bytes, int | None]] = ()
) -> tuple[DagTree, list[DagTree], str]:
    """Keep these files and what `build` adds to their pack; return what it built, the files and the pack."""
    async with env.content.receive(UNIXFS_V1_2025) as pack:
        return await _fill(env, pack, build, files)


async def _fill(
    env: StorageEnv,
    pack: ContentReceiver,
    build: Callable[[ContentReceiver], DagTree],
    files: Sequence[tuple[bytes, int | None]],
) -> tuple[DagTree, list[DagTree], str]:
    trees: list[DagTree] = []
    for data, mode in files:
        await pack.write(data)
        trees.append(await pack.end_file(mode))
    built = build(pack)
    packs = [pack.pack_id]
    holder = f"snapshot/{pack.pack_id}"
    await pack.commit(lambda db: service.hold_packs(db, holder, env.tenant_id, ContentNetwork.PRIVATE, packs))
    return built, trees, pack.pack_id


async def walked(env: StorageEnv, root: Cid, **limits: Any) -> dict[str, TreeMember]:
    found: dict[str, TreeMember] = {}
    async for member in walk_tree(env.reader, env.scope, root, **limits):
        above = member.path.rpartition("/")[0]
        assert member.path not in found
        assert not found or found[above].kind is FOLDER  # a folder comes before its entries
        found[member.path] = member
    return found


async def test_all_of_a_tree_is_told(env: StorageEnv) -> None:
    names = ["größe", "line\nbreak", "-rf *", "back\\slash", "caf\udce9", "\udcff" * 255]
    plain, script = (await env.keep(b"plain", CONTENT, profile=UNIXFS_V1_2025))[1]

    def build(pack: ContentReceiver) -> DagTree:
        link = pack.add_link(b"../caf\xe9", 0o777)
        empty = pack.add_folder([], 0o700)
        odd = pack.add_folder([entry(encode_entry_name(name), plain) for name in names])
        return pack.add_folder([entry("odd", odd), entry("empty", empty), entry("link", link), entry("big", script)])

    root, _, _ = await keep_tree(env, build)
    found = await walked(env, root.cid)
    kinds = {path: (one.kind, one.size, one.mode, one.target) for path, one in found.items()}
    assert kinds == {
        "": (FOLDER, 0, None, b""),
        "big": (FILE, len(CONTENT), None, b""),
        "empty": (FOLDER, 0, 0o700, b""),
        "link": (LINK, 7, 0o777, b"../caf\xe9"),
        "odd": (FOLDER, 0, None, b""),
    } | {f"odd/{name}": (FILE, 5, None, b"") for name in names}
    assert (found["big"].cid, found["odd/größe"].cid, found[""].cid) == (script.cid, plain.cid, root.cid)
    assert await walked(env, root.cid, finds_leaves=False) == found


@pytest.mark.parametrize(("data", "mode"), [(b"", None), (b"", 0o755), (b"small", 0o755), (CONTENT, 0o755)])
async def test_a_file_is_a_tree_too(env: StorageEnv, data: bytes, mode: int | None) -> None:
    _, (_, file), _ = await keep_tree(env, lambda pack: pack.add_folder([]), [(data, None), (data, mode)])
    assert await walked(env, file.cid) == {"": TreeMember("", FILE, file.cid, len(data), mode)}


async def test_files_of_node_leaves_have_their_size(env: StorageEnv) -> None:
    _, (tree,) = await env.keep(b"of a node", profile=V0)
    assert (await walked(env, tree.cid))[""] == TreeMember("", FILE, tree.cid, 9)


@pytest.mark.parametrize("profile", [UNIXFS_V1_2025, V0], ids=["v1", "v0"])
async def test_a_sharded_folder_has_all_its_entries(env: StorageEnv, profile: ImportProfile) -> None:
    _, (file,) = await env.keep(b"x", profile=profile)
    names = {f"{number}-{'x' * 100}" for number in range(4000)}
    async with env.content.receive(profile) as pack:
        root, _, _ = await _fill(env, pack, lambda to: to.add_folder([entry(n, file) for n in names], 0o711), [])
    found = await walked(env, root.cid)
    assert found.keys() == names | {""}
    assert (found[""].mode, found[max(names)].cid) == (0o711, file.cid)
    assert await walked(env, root.cid, finds_leaves=False) == found


async def test_a_leaf_that_is_not_looked_up_is_as_its_folder_says(env: StorageEnv) -> None:
    missing = Cid.for_block(RAW, b"never kept")
    root, _, _ = await keep_tree(env, lambda pack: pack.add_folder([DirectoryEntry("file", missing, 3, 3)]))
    assert (await walked(env, root.cid, finds_leaves=False))["file"] == TreeMember("file", FILE, missing, 3)
    with pytest.raises(ContentNotFound):
        await walked(env, root.cid)


async def test_looking_up_takes_few_queries(env: StorageEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(pack: ContentReceiver) -> DagTree:
        folders = [pack.add_folder([entry(f"{n}", pack.add_link(f"{m}/{n}")) for n in range(10)]) for m in range(100)]
        return pack.add_folder([entry(f"{number}", folder) for number, folder in enumerate(folders)])

    root, _, _ = await keep_tree(env, build)
    find, queries = env.reader.find_blocks, list[int]()

    def count_query(scope: ContentScope, cids: Sequence[Cid]) -> Awaitable[Sequence[BlockMatch]]:
        queries.append(len(cids))
        return find(scope, cids)

    monkeypatch.setattr(env.reader, "find_blocks", count_query)
    assert len(await walked(env, root.cid)) == 1101
    assert len(queries) <= 5


async def nested(env: StorageEnv, height: int, names: Sequence[str]) -> Cid:
    """Keep nested folders; each has the next one under each of these names."""

    def build(pack: ContentReceiver) -> DagTree:
        tree = pack.add_folder([])
        for _ in range(height):
            tree = pack.add_folder([entry(name, tree) for name in names])
        return tree

    return (await keep_tree(env, build))[0].cid


async def test_it_is_bounded(env: StorageEnv) -> None:
    deep, wide = await nested(env, 5, ["a"]), await nested(env, 30, ["a", "b"])
    assert len(await walked(env, deep, max_depth=5, max_entries=5)) == 6
    with pytest.raises(TooDeep):
        await walked(env, deep, max_depth=4)
    with pytest.raises(TooManyEntries):
        await walked(env, deep, max_entries=4)
    with pytest.raises(TooManyEntries):
        await walked(env, wide, max_entries=5000)
    with pytest.raises(TooDeep):
        await walked(env, await nested(env, 257, ["a"]))


# Hostile trees: their nodes are in CIDs, so that any node can be made


def node_cid(links: Sequence[PBLink], kind: UnixfsKind = UnixfsKind.DIRECTORY, fanout: int | None = None) -> Cid:
    data = b"\1" if fanout else b""
    block = dagpb.encode_node(links, UnixfsData(kind, data, hash=0x22 if fanout else None, fanout=fanout))
    return Cid(1, DAG_PB, IDENTITY, block)


def label(name: str) -> str:
    return f"{hash_name(name)[0]:02X}{name}"


def shard_cid(*links: PBLink, fanout: int = 256) -> Cid:
    return node_cid(links, UnixfsKind.SHARD, fanout)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/", "a\0b", "n" * 256, "\uefc3\uefa9"])
@pytest.mark.parametrize("sharded", [False, True])
async def test_no_name_leads_elsewhere(env: StorageEnv, name: str, sharded: bool) -> None:
    link = PBLink(LEAF, label(name) if sharded else name, 1)
    with pytest.raises((InvalidEntryName, MalformedContent)):
        await walked(env, shard_cid(link) if sharded else node_cid([link]))


@pytest.mark.parametrize("names", [["a", "a"], [label("a"), label("a")]])
async def test_no_name_is_there_twice(env: StorageEnv, names: list[str]) -> None:
    links = [PBLink(LEAF, name, 1) for name in names]
    with pytest.raises(InvalidEntryName):
        await walked(env, node_cid(links) if names[0] == "a" else shard_cid(*links))


async def test_no_name_is_in_two_shards(env: StorageEnv) -> None:
    """A name may only be where its hash leads, so another shard cannot repeat it."""
    place, wrong = hash_name("a"), bytes([hash_name("a")[0] ^ 1])
    right = shard_cid(PBLink(LEAF, f"{place[1]:02X}a", 1))
    assert set(await walked(env, shard_cid(PBLink(right, f"{place[0]:02X}", 1)))) == {"", "a"}
    with pytest.raises(MalformedContent):
        await walked(env, shard_cid(PBLink(right, f"{place[0]:02X}", 1), PBLink(right, f"{wrong[0]:02X}", 1)))


@pytest.mark.parametrize(
    "root",
    [
        shard_cid(PBLink(LEAF, "zz", 1)),
        shard_cid(PBLink(LEAF, "", 1)),
        shard_cid(PBLink(LEAF, "00", 1)),  # a file as a shard
        shard_cid(PBLink(node_cid([]), "00", 1)),  # a folder as a shard
        shard_cid(fanout=1024),
        node_cid([], UnixfsKind.METADATA),
        Cid(1, DAG_CBOR, IDENTITY, b"\xa0"),
        Cid(1, DAG_PB, IDENTITY, b"no node"),
    ],
    ids=["label", "no label", "file", "folder", "fanout", "metadata", "codec", "garbage"],
)
async def test_malformed_trees_are_refused(env: StorageEnv, root: Cid) -> None:
    with pytest.raises(MalformedContent):
        await walked(env, root)


def keep_node(env: StorageEnv, links: Sequence[PBLink], kind: UnixfsKind) -> Cid:
    """Keep a node in a pack of its own."""
    is_shard = kind is UnixfsKind.SHARD
    unixfs = UnixfsData(kind, hash=0x22 if is_shard else None, fanout=256 if is_shard else None)
    block = dagpb.encode_node(links, unixfs)
    cid = Cid.for_block(DAG_PB, block)
    pack = Pack(cid.digest.hex()[:32], 0, clock.utc_now())
    hold = PackReference(pack.id, f"snapshot/{pack.id}", env.tenant_id, ContentNetwork.PRIVATE)

    def publish(connection: Connection) -> None:
        row = BlockRow(cid, BlockLocation.INLINE, length=len(block), data=block)
        store.add_pack(connection, pack, [row], ())
        service.hold_pack(connection, hold)

    env.db.run(publish)
    return cid


@pytest.mark.parametrize(("height", "slots", "problem"), [(9, 1, TooDeep), (3, 256, TooManyEntries)])
async def test_shards_in_shards_end(env: StorageEnv, height: int, slots: int, problem: type[Problem]) -> None:
    cid = keep_node(env, [], UnixfsKind.SHARD)
    for _ in range(height):
        cid = keep_node(env, [PBLink(cid, f"{slot:02X}", 1) for slot in range(slots)], UnixfsKind.SHARD)
    with pytest.raises(problem):
        await walked(env, cid, max_entries=5000)


async def test_missing_or_damaged_blocks_are_errors(env: StorageEnv) -> None:
    with pytest.raises(ContentNotFound):
        await walked(env, node_cid([PBLink(Cid.for_block(RAW, b"gone"), "a", 1)]))
    root, _, pack_id = await keep_tree(env, lambda pack: pack.add_folder([]))
    env.db.run(lambda db: db.execute(store.blocks.update().values(data=b"other")))
    with pytest.raises(ContentDamaged):
        await walked(env, root.cid)
    assert env.db.run(lambda db: service.is_damaged(db, f"snapshot/{pack_id}"))
