"""Engines, wardens and streams of agents that exist."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent, AgentProfile
from roost.agents.registry.repository import AgentRepository
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import EngineNotInstalled
from roost.drivers.engine.fake.driver import FakeEngine
from roost.drivers.runtime.contract import ContainerSpec, Stream
from roost.drivers.runtime.fake import FakeRuntime
from roost.identity import tenants
from roost.identity.caller import Plan
from roost.warden_client.errors import ContainerNotRunning, DialRefused


class OtherEngine(FakeEngine):
    id = "other"


@pytest.fixture
def dialect() -> str:
    return "sqlite"


@pytest.fixture
async def runtime(tmp_path: Path) -> AsyncIterator[FakeRuntime]:
    made = FakeRuntime(tmp_path / "data")
    yield made
    for container in await made.list():
        await made.delete(container.agent_id)


@pytest.fixture
def repository(database: Database) -> AgentRepository:
    return AgentRepository(database, Sealer(Sensitive(bytes(32))), dict.fromkeys(Plan, 5), "host")


@pytest.fixture
def agent(database: Database, repository: AgentRepository) -> Agent:
    owner = database.run(lambda c: tenants.ensure_tenant(c, "acme").id)
    return database.run(lambda c: repository.create(c, owner, AgentProfile("Ada"), "fake", "1.0.0"))


@pytest.fixture
def runtimes(repository: AgentRepository, runtime: FakeRuntime) -> AgentRuntimes:
    return AgentRuntimes(repository, runtime, [OtherEngine(), FakeEngine()])


async def test_engines_in_the_order_in_which_they_are_offered(runtimes: AgentRuntimes) -> None:
    assert [engine.id for engine in runtimes.list_engines()] == ["other", "fake"]
    runtimes.get_engine("other").remove("1.0.0")
    assert [engine.id for engine in runtimes.list_engines()] == ["fake"]
    assert runtimes.get_engine("other").installed() == []
    with pytest.raises(EngineNotInstalled):
        runtimes.get_engine("unknown")


async def test_a_stopped_container_has_no_stream(runtimes: AgentRuntimes, agent: Agent) -> None:
    with pytest.raises(ContainerNotRunning):
        await runtimes.dial(agent.id)
    with pytest.raises(AgentNotFound):
        await runtimes.dial("nobody")


async def test_a_stream_to_the_gateways_port(runtimes: AgentRuntimes, runtime: FakeRuntime, agent: Agent) -> None:
    await runtime.start(ContainerSpec(agent.id))
    with pytest.raises(DialRefused):
        await runtimes.dial(agent.id)
    listen = "import socket; socket.create_server(('127.0.0.1', 18700)).accept()[0].sendall(b'hello')"
    await runtimes.get_warden(agent.id).start("gateway", ["python3", "-c", listen], env={}, restart=False)
    reader, writer = await _once_listening(runtimes, agent)
    assert await reader.read() == b"hello"
    writer.close()


async def test_the_credential_of_an_agents_gateway(
    runtimes: AgentRuntimes, repository: AgentRepository, agent: Agent
) -> None:
    name, value = await runtimes.get_credential(agent.id)
    assert name == "Authorization"
    assert value == Sensitive(f"Bearer {(await repository.get_internal_token(agent.id)).reveal()}")
    with pytest.raises(AgentNotFound):
        await runtimes.get_credential("nobody")


async def _once_listening(runtimes: AgentRuntimes, agent: Agent) -> Stream:
    async with asyncio.timeout(20):
        while True:
            try:
                return await runtimes.dial(agent.id)
            except DialRefused:
                await asyncio.sleep(0.01)
