"""What the agent writes while a push is checked, with the real Git client."""

from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from sqlalchemy import Connection

from roost.agents.workspace.git import push
from roost.agents.workspace.snapshots import store
from roost.agents.workspace.snapshots.index import decode_index, encode_index
from roost.core import clock
from tests.contract.git_client import GitClient
from tests.contract.test_files import shell
from tests.contract.test_git_push import change, client, head, work, workspace

pytestmark = pytest.mark.container
__all__ = ["client", "work", "workspace"]


@pytest.mark.parametrize("path", ["readme", "folder/run.sh", "new/file"])
async def test_changes_during_the_check_of_a_push_are_kept(
    client: GitClient, work: Path, workspace: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    await client.run("push", "-q", "origin", "main", cwd="work")
    await client.run("fetch", "-q", cwd="work")
    before = await head(client)
    await change(client, "work", readme="pushed", **{"folder/run.sh": None, "new/file": "pushed"})
    apply_entries = push.apply_entries

    async def write_and_apply(*arguments: Any) -> None:
        await shell(workspace, f"mkdir -p new; echo theirs > {path}")
        await apply_entries(*arguments)

    monkeypatch.setattr(push, "apply_entries", write_and_apply)
    output = await client.run("push", "origin", "main", cwd="work", ok=False)
    assert "remote: The agent has changed files of the push meanwhile, or has files there" in output
    assert await head(client) == before
    assert await client.server.roost.drivers.git.find_unfinished_push(client.agent["agentId"]) is None
    assert await shell(workspace, f"cat {path}; cat new/* readme folder/* | grep pushed || true") == "theirs\n"
    monkeypatch.undo()
    assert "fetch first" in await client.run("push", "origin", "main", cwd="work", ok=False)
    await client.run("fetch", "-q", cwd="work")
    assert await client.run("show", f"origin/main:{path}", cwd="work") == "theirs\n"
    await client.run("merge", "-q", "-s", "ours", "origin/main", cwd="work")
    assert "main -> main" in await client.run("push", "origin", "main", cwd="work")


async def test_a_push_over_files_that_a_snapshot_read_just_after_a_change_is_accepted(
    client: GitClient, work: Path, workspace: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The index has no stamp of such files."""
    await client.run("push", "-q", "origin", "main", cwd="work")
    await change(client, "work", readme="pushed")
    git, agent_id, db = client.server.roost.agents.workspace.git, client.agent["agentId"], client.server.roost.core.db
    commit_changes = git._snapshots.commit_changes

    async def commit_and_remove_stamps(agent_id: str) -> None:
        await commit_changes(agent_id)
        await db.write(remove_stamps)

    def remove_stamps(connection: Connection) -> None:
        index = decode_index(store.get_index(connection, agent_id))
        data = encode_index({path: entry._replace(stamp=None) for path, entry in index.items()})
        snapshot = store.list_snapshots(connection, agent_id)[0]
        store.save_index(connection, agent_id, snapshot.id, clock.utc_now(), data)

    monkeypatch.setattr(git._snapshots, "commit_changes", commit_and_remove_stamps)
    await client.run("push", "-q", "origin", "main", cwd="work")
    assert await shell(workspace, "cat readme") == "pushed"
