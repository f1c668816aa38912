"""Pushes with the real Git client: to the agent's files and back (cases F14, F15, F17)."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.agents.workspace.git import push
from roost.agents.workspace.snapshots.model import RESET
from roost.warden_client.errors import ContainerNotRunning
from roost.work import OperationState, find_last_unfinished
from tests.contract.git_client import GitClient
from tests.contract.test_files import shell
from tests.support.server import RunningServer

pytestmark = pytest.mark.container
ON_SERVICES = {
    *("test_a_push_arrives_in_the_workspace_and_comes_back", "test_only_main_moves_and_only_forward"),
    *("test_of_two_pushes_at_once_one_wins", "test_the_build_of_a_push_is_shown"),
}
BEHIND = "The agent has changed since your last pull. Run `git pull --rebase` and push again."


@pytest.fixture
async def client(server: RunningServer, tmp_path: Path) -> AsyncIterator[GitClient]:
    management = server.client(server.key())
    agent = (await management.post("/v0/agents", json={"name": "a"})).json()["agent"]
    yield GitClient(server, agent, tmp_path)
    await management.delete(f"/v0/agents/{agent['agentId']}")


@pytest.fixture
def workspace(client: GitClient) -> httpx.AsyncClient:
    return client.server.agent_client(client.agent)


@pytest.fixture
async def work(client: GitClient) -> Path:
    """A clone with one commit that is not pushed."""
    await client.run("clone", "-q", client.url(), "work")
    await client.run("checkout", "-q", "-B", "main", cwd="work")
    await change(client, "work", readme="read me", **{"folder/run.sh": "#!/bin/sh"})
    return client.folder / "work"


async def change(client: GitClient, clone: str, **files: str | None) -> None:
    """Write files in a clone, or delete them, and commit."""
    for name, text in files.items():
        path = client.folder / clone / name
        if text is None:
            path.unlink()
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(0o755 if name.endswith(".sh") else 0o644)
    await client.run("add", "-A", cwd=clone)
    await client.run("commit", "-qm", "change", cwd=clone)


async def head(client: GitClient) -> str | None:
    return await client.server.roost.drivers.git.head(client.agent["agentId"])


async def test_a_push_arrives_in_the_workspace_and_comes_back(
    client: GitClient, work: Path, workspace: httpx.AsyncClient
) -> None:
    (work / "link").symlink_to("folder/run.sh")
    await client.run("add", "-A", cwd="work")
    await client.run("commit", "-q", "--amend", "-m", "first", cwd="work")
    output = await client.run("push", "origin", "main", cwd="work")
    assert "remote: Changed 3 paths of the agent's files." in output
    assert "[new branch]" in output
    assert await shell(workspace, "cat readme; readlink link; [ -x link ] && ls folder; [ -x readme ] || echo no") == (
        "read mefolder/run.sh\nrun.sh\nno\n"
    )
    await change(client, "work", readme=None, **{"folder/run.sh": None, "folder/inner": "x"})
    (work / "link").unlink()
    await change(client, "work", link="now a file")
    assert "Changed 4 paths" in await client.run("push", cwd="work")
    assert await shell(workspace, "ls; ls folder; cat link") == "folder\nlink\ninner\nnow a file"
    again = await client.clone("again")
    assert sorted(path.name for path in again.iterdir()) == [".git", "folder", "link"]
    assert (await client.run("push", cwd="work")).strip() == "Everything up-to-date"


async def test_large_pushes_are_streamed(client: GitClient, work: Path, workspace: httpx.AsyncClient) -> None:
    with (work / "large").open("wb") as file:
        file.truncate(100 * 1024**2)
        for position in range(0, 30 * 1024**2, 64):
            file.seek(position)
            file.write(position.to_bytes(8, "big") * 8)
    await client.run("add", "-A", cwd="work")
    await client.run("commit", "-qm", "large", cwd="work")
    await client.run("-c", "http.postBuffer=100000", "push", "-q", "origin", "main", cwd="work")
    assert await shell(workspace, "stat -c %s large") == f"{100 * 1024**2}\n"


async def test_only_main_moves_and_only_forward(client: GitClient, work: Path) -> None:
    await client.run("push", "-q", "origin", "main", cwd="work")
    first = await head(client)
    only_main = "remote: Only the branch main can be pushed, alone: `git push origin HEAD:main`."
    for refs in (("main:other",), ("main:refs/tags/v1",), ("main:refs/heads/a", "main:refs/heads/b")):
        assert only_main in await client.run("push", "origin", *refs, cwd="work", ok=False)
    assert "deny" in await client.run("push", "origin", "main:refs/roost/push", cwd="work", ok=False)
    assert "cannot be deleted" in await client.run("push", "origin", ":main", cwd="work", ok=False)
    await client.run("commit", "-q", "--amend", "-m", "rewritten", cwd="work")
    rewritten = await client.run("push", "--force", "origin", "main", cwd="work", ok=False)
    assert "remote: The push would remove commits of the agent. Run `git pull --rebase` and push again." in rewritten
    assert await head(client) == first
    assert "refs/heads/main" in await client.run("ls-remote", client.url())


async def test_a_push_over_a_change_is_refused_and_accepted_after_a_pull(
    client: GitClient, work: Path, workspace: httpx.AsyncClient
) -> None:
    await client.run("push", "-q", "origin", "main", cwd="work")
    await client.clone("other")
    await change(client, "other", theirs="1")
    await change(client, "work", ours="2")
    await client.run("push", "-q", "origin", "main", cwd="other")
    assert "fetch first" in await client.run("push", cwd="work", ok=False)
    await client.run("pull", "-q", "--rebase", "origin", "main", cwd="work")
    await client.run("push", "-q", "origin", "main", cwd="work")
    assert await shell(workspace, "cat theirs ours") == "12"


async def test_changes_of_the_agent_are_committed_before_a_push(
    client: GitClient, work: Path, workspace: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The agent changes a file between the client's look at `main` and its push."""
    await client.run("push", "-q", "origin", "main", cwd="work")
    await change(client, "work", ours="1")
    git, calls = client.server.roost.agents.workspace.git, list[str]()
    commit_changes = git._snapshots.commit_changes

    async def commit_meanwhile(agent_id: str) -> None:
        calls.append(agent_id)
        if len(calls) == 2:
            await shell(workspace, "echo 2 > theirs")
        await commit_changes(agent_id)

    monkeypatch.setattr(git._snapshots, "commit_changes", commit_meanwhile)
    assert f"remote: {BEHIND}" in await client.run("push", "origin", "main", cwd="work", ok=False)
    assert calls == [client.agent["agentId"]] * 2
    await client.run("pull", "-q", "--rebase", "origin", "main", cwd="work")
    assert "main -> main" in await client.run("push", "origin", "main", cwd="work")
    assert await shell(workspace, "cat ours theirs") == "12\n"


