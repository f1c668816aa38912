"""Snapshots of a workspace: take, list, compare, label, reset; what is in them and what is not."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import sqlalchemy as sa

from roost.agents.workspace.snapshots import capture, model
from roost.storage.content.unixfs.cid import DAG_CBOR, IDENTITY, RAW, Cid
from tests.contract.backing import Backing
from tests.contract.git_client import GitClient
from tests.support.server import RunningServer

UNKNOWN = "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi"
ON_SERVICES = {
    *("test_everything_comes_back", "test_a_reset_saves_the_present_state", "test_a_fork_begins_with_the_snapshot"),
    *("test_resets_at_once_end_in_one_of_the_states", "test_differences_of_two_snapshots_are_listed"),
    *("test_without_storage_nothing_changes", "test_deleting_an_agent_releases_its_content"),
    *("test_snapshots_are_commits", "test_many_small_packs_are_merged"),
}
ALL = "find . -mindepth 1 -printf '%P %y %m %l\\n' | sort; find . -type f -exec sha256sum {} + | sort"


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> dict[str, Any]:
    return (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]


@pytest.fixture
async def client(server: RunningServer, agent: dict[str, Any]) -> httpx.AsyncClient:
    """Return a client at the agent's own address; the workspace is empty."""
    client = server.agent_client(agent)
    await shell(client, "find . -mindepth 1 -delete")
    return client


async def shell(client: httpx.AsyncClient, command: str) -> str:
    result = (await client.post("/v0/console/exec", json={"command": command})).json()
    assert result["exitCode"] == 0, result
    return result["stdout"]


async def sync(client: httpx.AsyncClient) -> dict[str, Any]:
    answer = await client.post("/v0/snapshots/sync")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def reset(client: httpx.AsyncClient, cid: str) -> dict[str, Any]:
    answer = await client.post("/v0/snapshots/reset", json={"snapshotCid": cid})
    assert answer.status_code == 200, answer.text
    return answer.json()


async def list_all(client: httpx.AsyncClient, page: int = 1) -> list[dict[str, Any]]:
    return (await client.get(f"/v0/snapshots?page={page}")).json()["snapshots"]


def error(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]


async def test_everything_comes_back(client: httpx.AsyncClient) -> None:
    await shell(
        client,
        """set -e
        mkdir -p empty deep/a/b 'with space'; echo one > file; : > deep/a/b/nothing
        echo '#!/bin/sh' > tool; chmod 755 tool; mkdir -m 700 private; (umask 077; echo key > private/key)
        ln -s file link; ln -s /etc/passwd away; ln -s missing broken
        touch "$(printf 'bytes \\377')" "$(printf 'new\\nline')" -- '-dash' 'Umlaut ü'
        head -c 3000000 /dev/urandom > large
        git init -q nested; cd nested; echo x > y; git add y; git -c user.name=a -c user.email=a commit -qm first""",
    )
    before = await shell(client, ALL)
    taken = await sync(client)
    assert taken["skipped"] == []
    await shell(client, "find . -mindepth 1 -delete; mkdir file tool; echo other > deep; ln -s file large")
    await reset(client, taken["snapshotCid"])
    assert await shell(client, ALL) == before
    assert await shell(client, "git -C nested log --format=%s") == "first\n"
    assert (await sync(client))["snapshotCid"] == taken["snapshotCid"]


async def test_equal_states_have_one_snapshot(client: httpx.AsyncClient) -> None:
    await shell(client, "echo one > file")
    first = await sync(client)
    await shell(client, "touch file")
    assert (await sync(client))["snapshotCid"] == first["snapshotCid"]
    assert [one["snapshotCid"] for one in await list_all(client)].count(first["snapshotCid"]) == 1
    await shell(client, "printf 'ONE\\n' > file")
    second = await sync(client)
    assert second["changeSummary"] == "1 file changed"
    newest = (await list_all(client))[0]
    assert (newest["snapshotCid"], newest["changeSummary"], newest["trigger"]) == (
        *(second["snapshotCid"], "1 file changed"),
        "request",
    )


async def test_a_change_of_the_same_size_and_time_is_seen(client: httpx.AsyncClient) -> None:
    cids = set[str]()
    for number in range(10):
        await shell(client, f"printf {number} > file; touch -d @1 file")
        cids.add((await sync(client))["snapshotCid"])
    assert len(cids) == 10


async def test_a_folder_in_place_of_a_program_is_seen(client: httpx.AsyncClient) -> None:
    await shell(client, "echo x > a; chmod 755 a")
    first = await sync(client)
    await shell(client, "rm a; mkdir -m 755 a")
    assert (await sync(client))["snapshotCid"] != first["snapshotCid"]


