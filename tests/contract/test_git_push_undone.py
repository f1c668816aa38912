"""Pushes whose names stay through snapshots, and accepted pushes that cannot be applied: the agent goes on."""

import os
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.agents.workspace.git import push, recovery
from roost.warden_client.errors import WardenDisconnected
from tests.agents.lifecycle.workflows.lifecycle_env import until
from tests.contract.git_client import GitClient
from tests.contract.test_files import shell
from tests.contract.test_git_push import change, client, head, reset_to, work, workspace
from tests.contract.test_git_push_interrupted import access_only, interrupt
from tests.support.server import RunningServer, running

pytestmark = pytest.mark.container
__all__ = ["access_only", "client", "work", "workspace"]


async def index_link(client: GitClient, target: bytes) -> None:
    """Commit a symbolic link with any target, which no file system need allow."""
    (client.folder / "target").write_bytes(target)
    blob = (await client.run("hash-object", "-w", "../target", cwd="work")).strip()
    await client.run("update-index", "--add", "--cacheinfo", f"120000,{blob},link", cwd="work")
    await client.run("commit", "-qm", "link", cwd="work")


async def test_links_that_no_file_system_has_are_refused(client: GitClient, work: Path) -> None:
    await client.run("push", "-q", "origin", "main", cwd="work")
    before = await head(client)
    for target, reason in (
        (b"a\0b", "whose target has a NUL byte."),
        (b"t" * 4096, "of 4,096 bytes; it must have 1 to 4,095."),
        (b"", "of 0 bytes; it must have 1 to 4,095."),
    ):
        await index_link(client, target)
        output = await client.run("push", "origin", "main", cwd="work", ok=False)
        assert f"remote: 'link' is a symbolic link {reason}" in output
        assert await head(client) == before
        await client.run("reset", "-q", "--hard", "origin/main", cwd="work")
    await index_link(client, b"t" * 4095)
    await client.run("push", "-q", "origin", "main", cwd="work")


async def test_every_character_of_a_name_stays(client: GitClient, work: Path, workspace: httpx.AsyncClient) -> None:
    """Also those that spell bytes that are not UTF-8 in a snapshot, which icon fonts use, and such bytes themselves."""
    names = [b"icon \xee\xbe\x80", b"icon \xef\x80\x95", b"caf\xe9", b"both \xee\xbf\xbf\xff", b"tab\tback\\slash"]
    for name in names:
        Path(os.fsdecode(os.fsencode(work) + b"/" + name)).write_text("kept")
    await client.run("add", "-A", cwd="work")
    await client.run("commit", "-qm", "names", cwd="work")
    await client.run("push", "-q", "origin", "main", cwd="work")
    await shell(workspace, "echo x > other")
    saved = (await workspace.post("/v0/snapshots/sync")).json()
    assert saved["skipped"] == []
    await client.run("pull", "-q", "origin", "main", cwd="work")
    assert {*names, b"other", b"readme", b"folder", b".git"} == list_names(work)
    await shell(workspace, "rm -rf ./*")
    await reset_to(client, saved["snapshotCid"])
    again = await client.clone("again")
    assert {*names, b"other", b"readme", b"folder", b".git"} == list_names(again)


def list_names(folder: Path) -> set[bytes]:
    return {os.fsencode(path.name) for path in folder.iterdir()}


async def accept_all(*_: object) -> tuple[()]:
    return ()


