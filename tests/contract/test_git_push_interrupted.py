"""Pushes that are interrupted, with the real Git client: a start, an access or the server itself finishes them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.agents.workspace.git import push
from roost.warden_client.errors import WardenDisconnected
from tests.agents.lifecycle.workflows.lifecycle_env import until
from tests.contract.git_client import GitClient
from tests.contract.test_files import shell
from tests.contract.test_git_push import change, client, head, reset_to, work, workspace
from tests.support.server import RunningServer, running

pytestmark = pytest.mark.container
__all__ = ["client", "work", "workspace"]


async def interrupt(*_: object) -> None:
    """Fail like a change of files during which the container ends."""
    raise WardenDisconnected


@pytest.mark.parametrize("has_container", [True, False])
async def test_the_next_server_finishes_what_a_crash_interrupted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_container: bool
) -> None:
    async with running(tmp_path / "data", stop=not has_container) as first:
        agent = (await first.client(first.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]
        await first.roost.agents.workspace.git.stop()
        client = GitClient(first, agent, tmp_path)
        await client.run("init", "-q", "-b", "main", "work")
        await change(client, "work", file="pushed")
        monkeypatch.setattr(push, "apply_entries", interrupt)
        await client.run("push", client.url(), "main", cwd="work", ok=False)
        monkeypatch.undo()
        assert await head(client) is None
    async with running(tmp_path / "data") as second:
        again = GitClient(second, agent, tmp_path)
        pushed = (await again.run("rev-parse", "HEAD", cwd="work")).strip()

        async def is_main() -> bool:
            return await head(again) == pushed

        await until(is_main)
        await until(lambda: has_file(second, agent, "file", b"pushed"))


async def has_file(server: RunningServer, agent: dict[str, Any], path: str, content: bytes) -> bool:
    """Return whether the agent, which may be starting, has a file with that content."""
    return (await server.agent_client(agent).get("/v0/files/content", params={"path": path})).content == content


async def take_snapshot(client: GitClient, _: str) -> None:
    (await client.server.agent_client(client.agent).post("/v0/snapshots/sync")).raise_for_status()


async def start_again(client: GitClient, _: str) -> None:
    agent_id = client.agent["agentId"]
    await client.server.roost.drivers.runtime.stop(agent_id, grace=0)
    restart = f"/v0/agents/{agent_id}/restart"
    (await client.server.client(client.server.key()).post(restart)).raise_for_status()


async def list_references(client: GitClient, _: str) -> None:
    second = (await client.run("rev-parse", "HEAD", cwd="work")).strip()
    assert f"{second}\trefs/heads/main" in await client.run("ls-remote", client.url())


async def list_references_without_container(client: GitClient, cid: str) -> None:
    await client.server.roost.drivers.runtime.stop(client.agent["agentId"], grace=0)
    await list_references(client, cid)
    await start_again(client, cid)


@pytest.fixture
async def access_only(client: GitClient) -> AsyncIterator[None]:
    """Let the server not finish interrupted pushes by itself."""
    git = client.server.roost.agents.workspace.git
    await git.stop()
    yield
    git.start()


@pytest.mark.parametrize(
    ("access", "text"),
    [
        *((list_references, "second"), (list_references_without_container, "second"), (take_snapshot, "second")),
        *((start_again, "second"), (reset_to, "read me")),
    ],
)
@pytest.mark.usefixtures("access_only")
async def test_an_interrupted_push_is_finished_before_the_files_are_used(
    client: GitClient,
    work: Path,
    workspace: httpx.AsyncClient,
    monkeypatch: pytest.MonkeyPatch,
    access: Callable[[GitClient, str], Awaitable[None]],
    text: str,
) -> None:
    """As after a crash between the record of a push and the new main: files and branch agree again."""
    await client.run("push", "-q", "origin", "main", cwd="work")
    first = (await workspace.post("/v0/snapshots/sync")).json()["snapshotCid"]
    await change(client, "work", readme="second")

    monkeypatch.setattr(push, "apply_entries", interrupt)
    output = await client.run("push", "origin", "main", cwd="work", ok=False)
    assert "The push is finished once the agent's container can be reached." in output
    monkeypatch.undo()
    repositories = client.server.roost.drivers.git
    assert await repositories.find_unfinished_push(client.agent["agentId"]) is not None
    assert await shell(workspace, "cat readme") == "read me"
    await access(client, first)
    assert await shell(workspace, "cat readme") == text
    assert await repositories.find_unfinished_push(client.agent["agentId"]) is None


async def test_an_interrupted_push_is_finished_without_an_access(
    client: GitClient, work: Path, workspace: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The container outlives the connection to it, so that no start finishes the push."""
    await client.run("push", "-q", "origin", "main", cwd="work")
    await change(client, "work", readme="second")
    interruptions = asyncio.Semaphore(0)

    async def interrupt_and_count(*_: object) -> None:
        interruptions.release()
        raise WardenDisconnected

    monkeypatch.setattr(push, "apply_entries", interrupt_and_count)
    await client.run("push", "origin", "main", cwd="work", ok=False)
    for _ in range(2):  # the first attempt to finish it fails, too
        await interruptions.acquire()
    monkeypatch.undo()
    git, agent_id = client.server.roost.drivers.git, client.agent["agentId"]

    async def is_finished() -> bool:
        return await git.find_unfinished_push(agent_id) is None

    await until(is_finished)
    assert await head(client) == (await client.run("rev-parse", "HEAD", cwd="work")).strip()
    assert await shell(workspace, "cat readme") == "second"
