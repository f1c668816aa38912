"""Automatic snapshots, on a whole server: after changes, and before a stop."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2 as httpx

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