async def test_of_two_pushes_at_once_one_wins(client: GitClient, work: Path, workspace: httpx.AsyncClient) -> None:
    await client.run("push", "-q", "origin", "main", cwd="work")
    clones = [f"c{number}" for number in range(3)]
    for clone in clones:
        await client.clone(clone)
        await change(client, clone, who=clone)

    async def race(clone: str) -> tuple[bool, str]:
        try:
            return True, await client.run("push", "origin", "main", cwd=clone)
        except AssertionError as error:
            return False, str(error)

    results = await asyncio.gather(*map(race, clones))
    assert sum(won for won, _ in results) == 1
    for won, output in results:
        assert won or "pull --rebase` and push again" in output or "fetch first" in output
    winner = clones[[won for won, _ in results].index(True)]
    assert await shell(workspace, "cat who") == winner
    folder = client.server.roost.core.settings.data / "git" / client.agent["agentId"]
    assert "error" not in await client.run("--git-dir", folder, "fsck", "--full", "--strict")


async def test_the_build_of_a_push_is_shown(client: GitClient, work: Path, workspace: httpx.AsyncClient) -> None:
    scripts = {"build": "echo one; cat readme; sleep 0.2; echo done > built", "start": "sleep 600"}
    await change(client, "work", **{"manifest.json": json.dumps({"version": 1, "scripts": scripts})})
    output = await client.run("push", "origin", "main", cwd="work")
    lines = [line.removeprefix("remote: ").strip() for line in output.splitlines()]
    begin = lines.index("Running the build script ...")
    assert lines[begin : begin + 4] == ["Running the build script ...", "one", "read me", "The build succeeded."]
    assert await shell(workspace, "cat built") == "done\n"
    await client.run(
        "pull", "-q", "--rebase", "origin", "main", cwd="work"
    )  # what the build made is the agent's change
    assert (work / "built").read_text() == "done\n"
    scripts["build"] = "echo broken >&2; exit 3"
    await change(client, "work", **{"manifest.json": json.dumps({"scripts": scripts})})
    failed = await client.run("push", "origin", "main", cwd="work")
    assert "remote: broken" in failed
    assert "remote: The build failed: It ended with code 3" in failed
    assert await head(client) == (await client.run("rev-parse", "HEAD", cwd="work")).strip()
    states = (await workspace.get(f"/v0/agents/{client.agent['agentId']}/scripts")).json()
    assert "failed" in json.dumps(states)