async def test_a_reset_saves_the_present_state(client: httpx.AsyncClient) -> None:
    await shell(client, "echo one > file")
    first = await sync(client)
    await shell(client, "echo two > file; echo new > other")
    await reset(client, first["snapshotCid"])
    assert await shell(client, "cat *") == "one\n"
    saved = (await list_all(client))[0]
    assert saved["trigger"] == "reset"
    await reset(client, saved["snapshotCid"])
    assert await shell(client, "cat *") == "two\nnew\n"


async def test_resets_at_once_end_in_one_of_the_states(client: httpx.AsyncClient) -> None:
    cids: list[str] = []
    for name in ("a", "b"):
        await shell(client, f"rm -f *; for i in 1 2 3 4 5; do echo {name} > {name}$i; echo {name} > both$i; done")
        cids.append((await sync(client))["snapshotCid"])
    await asyncio.gather(*(reset(client, cid) for cid in cids * 2), sync(client))
    text = await shell(client, "cat *")
    assert text in {"a\n" * 10, "b\n" * 10}


async def test_a_snapshot_is_of_this_agent(client: httpx.AsyncClient, server: RunningServer) -> None:
    for malformed in ("", "x", None, 7, "QmdfTbBqBPQ7VNxZEYEj14VmRuZBkqFbiwReogJgS1zR1n" * 2):
        answer = await client.post("/v0/snapshots/reset", json={"snapshotCid": malformed})
        assert error(answer) == (400, "Invalid snapshot CID")
    assert error(await client.post("/v0/snapshots/reset", json={})) == (400, "Invalid snapshot CID")
    one_block, in_json = Cid.for_block(RAW, b"x"), Cid.for_block(DAG_CBOR, b"\xa0")
    for cid in (UNKNOWN, str(one_block), str(in_json), str(Cid(1, RAW, IDENTITY, b"x"))):
        unknown = await client.post("/v0/snapshots/reset", json={"snapshotCid": cid})
        assert error(unknown) == (404, "Snapshot not found"), cid
    other = (await server.client(server.key()).post("/v0/agents", json={"name": "b"})).json()["agent"]
    others = await sync(server.agent_client(other))
    await shell(client, "echo own > file")
    await sync(client)
    await shell(server.agent_client(other), "echo others > file")
    others = await sync(server.agent_client(other))
    foreign = await client.post("/v0/snapshots/reset", json={"snapshotCid": others["snapshotCid"]})
    assert error(foreign) == (404, "Snapshot not found")
    await server.client(server.key()).delete(f"/v0/agents/{other['agentId']}")


async def test_status_tells_the_last_snapshot(server: RunningServer) -> None:
    agent = (await server.client(server.key()).post("/v0/agents", json={"name": "c"})).json()["agent"]
    client = server.agent_client(agent)
    status = (await client.get("/v0/snapshots/sync")).json()
    assert (status["configured"], status["lastSync"], status["message"]) == (True, None, "Never synced")
    taken = await sync(client)
    status = (await client.get("/v0/snapshots/sync")).json()
    assert (status["lastSync"], status["snapshotCid"]) == (taken["lastSync"], taken["snapshotCid"])
    detail = (await client.get(f"/v0/agents/{agent['agentId']}")).json()
    assert [one["snapshotCid"] for one in detail["snapshots"]] == [taken["snapshotCid"]]


async def test_differences_of_two_snapshots_are_listed(client: httpx.AsyncClient) -> None:
    await shell(client, "mkdir d; echo one > d/text; echo gone > gone; echo same > same; head -c 99 /dev/zero > binary")
    old = (await sync(client))["snapshotCid"]
    await shell(client, "echo two > d/text; rm gone; mkdir e; echo new > e/new; head -c 98 /dev/zero > binary")
    new = (await sync(client))["snapshotCid"]
    pair = {"from": old, "to": new}
    found = (await client.get("/v0/snapshots/diff", params=pair)).json()
    assert {(file["path"], file["change"]) for file in found["changes"]} == {
        *(("d/text", "changed"), ("gone", "deleted"), ("e/new", "added")),
        ("binary", "changed"),
    }
    assert (found["truncated"], found["diff"]) == (False, None)
    text = (await client.get("/v0/snapshots/diff", params={**pair, "path": "d/text"})).json()["diff"]
    assert text.splitlines()[-2:] == ["-one", "+two"]
    binary = (await client.get("/v0/snapshots/diff", params={**pair, "path": "binary"})).json()["diff"]
    assert "Binary files differ" in binary
    assert error(await client.get("/v0/snapshots/diff", params={"from": old, "to": UNKNOWN})) == (
        *(404,),
        "Snapshot not found",
    )


