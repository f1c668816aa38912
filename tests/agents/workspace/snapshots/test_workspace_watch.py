"""What a watch proves, on a whole server: a workspace is read before Git shows it, unless nothing has changed."""

from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from roost.agents.workspace.snapshots.model import Snapshot, SnapshotTrigger
from tests.conformance.runtimes import until
from tests.contract.git_client import GitClient
from tests.support.server import running

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