async def test_trees_that_an_agent_cannot_have_are_refused(
    client: GitClient, work: Path, workspace: httpx.AsyncClient
) -> None:
    await client.run("push", "-q", "origin", "main", cwd="work")
    before = await head(client)

    async def refused(message: str) -> None:
        assert message in await client.run("push", "origin", "main", cwd="work", ok=False)
        assert await head(client) == before
        await client.run("reset", "-q", "--hard", "origin/main", cwd="work")

    for text, reason in (
        ("{", "manifest.json is not valid JSON."),
        ('{"scripts": {"build": 1}}', "scripts.build is not a string."),
        (" " * (1024**2 + 1), "manifest.json is larger than 1 MiB."),
    ):
        await change(client, "work", **{"manifest.json": text})
        await refused(f"remote: {reason}")
    (work / "manifest.json").symlink_to("/etc/passwd")
    await change(client, "work")
    await refused("remote: 'manifest.json' is not a regular file.")
    await change(client, "work", **{"manifest.json/inner": "{}"})
    await refused("remote: 'manifest.json/inner' is below manifest.json, which must be a regular file.")
    await change(client, "work", **{".roost-staging": "x"})
    await refused("remote: '.roost-staging' is a reserved name.")
    await client.run("update-index", "--add", "--cacheinfo", f"160000,{before},module", cwd="work")
    await client.run("commit", "-qm", "module", cwd="work")
    await refused("remote: 'module' is a submodule; an agent's repository holds all of its files itself.")
    assert await shell(workspace, "ls -A") == "folder\nreadme\n"


async def test_links_and_hooks_of_a_push_reach_nothing(
    client: GitClient, work: Path, workspace: httpx.AsyncClient, tmp_path: Path
) -> None:
    """Case F15: a pushed link is not followed by a later push or by the files API, and no hook runs."""
    target = tmp_path / "outside"
    target.mkdir()
    (work / "out").symlink_to(target)
    (work / "hooks").mkdir()
    await change(client, "work", **{"hooks/post-receive.sh": "touch executed", ".gitattributes": "* filter=x"})
    await client.run("push", "-q", "origin", "main", cwd="work")
    assert (await workspace.get("/v0/files", params={"path": "out/x"})).status_code in {400, 404}
    (work / "out").unlink()
    await change(client, "work", **{"out/x": "inside"})
    await client.run("push", "-q", "origin", "main", cwd="work")
    assert await shell(workspace, "[ -L out ] || cat out/x; ls executed 2>&1 || true") == (
        "insidels: cannot access 'executed': No such file or directory\n"
    )
    assert not list(target.iterdir())


async def test_a_stopped_agent_takes_no_push_and_can_be_cloned(
    client: GitClient, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.run("push", "-q", "origin", "main", cwd="work")
    await change(client, "work", readme="new")
    before = await head(client)

    async def refuse(_agent_id: str) -> None:
        raise ContainerNotRunning

    monkeypatch.setattr(client.server.roost.drivers.runtime, "connect", refuse)
    output = await client.run("push", "origin", "main", cwd="work", ok=False)
    assert "remote: The agent cannot take a push now: The agent's container is not running." in output
    assert await head(client) == before
    assert (await client.clone("copy") / "folder").is_dir()
    monkeypatch.undo()
    assert "Changed 1 path " in await client.run("push", "origin", "main", cwd="work")


async def test_a_reset_waits_for_a_push_that_is_applied(
    client: GitClient, work: Path, workspace: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    await client.run("push", "-q", "origin", "main", cwd="work")
    first = (await workspace.post("/v0/snapshots/sync")).json()["snapshotCid"]
    await change(client, "work", readme="second", other="new")
    applying, gate, apply_entries = asyncio.Event(), asyncio.Event(), push.apply_entries

    async def wait_and_apply(*arguments: Any) -> None:
        applying.set()
        await gate.wait()
        await apply_entries(*arguments)

    monkeypatch.setattr(push, "apply_entries", wait_and_apply)
    pushing = asyncio.create_task(client.run("push", "-q", "origin", "main", cwd="work"))
    await applying.wait()
    resetting = asyncio.create_task(reset_to(client, first))
    db, agent_id = client.server.roost.core.db, client.agent["agentId"]
    while (operation := await db.read(lambda c: find_last_unfinished(c, RESET, agent_id))) is None or (
        operation.state is OperationState.PENDING
    ):
        await asyncio.sleep(0)
    gate.set()
    await pushing
    await resetting
    assert await shell(workspace, "ls; cat readme") == "folder\nreadme\nread me"


async def reset_to(client: GitClient, cid: str) -> None:
    body = {"snapshotCid": cid}
    (await client.server.agent_client(client.agent).post("/v0/snapshots/reset", json=body)).raise_for_status()
    await client.run("ls-remote", client.url())