async def test_pages_and_labels(server: RunningServer) -> None:
    agent = (await server.client(server.key()).post("/v0/agents", json={"name": "d"})).json()["agent"]
    client = server.agent_client(agent)
    cids: list[str] = []
    for number in range(12):
        await shell(client, f"echo {number} > file")
        cids.append((await sync(client))["snapshotCid"])
    assert [one["snapshotCid"] for one in await list_all(client)] == cids[:1:-1]
    assert [one["snapshotCid"] for one in await list_all(client, 2)] == cids[1::-1]
    labelled = await client.put(f"/v0/snapshots/{cids[0]}/label", json={"label": "first"})
    assert labelled.json()["label"] == "first"
    assert (await list_all(client, 2))[-1]["label"] == "first"
    assert error(await client.put(f"/v0/snapshots/{UNKNOWN}/label", json={"label": "x"})) == (404, "Snapshot not found")


async def test_restored_snapshot_is_not_expired_by_its_successor(server: RunningServer) -> None:
    agent = (await server.client(server.key()).post("/v0/agents", json={"name": "h"})).json()["agent"]
    client, db = server.agent_client(agent), server.roost.core.db
    cids: list[str] = []
    for number in range(model.PAGE_SIZE):  # the first is the last that is kept for its number
        await shell(client, f"echo {number} > file")
        cids.append((await sync(client))["snapshotCid"])
    await db.write(
        lambda connection: connection.execute(
            sa.text("update snapshots set created_at = 0 where cid = :cid and agent_id = :agent"),
            {"cid": cids[0], "agent": agent["agentId"]},
        )
    )
    await shell(client, "echo unsaved > file")
    await reset(client, cids[0])
    assert await shell(client, "cat file") == "0\n"
    assert [one["snapshotCid"] for one in await list_all(client, 2)] == [cids[0]]


async def test_a_failed_agent_has_a_workspace_too(server: RunningServer) -> None:
    agent = (await server.client(server.key()).post("/v0/agents", json={"name": "e"})).json()["agent"]
    client = server.agent_client(agent)
    await shell(client, "echo kept > file")
    taken = await sync(client)
    await shell(client, "rm file")
    await server.roost.drivers.runtime.stop(agent["agentId"], grace=0)
    await reset(client, taken["snapshotCid"])
    owner = server.client(server.key())
    assert (await owner.post(f"/v0/agents/{agent['agentId']}/restart")).status_code == 200
    assert await shell(client, "cat file") == "kept\n"


async def test_deleting_an_agent_releases_its_content(server: RunningServer) -> None:
    owner = server.client(server.key())
    agent = (await owner.post("/v0/agents", json={"name": "f"})).json()["agent"]
    client = server.agent_client(agent)
    await shell(client, "head -c 100000 /dev/urandom > file")
    await sync(client)
    held = "select count(*) from holds where holder = :holder"
    values = {"holder": f"agent/{agent['agentId']}"}
    assert await count(server, held, values) == 1
    await owner.delete(f"/v0/agents/{agent['agentId']}")
    assert await count(server, held, values) == 0


async def count(server: RunningServer, query: str, values: dict[str, str]) -> int:
    return await server.roost.core.db.read(lambda connection: connection.execute(sa.text(query), values).scalar_one())


async def test_a_fork_begins_with_the_snapshot(client: httpx.AsyncClient, server: RunningServer) -> None:
    owner = server.client(server.key())
    await shell(client, "mkdir d; echo text > d/file")
    taken = await sync(client)
    created = await owner.post("/v0/agents", json={"name": "fork", "snapshotCid": taken["snapshotCid"]})
    assert created.status_code == 201, created.text
    fork = server.agent_client(created.json()["agent"])
    assert await shell(fork, "cat d/file") == "text\n"
    assert [(one["snapshotCid"], one["trigger"]) for one in await list_all(fork)] == [(taken["snapshotCid"], "fork")]
    await shell(fork, "echo more >> d/file")
    changed = await sync(fork)
    assert changed["changeSummary"] == "1 file changed"
    await reset(fork, taken["snapshotCid"])
    assert await shell(fork, "cat d/file") == "text\n"
    await owner.delete(f"/v0/agents/{created.json()['agent']['agentId']}")
    assert await shell(client, "cat d/file") == "text\n"


async def test_a_fork_needs_a_snapshot_of_the_tenant(client: httpx.AsyncClient, server: RunningServer) -> None:
    await shell(client, "echo mine > file")
    taken = await sync(client)
    stranger = server.client(server.key("other"))
    for cid, expected in ((taken["snapshotCid"], (404, "Snapshot not found")), ("x", (400, "Invalid snapshot CID"))):
        assert error(await stranger.post("/v0/agents", json={"name": "f", "snapshotCid": cid})) == expected
    assert (await stranger.get("/v0/agents")).json()["agents"] == []


