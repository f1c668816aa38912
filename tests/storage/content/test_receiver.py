"""A pack is committed as a whole or not at all."""

import gc

import pytest

from roost.core.db import Connection
from roost.storage.content.errors import ContentNotFound
from roost.storage.content.model import BlockRow
from roost.storage.unixfs.importer import UnixfsImporter
from roost.storage.unixfs.profile import V1
from tests.storage.storage_env import CONTENT, StorageEnv


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


async def test_what_fails_beside_it_keeps_nothing(env: StorageEnv) -> None:
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


async def test_the_blocks_of_a_file_are_made_where_they_are_written_down(env: StorageEnv) -> None:
    """Not in the event loop, because a large file has too many."""

    def rows() -> int:
        return sum(isinstance(one, BlockRow) for one in gc.get_objects())

    async with env.content.receive(V1) as pack:
        await pack.write(CONTENT)
        before = rows()
        tree = await pack.end_file()
        assert len(tree.leaves) // 32 == 20
        assert rows() - before <= len(tree.nodes)
