"""Check a deployment at rest: everything in it is complete, and nothing is left over."""

import json
from datetime import timedelta
from pathlib import Path

import sqlalchemy as sa

from roost.agents.library.skills.model import FOLDER, MARKER
from roost.agents.workspace.snapshots import model
from roost.core.db import Connection, Database
from roost.drivers.blob.folder_store import FolderStore
from roost.storage.content import store
from roost.storage.content.model import ContentNetwork, ContentScope
from roost.storage.content.reader import ContentReader
from roost.storage.content.scrub import ContentScrubber
from roost.storage.content.service import ContentService
from roost.storage.content.tree_walk import MemberKind, walk_tree
from roost.storage.content.unixfs.cid import Cid
from tests.chaos.deployment import Deployment
from tests.journeys.server_process import until

_HALF = {
    "a skill without a version": "SELECT id FROM skills WHERE id NOT IN (SELECT skill_id FROM skill_versions)",
    "a hub skill without its newest version": (
        "SELECT id FROM hub_skills WHERE latest_id NOT IN (SELECT id FROM hub_versions)"
    ),
    "a wrong number of installations": (
        "SELECT id FROM hub_skills s"
        " WHERE install_count <> (SELECT count(*) FROM hub_installs i WHERE i.hub_skill_id = s.id)"
    ),
    "an attached skill that is not in the workspace": (
        "SELECT agent_id, skill_id FROM agent_skills WHERE delivered_id IS NULL OR delivered_id <> version_id"
    ),
    "an agent that waits for nothing": "SELECT agent_id FROM template_instances WHERE is_waiting",
}
_ATTACHED = "SELECT a.agent_id, s.name FROM agent_skills a JOIN skills s ON s.id = a.skill_id"
_FOLDERS = {
    "skill": "SELECT id, tenant_id, cid FROM skill_versions",
    "hub": "SELECT id, tenant_id, cid FROM hub_versions",
    "template": (
        "SELECT template_id, tenant_id, v.snapshot_cid FROM template_versions v JOIN templates t ON t.id = template_id"
    ),
}
"""Owner, tenant and CID of the folders that are kept, by the kind of their holders."""


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
    """Check that everything is of an agent, and that no change is left half done."""
    deployment.check_owners()
    repositories = {path.name for path in deployment.data.glob("git/*")}
    assert repositories <= deployment.agents(), "repositories of no agent"
    try:  # an agent that runs again gets its skills, which ends an interrupted change
        until(lambda: not any(list(path.glob(".roost-staging*")) for path in deployment.workspaces().values()))
    except AssertionError:
        raise AssertionError("a change is left in a workspace") from None


def check_library(deployment: Deployment) -> None:
    """Check that skills, the hub and agents have what belongs together, and that workspaces have what rows say."""
    for wrong, query in _HALF.items():
        assert not deployment.rows(query), f"{wrong}: {deployment.rows(query)}"
    attached = {(agent, name) for agent, name in deployment.rows(_ATTACHED)}
    for agent, workspace in deployment.workspaces().items():
        for path in workspace.glob(f"{FOLDER}/*/{MARKER}"):
            is_own = json.loads(path.read_text())["agent"] == agent
            assert not is_own or (agent, path.parent.name) in attached, f"{path} is of no attached skill"


async def check_content(database: str, blobs: Path) -> None:
    """Check that after a sweep exactly the packs of what is kept exist, and that all of it can be read."""
    db, folder = Database(database), FolderStore(blobs)
    content = ContentService(db, folder)
    await content.sweep(timedelta(0))
    scrub = ContentScrubber(db, content.reader, float("inf"), 1)
    await scrub.scrub_due()
    await scrub.count_damaged()
    assert scrub.damaged_packs == 0, "a pack is not whole"
    packs, held, owners, trees = await db.read(_rows)
    assert {blob.key async for blob in folder.list()} == packs, "objects leak, or are lost"
    assert not list(blobs.glob("new/*")), "unfinished objects leak"
    assert {pack for _, pack in held} == packs, "packs without a holder"
    assert {holder for holder, _ in held} <= owners, f"packs of nothing: {dict(held).keys() - owners}"
    for scope, cid in {(scope, cid) for scope, cid, _ in trees}:
        await _read_tree(content.reader, scope, cid)
    named = {pack for *_, own in trees for pack in own}
    assert named == packs, "packs of no snapshot or folder, or some without their pack"
    db.close()


async def _read_tree(reader: ContentReader, scope: ContentScope, cid: str) -> None:
    members = [member async for member in walk_tree(reader, scope, Cid.parse(cid))]
    assert members
    for member in members:
        if member.kind is MemberKind.FILE:
            found = await reader.stat(scope, member.cid)
            assert sum([len(piece) async for piece in reader.stream_file(scope, found)]) == member.size


def _rows(
    connection: Connection,
) -> tuple[set[str], set[tuple[str, str]], set[str], list[tuple[ContentScope, str, list[str]]]]:
    """Return the packs, the holds, all that may hold packs, and the trees with their packs."""
    packs = set(connection.execute(sa.select(store.packs.c.id)).scalars())
    held = {(row.holder, row.pack_id) for row in connection.execute(sa.select(store.holds))}
    agents = set(connection.execute(sa.text("SELECT id FROM agents")).scalars())
    owners = {f"{kind}/{agent}" for agent in agents for kind in ("agent", "agent-state")}
    trees: list[tuple[ContentScope, str, list[str]]] = []
    for row in connection.execute(sa.text("SELECT tenant_id, cid, packs, state_cid, state_packs FROM snapshots")):
        trees.append((model.content_scope(row.tenant_id), row.cid, json.loads(row.packs)))
        if row.state_cid is not None:
            trees.append((model.state_scope(row.tenant_id), row.state_cid, json.loads(row.state_packs)))
    for kind, query in _FOLDERS.items():
        for owner, tenant_id, cid in connection.execute(sa.text(query)):
            own = [pack for holder, pack in held if holder == f"{kind}/{owner}"]
            assert own, f"{kind}/{owner} has no pack"
            owners.add(f"{kind}/{owner}")
            trees.append((ContentScope(ContentNetwork.PRIVATE, tenant_id), cid, own))
    return packs, held, owners, trees
