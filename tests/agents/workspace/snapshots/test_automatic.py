"""Automatic snapshots, on a whole server: after changes, and before a stop."""

import asyncio
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.agents.workspace.snapshots.model import Snapshot, SnapshotTrigger
from tests.conformance.runtimes import until
from tests.contract.git_client import GitClient
from tests.support.server import RunningServer, running


async def shell(client: httpx.AsyncClient, command: str) -> None:
    assert (await client.post("/v0/console/exec", json={"command": command})).json()["exitCode"] == 0


async def wait_for_snapshot(client: httpx.AsyncClient, files: int) -> dict[str, Any]:
    """Return the newest snapshot once it has that number of files."""
    async with asyncio.timeout(30):
        while True:
            found = (await client.get("/v0/snapshots")).json()["snapshots"]
            if found and found[0]["files"] == files:
                return found[0]
            await asyncio.sleep(0.05)


async def create(server: RunningServer) -> dict[str, Any]:
    return (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]


async def test_changes_are_saved_once_they_rest(tmp_path: Path) -> None:
    async with running(tmp_path, ROOST_SNAPSHOT_DELAY="1") as server:
        client = server.agent_client(await create(server))
        await wait_for_snapshot(client, 0)
        await shell(client, "mkdir d; touch d/one; for i in 1 2 3 4 5; do echo $i >> d/two; sleep 0.1; done")
        assert (await wait_for_snapshot(client, 2))["trigger"] == "change"
        snapshots = (await client.get("/v0/snapshots")).json()["snapshots"]
        assert [one["files"] for one in snapshots] == [2, 0]  # the changes are one snapshot
        await server.roost.drivers.runtime.stop(client.headers["Host"].split(".")[0], grace=0)
        async with asyncio.timeout(30):
            while (await client.post("/v0/console/exec", json={"command": "touch d/three"})).status_code != 200:
                await asyncio.sleep(0.05)
        assert (await wait_for_snapshot(client, 3))["trigger"] == "change"  # in the new container


async def test_a_stop_saves_changes_first(tmp_path: Path) -> None:
    async with running(tmp_path) as server:
        agent = await create(server)
        client = server.agent_client(agent)
        automatic = server.roost.agents.lifecycle.workspace.automatic
        await automatic._check()
        async with asyncio.timeout(30):
            while agent["agentId"] not in automatic._last_changes:
                await asyncio.sleep(0.01)
        await shell(client, "touch file")
        key = server.key()
    async with running(tmp_path) as again:
        path = f"/v0/agents/{agent['agentId']}/snapshots"
        (saved,) = (await again.client(key).get(path)).json()["snapshots"]
        assert (saved["trigger"], saved["files"]) == ("stop", 1)


pytestmark = pytest.mark.container


async def test_a_workspace_is_read_again_only_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(tmp_path) as server:
        created = await server.client(server.key()).post("/v0/agents", json={"name": "a"})
        client = GitClient(server, created.json()["agent"], tmp_path)
        automatic, agent_id = server.roost.agents.lifecycle.workspace.automatic, client.agent["agentId"]
        snapshots = server.roost.agents.lifecycle.workspace.snapshots
        readings: list[str] = []
        sync = snapshots.sync

        async def count(agent_id: str, trigger: SnapshotTrigger) -> tuple[datetime, Snapshot]:
            readings.append(agent_id)
            return await sync(agent_id, trigger)

        await client.commit(first=b"0")
        monkeypatch.setattr(snapshots, "sync", count)
        await automatic._check()
        await until(lambda: agent_id in automatic._last_changes)
        await client.run("ls-remote", client.url())
        shell = server.agent_client(client.agent)
        for number in range(1, 5):
            await client.run("ls-remote", client.url())
            assert len(readings) == number
            (await shell.post("/v0/console/exec", json={"command": f"echo {number} > again"})).raise_for_status()
            clone = await client.clone(f"clone{number}")
            assert (clone / "again").read_text() == f"{number}\n"
        assert len(readings) == 5
        monkeypatch.setattr(snapshots, "_taker", replace(snapshots._taker, _digest_value=lambda _: "of a new secret"))
        await client.run("ls-remote", client.url())
        await client.run("ls-remote", client.url())
        assert len(readings) == 6, "files are searched for secrets that are new"
        await server.roost.drivers.runtime.stop(agent_id, grace=0)
        await until(lambda: agent_id not in automatic._watches)
        await client.run("ls-remote", client.url())
        assert len(readings) == 7, "without a watch nothing is known"