@pytest.mark.parametrize("ends", ["goes on", "is killed"])
async def test_an_accepted_push_that_cannot_be_applied_is_undone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    """As of a server that accepted it: the agent takes snapshots, resets and pushes again, and says what happened."""
    async with running(tmp_path / "data", stop=ends != "is killed") as first:
        agent = (await first.client(first.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]
        await first.roost.agents.workspace.git.stop()
        client = GitClient(first, agent, tmp_path)
        await client.run("init", "-q", "-b", "main", "work")
        await client.run("remote", "add", "origin", client.url(), cwd="work")
        await change(client, "work", file="good")
        await client.run("push", "-q", "-u", "origin", "main", cwd="work")
        cid = (await first.agent_client(agent).post("/v0/snapshots/sync")).json()["snapshotCid"]
        await index_link(client, b"a\0b")
        monkeypatch.setattr(push, "_check_changes", accept_all)
        monkeypatch.setattr(push, "apply_entries", interrupt)
        await client.run("push", "origin", "main", cwd="work", ok=False)
        monkeypatch.undo()
        assert await first.roost.drivers.git.find_unfinished_push(agent["agentId"]) is not None
        if ends == "goes on":
            await check_use(client, cid)
    if ends == "is killed":
        async with running(tmp_path / "data") as second:
            again = GitClient(second, agent, tmp_path)
            await again.run("remote", "set-url", "origin", again.url(), cwd="work")
            await until(lambda: is_up(second, agent))
            await check_use(again, cid)


async def is_up(server: RunningServer, agent: dict[str, Any]) -> bool:
    found = await server.client(server.key()).get(f"/v0/agents/{agent['agentId']}")
    return found.json()["agent"]["status"] == "running"


async def is_saved(workspace: httpx.AsyncClient) -> bool:
    """Take a snapshot; a container of a busy machine may answer too late, which is temporary."""
    saved = await workspace.post("/v0/snapshots/sync")
    assert saved.status_code in {200, 503}, saved.text
    return saved.status_code == 200


async def check_use(client: GitClient, cid: str) -> None:
    """Use an agent with all that a recorded push could prevent."""
    workspace = client.server.agent_client(client.agent)
    await until(lambda: is_saved(workspace))
    assert (await workspace.get("/v0/snapshots/sync")).json()["message"] == "Synced"
    (fault,) = (await workspace.get(f"/v0/agents/{client.agent['agentId']}")).json()["faults"]
    bad = (await client.run("rev-parse", "HEAD", cwd="work")).strip()
    assert fault["kind"] == "git.push"
    assert fault["reason"].startswith(f"The push of {bad[:12]} could not be applied and was undone: ")
    owner = client.server.client(client.server.key())
    assert (await owner.get(f"/v0/agents/{client.agent['agentId']}/export")).status_code == 200
    await reset_to(client, cid)
    assert "link" in await client.run("push", "origin", "main", cwd="work", ok=False)
    await client.run("reset", "-q", "--hard", "origin/main", cwd="work")
    await change(client, "work", file="better")
    await client.run("push", "-q", "origin", "main", cwd="work")
    assert await shell(workspace, "cat file; ls") == "betterfile\n"
    assert (await workspace.get(f"/v0/agents/{client.agent['agentId']}")).json()["faults"] == []


@pytest.mark.usefixtures("access_only")
async def test_a_push_that_fails_for_too_long_is_undone(
    client: GitClient, work: Path, workspace: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.run("push", "-q", "origin", "main", cwd="work")
    await change(client, "work", readme="second")

    monkeypatch.setattr(push, "apply_entries", interrupt)
    monkeypatch.setattr(recovery, "apply_commit", interrupt)
    await client.run("push", "origin", "main", cwd="work", ok=False)
    failed = await workspace.post("/v0/snapshots/sync")
    assert (failed.status_code, failed.json()["error"]) == (503, WardenDisconnected.message)
    status = (await workspace.get("/v0/snapshots/sync")).json()
    assert status["message"].startswith("Not saved since ")
    assert (status["fault"]["failures"], status["fault"]["reason"]) == (1, WardenDisconnected.message)
    monkeypatch.setattr(recovery, "_PATIENCE_SECONDS", 0.0)
    assert (await workspace.post("/v0/snapshots/sync")).status_code == 200
    assert (await workspace.get("/v0/snapshots/sync")).json()["fault"] is None
    assert await shell(workspace, "cat readme") == "read me"
