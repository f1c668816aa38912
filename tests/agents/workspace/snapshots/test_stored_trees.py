"""Differences of stored trees are what two walks of them would tell, in few queries."""

import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from roost.agents.workspace.snapshots.stored_trees import StoredTrees
from roost.core.db import Database
from roost.storage.content.model import ContentNetwork
from roost.storage.content.receiver import ContentReceiver
from roost.storage.content.service import hold_packs
from roost.storage.content.tree_walk import MemberKind, TreeMember, walk_tree
from roost.storage.content.unixfs.cid import Cid
from roost.storage.content.unixfs.importer import DagTree
from roost.storage.content.unixfs.profile import UNIXFS_V1_2025
from tests.storage.storage_env import StorageEnv, entry, open_storage_env


@pytest.fixture
def dialect() -> str:
    """Nothing here depends on the database."""
    return "sqlite"


@pytest.fixture
def env(database: Database, tmp_path: Path) -> StorageEnv:
    return open_storage_env(database, tmp_path)


Tree = Mapping[str, "Tree | bytes"]


def random_tree(chance: random.Random, depth: int = 0) -> Tree:
    def member() -> Tree | bytes:
        return random_tree(chance, depth + 1) if depth < 3 and chance.random() < 0.5 else chance.randbytes(1)

    return {name: member() for name in "abc" if chance.random() < 0.8}


async def add_tree(pack: ContentReceiver, tree: Tree) -> DagTree:
    entries: list[tuple[str, DagTree]] = []
    for name, member in tree.items():
        if isinstance(member, bytes):
            await pack.write(member)
            entries.append((name, await pack.end_file()))
        else:
            entries.append((name, await add_tree(pack, member)))
    return pack.add_folder([entry(*one) for one in entries])


async def keep(env: StorageEnv, *trees: Tree) -> list[Cid]:
    async with env.content.receive(UNIXFS_V1_2025) as pack:
        roots = [(await add_tree(pack, tree)).cid for tree in trees]
        await pack.commit(
            lambda db: hold_packs(db, f"a/{pack.pack_id}", env.tenant_id, ContentNetwork.PRIVATE, [pack.pack_id])
        )
    return roots


async def walk(env: StorageEnv, root: Cid) -> dict[str, TreeMember]:
    return {one.path: one async for one in walk_tree(env.reader, env.scope, root) if one.path}


async def test_applied_differences_make_the_new_tree(env: StorageEnv) -> None:
    for seed in range(20):
        await check_differences(env, random.Random(seed))


async def check_differences(env: StorageEnv, chance: random.Random) -> None:
    old, new = await keep(env, random_tree(chance), random_tree(chance))
    wanted = {path: one.cid for path, one in (await walk(env, new)).items() if one.kind is MemberKind.FILE}
    for enters_removed in (True, False):
        files = {path: one.cid for path, one in (await walk(env, old)).items() if one.kind is MemberKind.FILE}
        async for change in StoredTrees(env.reader, env.scope).list_differences(
            old, new, enters_removed=enters_removed
        ):
            if change.new is None:
                below = "" if enters_removed else f"{change.path}/"
                for path in [path for path in files if path == change.path or (below and path.startswith(below))]:
                    del files[path]
            elif change.new.kind is MemberKind.FILE:
                assert files.get(change.path) == (change.old.cid if change.old else None)
                files[change.path] = change.new.cid
        assert files == wanted


async def test_many_changes_take_few_queries(env: StorageEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = await keep(
        env, *({f"{folder}": {"file": b"%d" % (folder + step)} for folder in range(100)} for step in (0, 1000))
    )
    queries = list[int]()
    find = env.reader.find_blocks
    monkeypatch.setattr(env.reader, "find_blocks", lambda scope, cids: queries.append(len(cids)) or find(scope, cids))
    assert len([one async for one in StoredTrees(env.reader, env.scope).list_differences(old, new)]) == 100
    assert queries == [2, 200, 200]
