"""Check a deployment at rest: everything in it is complete, and nothing is left over."""

import json
from datetime import timedelta
from pathlib import Path

import sqlalchemy as sa

from roost.agents.snapshots import model
from roost.core.db import Connection, Database
from roost.drivers.blob.folder_store import FolderStore
from roost.drivers.runtime.bwrap.agent_paths import AgentPaths
from roost.drivers.runtime.bwrap.record import find_marked
from roost.storage.content import store
from roost.storage.content.model import ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.scrub import ContentScrubber
from roost.storage.content.service import ContentService
from roost.storage.content.tree_walk import MemberKind, walk_tree
from roost.storage.unixfs.cid import Cid
from tests.chaos.deployment import Deployment


def check_history(deployment: Deployment, agent_id: str) -> None:
    """Check that the newest snapshot is the workspace and `main`, and that the repository has all commits."""
    deployment.sync(agent_id)
    deployment.settle()
    query = (
        "SELECT s.commit_sha FROM workspace_indexes i JOIN snapshots s ON s.id = i.snapshot_id WHERE i.agent_id = :a"
    )
    ((commit,),) = deployment.rows(query, a=agent_id)
    assert commit == deployment.bare("rev-parse", "refs/heads/main", agent_id=agent_id), "main is not the last snapshot"
    query = "SELECT DISTINCT commit_sha FROM snapshots WHERE agent_id = :a AND files > 0"
    for (one,) in deployment.rows(query, a=agent_id):
        assert one is not None, "a snapshot has no commit"
        deployment.bare("cat-file", "-e", f"{one}^{{commit}}", agent_id=agent_id)


def check_repositories(deployment: Deployment) -> None:
    for agent_id in deployment.agents():
        deployment.bare("fsck", "--full", "--strict", agent_id=agent_id)


def check_remains(deployment: Deployment) -> None:
    """Check that every process and folder is of an agent."""
    agents, data, paths = deployment.agents(), deployment.data, AgentPaths(deployment.data)
    assert {agent for agent, _ in find_marked(paths.mark)} == agents, "processes of no agent"
    assert {*paths.list_agents(), *paths.list_stored()} == agents, "folders of no agent"
    assert {path.name for path in data.glob("git/*")} <= agents, "repositories of no agent"
    assert not list(data.glob("agents/*/workspace/.roost-staging*")), "a change is left in a workspace"


async def check_content(database: str, blobs: Path) -> None:
    """Check that after a sweep exactly the packs of the snapshots exist, and that all snapshots can be read."""
    db, folder = Database(database), FolderStore(blobs)
    content = ContentService(db, folder)
    await content.sweep(timedelta(0))
    scrub = ContentScrubber(db, content.reader, float("inf"), 1)
    await scrub.scrub_due()
    await scrub.count_damaged()
    assert scrub.damaged_packs == 0, "a pack is not whole"
    packs, held, agents, snapshots = await db.read(_rows)
    assert {blob.key async for blob in folder.list()} == packs, "objects leak, or are lost"
    assert not list(blobs.glob("new/*")), "unfinished objects leak"
    assert {pack for _, pack in held} == packs, "packs without a holder"
    assert {holder.partition("/")[2] for holder, _ in held} <= agents, "packs of no agent"
    for scope, cid in {(scope, cid) for scope, cid, _ in snapshots}:
        await _read_snapshot(content.reader, scope, cid)
    named = {pack for *_, own in snapshots for pack in own}
    assert named == packs, "packs of no snapshot, or snapshots of no pack"
    db.close()


async def _read_snapshot(reader: ContentReader, scope: ContentScope, cid: str) -> None:
    members = [member async for member in walk_tree(reader, scope, Cid.parse(cid))]
    assert members
    for member in members:
        if member.kind is MemberKind.FILE:
            found = await reader.stat(scope, member.cid)
            assert sum([len(piece) async for piece in reader.stream_file(scope, found)]) == member.size


def _rows(
    connection: Connection,
) -> tuple[set[str], set[tuple[str, str]], set[str], list[tuple[ContentScope, str, list[str]]]]:
    packs = set(connection.execute(sa.select(store.packs.c.id)).scalars())
    held = {(row.holder, row.pack_id) for row in connection.execute(sa.select(store.holds))}
    agents = set(connection.execute(sa.text("SELECT id FROM agents")).scalars())
    trees: list[tuple[ContentScope, str, list[str]]] = []
    for row in connection.execute(sa.text("SELECT tenant_id, cid, packs, state_cid, state_packs FROM snapshots")):
        trees.append((model.content_scope(row.tenant_id), row.cid, json.loads(row.packs)))
        if row.state_cid is not None:
            trees.append((model.state_scope(row.tenant_id), row.state_cid, json.loads(row.state_packs)))
    return packs, held, agents, trees
