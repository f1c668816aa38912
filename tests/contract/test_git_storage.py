"""A whole server whose repositories are among the blobs: its folder of them can be lost."""

import shutil
from pathlib import Path

import pytest

from roost.agents.workspace.git import push
from roost.settings import BadSettings
from tests.agents.lifecycle.workflows.lifecycle_env import until
from tests.contract.git_client import GitClient
from tests.contract.test_git_push import change
from tests.contract.test_git_push_interrupted import has_file, interrupt
from tests.support.server import running

pytestmark = pytest.mark.container


async def test_the_next_server_has_the_history_and_finishes_a_push_without_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path / "data", ROOST_GIT_STORAGE="blobs") as first:
        agent = (await first.client(first.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]
        await first.roost.agents.workspace.git.stop()
        client = GitClient(first, agent, tmp_path)
        committed = await client.commit(a_txt=b"text")
        await client.clone("work")
        await change(client, "work", file="pushed")
        await client.run("push", "-q", client.url(), "main", cwd="work")
        await change(client, "work", file="interrupted")
        with monkeypatch.context() as patch:
            patch.setattr(push, "apply_entries", interrupt)
            await client.run("push", client.url(), "main", cwd="work", ok=False)
    shutil.rmtree(tmp_path / "data/git")
    with pytest.raises(BadSettings, match="git_storage: the blob store has Git repositories already"):
        async with running(tmp_path / "data"):
            pass
    async with running(tmp_path / "data", ROOST_GIT_STORAGE="blobs") as second:
        again = GitClient(second, agent, tmp_path)
        await until(lambda: has_file(second, agent, "file", b"interrupted"))
        clone = await again.clone("clone")
        assert (clone / "file").read_text() == "interrupted"
        assert await again.run("rev-parse", "HEAD", cwd="clone") == await again.run("rev-parse", "HEAD", cwd="work")
        assert committed in await again.run("rev-list", "HEAD", cwd="clone")
        deleted = await second.client(second.key()).delete(f"/v0/agents/{agent['agentId']}")
        assert deleted.is_success
        assert await second.roost.drivers.git.head(agent["agentId"]) is None