async def test_a_workspace_that_cannot_be_walked(client: httpx.AsyncClient) -> None:
    await shell(client, "echo one > file")
    taken = await sync(client)
    await shell(client, "d=.; for i in $(seq 300); do mkdir d; cd d; done")
    assert error(await client.post("/v0/snapshots/sync")) == (500, "Sync failed")
    answer = await client.post("/v0/snapshots/reset", json={"snapshotCid": taken["snapshotCid"]})
    assert error(answer) == (500, "Reset failed")
    await shell(client, "rm -r d")
    assert await shell(client, "cat file") == "one\n"


async def test_without_storage_nothing_changes(client: httpx.AsyncClient, backing: Backing) -> None:
    await shell(client, "echo one > file")
    first = (await sync(client))["snapshotCid"]
    await shell(client, "echo two > file")
    async with backing.interrupt_blobs():
        for path, body in (("sync", {}), ("reset", {"snapshotCid": first})):
            answer = await client.post(f"/v0/snapshots/{path}", json=body)
            assert answer.status_code == 503
            assert answer.json()["error"].startswith("The storage backend is not available")
        assert await shell(client, "cat file") == "two\n"
    await reset(client, first)
    assert await shell(client, "cat file") == "one\n"
    second = (await list_all(client))[0]["snapshotCid"]
    await reset(client, second)
    assert await shell(client, "cat file") == "two\n"


async def test_snapshots_are_commits(server: RunningServer, tmp_path: Path) -> None:
    agent = (await server.client(server.key()).post("/v0/agents", json={"name": "g"})).json()["agent"]
    client, git = server.agent_client(agent), GitClient(server, agent, tmp_path)
    await shell(
        client, "mkdir d empty; echo one > d/file; ln -s d/file link; echo x > tool; chmod 755 tool; mkfifo pipe"
    )
    await sync(client)
    clone = await git.clone("clone")
    first = (await list_all(client))[0]
    assert (clone / "d/file").read_text() == "one\n"
    assert (clone / "link").readlink() == Path("d/file")
    assert (clone / "tool").stat().st_mode & 0o100
    assert await log(git) == [f"{first['commitSha']} 3 files added"]
    await shell(client, "rm -r d; mkdir link2; mv link d; echo two > link2/file")
    await git.run("pull", "-q", cwd="clone")  # which commits first
    second = (await list_all(client))[0]
    assert (second["trigger"], second["commitSha"]) == ("git", (await log(git))[0].split()[0])
    assert (clone / "d").is_symlink()
    await reset(client, first["snapshotCid"])
    await git.run("fetch", "-q", cwd="clone")
    assert (await git.run("rev-parse", "origin/main", cwd="clone")).strip() == first["commitSha"]
    await reset(client, second["snapshotCid"])
    await git.run("pull", "-q", cwd="clone")
    (clone / "pushed").write_text("pushed\n")
    await git.run("add", "-A", cwd="clone")
    await git.run("commit", "-qm", "mine", cwd="clone")
    await git.run("push", "-q", cwd="clone")
    await sync(client)
    await git.run("fetch", "-q", cwd="clone")
    assert (await list_all(client))[0]["commitSha"] == (await git.run("rev-parse", "HEAD", cwd="clone")).strip()
    assert await shell(client, "cat pushed") == "pushed\n"
    assert await shell(client, "ls empty pipe") == "pipe\n\nempty:\n"  # a push leaves what Git does not know
    (clone / "pushed").write_text("again\n")
    await git.run("commit", "-qam", "again", cwd="clone")
    await git.run("push", "-q", cwd="clone")  # no commit of the platform is in the way


async def log(git: GitClient) -> list[str]:
    return (await git.run("log", "--format=%H %s", cwd="clone")).splitlines()


async def test_many_small_packs_are_merged(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture, "MAX_PACKS", 4)
    monkeypatch.setattr(capture, "_PACKS_AFTER_MERGE", 1)
    cids: list[str] = []
    for number in range(8):
        await shell(client, f"mkdir d{number}; echo {number} > d{number}/file; ln -s d{number} link{number}")
        cids.append((await sync(client))["snapshotCid"])
    for number in (0, 7, 4):
        await reset(client, cids[number])
        expected = "".join(f"{one}\n" for one in range(number + 1))
        assert await shell(client, "cat d*/file; cat link*/file") == expected * 2
        assert (await sync(client))["snapshotCid"] == cids[number]
