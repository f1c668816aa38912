"""A pack is committed as a whole or not at all."""

import gc
from collections.abc import Callable

import pytest

from roost.core.db import Connection
from roost.storage.content import service
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import BlockRow, ContentNetwork, ContentScope
from roost.storage.content.unixfs.dagpb import UnixfsKind
from roost.storage.content.unixfs.importer import DagTree, UnixfsImporter
from roost.storage.content.unixfs.profile import PROFILES, V1, ImportProfile
from tests.storage.storage_env import CONTENT, StorageEnv, entry


async def test_its_trees_are_the_importers(env: StorageEnv) -> None:
    _, trees = await env.keep(b"", b"small", CONTENT)
    for data, tree in zip((b"", b"small", CONTENT), trees, strict=True):
        importer = UnixfsImporter(V1)
        importer.update(data)
        assert importer.finish() == tree


async def test_one_that_is_not_committed_leaves_nothing(env: StorageEnv) -> None:
    async with env.content.receive(V1) as pack:
        await pack.write(CONTENT)
        tree = await pack.end_file()
    with pytest.raises(ContentNotFound):
        await env.reader.stat(env.scope, tree.cid)
    assert not list((env.folder / "blobs").rglob("*"))[2:]


async def test_failed_transaction_keeps_no_content(env: StorageEnv) -> None:
    def fail(_: Connection) -> None:
        raise RuntimeError("no")

    async with env.content.receive(V1) as pack:
        await pack.write(b"x")
        tree = await pack.end_file()
        with pytest.raises(RuntimeError):
            await pack.commit(fail)
    with pytest.raises(ContentNotFound):
        await env.reader.stat(env.scope, tree.cid)


async def test_the_same_bytes_twice_in_a_pack(env: StorageEnv) -> None:
    _, (one, two) = await env.keep(b"same", b"same")
    assert one == two
    assert await env.reader.read_block(env.scope, one.cid) == b"same"


async def test_small_files_that_are_added_whole_are_between_others(env: StorageEnv) -> None:
    small = [bytes((number,)) * 20_000 for number in range(100)]
    async with env.content.receive(V1) as pack:
        trees: list[DagTree] = []
        for data in small:
            trees.append(pack.add_small_file(data))
            await pack.write_small_files()
            if len(trees) % 30 == 0:
                await pack.write(CONTENT)
                await pack.end_file()
        await pack.commit(hold_of(env, "file/small", pack.pack_id))
    for data, tree in zip(small, trees, strict=True):
        stat = await env.reader.stat(env.scope, tree.cid)
        assert b"".join([piece async for piece in env.reader.stream_file(env.scope, stat)]) == data


async def test_the_blocks_of_a_file_are_made_where_they_are_written_down(env: StorageEnv) -> None:
    """Not in the event loop, because a large file has too many."""

    def rows() -> int:
        return sum(type(one) is BlockRow for one in gc.get_objects())  # others may be proxies of objects that are gone

    async with env.content.receive(V1) as pack:
        await pack.write(CONTENT)
        before = rows()
        tree = await pack.end_file()
        assert len(tree.leaves) // 32 == 20
        assert rows() - before <= len(tree.nodes)


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("data", [b"", b"small", CONTENT], ids=["empty", "small", "large"])
async def test_a_file_with_a_mode_is_read_like_one_without(
    env: StorageEnv, profile: ImportProfile, data: bytes
) -> None:
    async with env.content.receive(profile) as pack:
        await pack.write(data)
        plain = await pack.end_file()
        await pack.write(data)
        tree = await pack.end_file(0o100755)
        hold = hold_of(env, "file/1", pack.pack_id)
        await pack.commit(hold)
    assert tree.cid != plain.cid
    stat = await env.reader.stat(env.scope, tree.cid)
    assert (stat.kind, stat.size, stat.mode) == (
        UnixfsKind.FILE,
        len(data),
        0o755,
    )  # bits of the kind are no permissions
    assert (await env.reader.stat(env.scope, plain.cid)).mode is None
    for begin, end in ((0, None), (3, 4), (300_000, 700_000)):
        found = b"".join([piece async for piece in env.reader.stream_file(env.scope, stat, begin, end)])
        assert found == data[begin:end]


async def test_a_link_is_kept_as_it_is(env: StorageEnv) -> None:
    async with env.content.receive(V1) as pack:
        links = [pack.add_link(target) for target in ("../größe", b"/usr/bin/\xff", "\udcff")]
        await pack.commit(hold_of(env, "file/1", pack.pack_id))
    stats = [await env.reader.stat(env.scope, link.cid) for link in links]
    assert {stat.kind for stat in stats} == {UnixfsKind.SYMLINK}
    targets = [stat.node.unixfs.data for stat in stats if stat.node is not None]
    assert targets == ["../größe".encode(), b"/usr/bin/\xff", b"\xff"]


async def test_a_folder_refers_to_files_in_older_packs(env: StorageEnv) -> None:
    """Each pack needs a holder of the tenant on that network, and the folder is readable as long as all have one."""
    old, (tree,) = await env.keep(CONTENT, holder="snapshot/1")
    async with env.content.receive(V1) as pack:
        folder = pack.add_folder([entry("same", tree)], 0o750)
        await pack.commit(hold_of(env, "snapshot/2", pack.pack_id, old))
        new = pack.pack_id
    assert new != old
    assert pack.size == 0
    env.db.run(lambda connection: service.release_packs(connection, "snapshot/1"))
    root, file = await env.reader.resolve(env.scope, folder.cid, ["same"])
    assert (root.mode, file.size) == (0o750, len(CONTENT))
    assert b"".join([piece async for piece in env.reader.stream_file(env.scope, file)]) == CONTENT
    for tenant, network in ((env.other_id, ContentNetwork.PRIVATE), (env.tenant_id, ContentNetwork.PUBLIC)):
        with pytest.raises(ContentNotFound):
            await env.reader.stat(ContentScope(network, tenant), tree.cid)
    env.db.run(hold_of(env, "snapshot/2", new))
    await env.reader.stat(env.scope, folder.cid)
    with pytest.raises(ContentNotFound):
        await env.reader.resolve(env.scope, folder.cid, ["same"])


def hold_of(env: StorageEnv, holder: str, *pack_ids: str) -> Callable[[Connection], None]:
    network = ContentNetwork.PRIVATE
    return lambda connection: service.hold_packs(connection, holder, env.tenant_id, network, pack_ids)
