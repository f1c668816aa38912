"""Clone, pull and push with different versions of Git as the client: the system's, and the newest of Debian."""

from pathlib import Path

import pytest

from tests.contract.git_client import GitClient
from tests.support.debian_root import PackagesNotFetched, debian_command
from tests.support.server import RunningServer

pytestmark = pytest.mark.container


@pytest.fixture(params=["of the system", "newest"])
async def client(request: pytest.FixtureRequest, server: RunningServer, tmp_path: Path) -> GitClient:
    try:
        program = ["git"] if request.param == "of the system" else debian_command("bin/git", ["git"], tmp_path)
    except PackagesNotFetched as reason:
        pytest.skip(str(reason))
    agent = (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]
    made = GitClient(server, agent, tmp_path, program)
    print(await made.run("version"))
    return made


@pytest.mark.parametrize("version", ["0", "2"])
async def test_clone_pull_and_push(client: GitClient, version: str) -> None:
    protocol = ("-c", f"protocol.version={version}")
    await client.commit(a_txt=b"one", b_txt=b"kept")
    clone = await client.clone("clone", *protocol)
    assert (clone / "a.txt").read_text() == "one"
    await client.clone("shallow", "--depth=1", *protocol)
    await client.clone("partial", "--filter=blob:none", "--no-checkout", *protocol)
    second = await client.commit(a_txt=b"two")
    await client.run("fetch", "-q", "--unshallow", cwd="shallow")
    assert (await client.run("rev-list", "--count", "origin/main", cwd="shallow")).strip() == "2"
    await client.run("checkout", "-q", "main", cwd="partial")
    assert (client.folder / "partial/a.txt").read_text() == "one"
    await push(client, "theirs", ok=False)
    await client.run("pull", "-q", "--rebase", cwd="clone")
    assert (clone / "a.txt").read_text() == "two"
    await client.run("push", cwd="clone")
    head = (await client.run("rev-parse", "HEAD", cwd="clone")).strip()
    assert (await client.run("rev-parse", "HEAD~1", cwd="clone")).strip() == second
    assert await client.server.roost.drivers.git.head(client.agent["agentId"]) == head
    content = await client.server.agent_client(client.agent).get("/v0/files/content", params={"path": "theirs"})
    assert content.text == "theirs"
    assert "remote: Changed 1 path of the agent's files." in await push(client, "more")
    forced = await client.run("push", "--force", "origin", "HEAD~1:main", cwd="clone", ok=False)
    assert "[remote rejected]" in forced
    await client.run("fsck", "--strict", cwd="clone")


async def push(client: GitClient, name: str, *, ok: bool = True) -> str:
    """Commit a file in the clone and push it."""
    (client.folder / "clone" / name).write_text(name)
    await client.run("add", "-A", cwd="clone")
    await client.run("commit", "-qm", name, cwd="clone")
    return await client.run("push", "origin", "main", cwd="clone", ok=ok)
