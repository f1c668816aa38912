"""Servers of one database with one runtime, for the tests of what happens to their agents."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from roost.agents.lifecycle.hosts import service, store, takeover
from roost.agents.lifecycle.hosts.model import HOST_TIMEOUT, HostIdentity
from roost.agents.lifecycle.hosts.service import HostService
from roost.agents.lifecycle.hosts.takeover import AgentTakeover
from roost.agents.registry.model import Agent, AgentState
from roost.core import clock
from roost.core.db import Database
from roost.drivers.runtime.fake import FakeRuntime
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, open_lifecycle_env


class SharedRuntime(FakeRuntime):
    is_shared = True


class Servers:
    """Servers of one database whose containers are the same."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database, self.folder = database, folder
        self.runtime = SharedRuntime(folder / "cluster")
        self.hosts: dict[str, HostService] = {}

    async def register(self, name: str) -> AgentTakeover:
        identity = HostIdentity(name, f"{name}.example", f"/{name}", "s")
        self.hosts[name] = HostService(self.database, identity, lambda: None, None, self.runtime.name)
        await self.hosts[name].start()
        await self.hosts[name]._heartbeat.stop()  # the tests say when it is seen
        return AgentTakeover(self.database, name, self.runtime.name)

    @asynccontextmanager
    async def serve(self, name: str, *, reconcile: bool = True) -> AsyncIterator["Server"]:
        looks = await self.register(name)
        async with open_lifecycle_env(
            self.database, self.folder / name, host=name, runtime=self.runtime, reconcile=reconcile, lease=1.0
        ) as env:
            looks._on_taken = env.services.reconciler.adopt_agents
            yield Server(env, looks)

    def end(self, name: str, *, seen: bool = True) -> None:
        """Let a server be gone without a heartbeat, or by a clean stop."""
        seen_at = clock.utc_now() - 2 * HOST_TIMEOUT if seen else None
        assert self.database.run(lambda c: store.set_seen(c, name, "s", seen_at))

    def list_hosts(self) -> list[str]:
        return [host.id for host in self.database.run(service.list_hosts)]


class Server:
    def __init__(self, env: LifecycleEnv, looks: AgentTakeover) -> None:
        self.env, self.looks = env, looks

    async def has(self, agent: Agent) -> bool:
        return await self.env.host_agents.has(agent.id)

    async def serves(self, agent: Agent) -> bool:
        """Return whether the agent runs and this server has its relays."""
        state = (await self.env.agents.get(agent.id)).state
        is_running = state is AgentState.RUNNING and await self.env.start.starter.is_up(agent)
        return is_running and agent.id in self.env.relays.open_now and await self.has(agent)


@pytest.fixture
async def servers(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Servers]:
    monkeypatch.setattr(takeover, "_GRACE_SECONDS", 0.0)
    made = Servers(database, tmp_path)
    yield made
    for agent_id in await made.runtime.list_stored():
        await made.runtime.delete(agent_id)
