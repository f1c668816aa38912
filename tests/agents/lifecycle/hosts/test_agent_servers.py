"""Which server has an agent: look-ups that are believed for a second, and connections that are kept."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest

from roost.agents.lifecycle.hosts.agent_servers import HTTP_CALL, AgentServers, upload_subject
from roost.agents.lifecycle.hosts.model import HostIdentity
from roost.agents.lifecycle.hosts.service import HostService
from roost.agents.registry.repository import set_agent_host
from roost.core import clock
from roost.core.db import Database
from roost.drivers.runtime.peer_contract import PeerNetwork
from roost.identity.caller import token_digest
from tests.agents.lifecycle.hosts.test_service import create_agent


class RecordedNetwork:
    """Links that record what is called, and which of them are open."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self.open: list[str] = []

    @asynccontextmanager
    async def link(self, _name: str, address: str) -> AsyncGenerator[Any]:
        self.open.append(address)

        class Link:
            async def call(_self, name: str) -> str:  # noqa: N805 - the network is the outer self
                self.calls.append((address, name))
                return "stream"

        try:
            yield Link()
        finally:
            self.open.remove(address)


def open_servers(database: Database, network: RecordedNetwork | None = None) -> AgentServers:
    return AgentServers(database, "here", cast("PeerNetwork", network or RecordedNetwork()), lambda *_: None)


async def start_server(database: Database, name: str, address: str | None) -> HostService:
    server = HostService(database, HostIdentity(name, name, "/srv", "session"), lambda: None, address)
    await server.start()
    await server._heartbeat.stop()
    return server


async def test_a_location_is_believed_for_a_second(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    await start_server(database, "there", "192.0.2.1:8644")
    servers, agent = open_servers(database), create_agent(database, "there")
    assert servers.recall(agent.id) is None
    found = await servers.find(agent.id)
    assert found.server is not None
    assert (found.server.id, servers.recall(agent.id)) == ("there", found)
    database.run(lambda connection: set_agent_host(connection, agent.id, "here", None))
    assert servers.recall(agent.id) == found
    now = clock.monotonic_seconds()
    monkeypatch.setattr(clock, "monotonic_seconds", lambda: now + 1.1)
    assert servers.recall(agent.id) is None
    assert (await servers.find(agent.id)).server is None


async def test_a_server_that_leaves_believes_no_location(database: Database) -> None:
    servers, agent = open_servers(database), create_agent(database, "here")
    found = await servers.find(agent.id)
    assert servers.recall(agent.id) == found
    servers.forget_locations()
    assert servers.recall(agent.id) is None


@pytest.mark.parametrize("address", [None, "192.0.2.1:8644"])
async def test_a_server_that_cannot_be_reached_is_none(database: Database, address: str | None) -> None:
    server = await start_server(database, "there", address)
    servers, agent = open_servers(database), create_agent(database, "there")
    assert ((await servers.find(agent.id)).server is None) == (address is None)
    await server.stop()
    assert (await servers.find(agent.id)).server is None
    assert (await servers.find("unknown")).server is None
    assert (await servers.find(create_agent(database, "here").id)).server is None


async def test_an_upload_has_the_server_that_is_found_by_its_token(database: Database) -> None:
    await start_server(database, "there", "192.0.2.1:8644")
    hosts = {token_digest("a"): "there", token_digest("b"): "here"}
    network = cast("PeerNetwork", RecordedNetwork())
    servers = AgentServers(database, "here", network, lambda _, digest: hosts.get(digest))
    found = [(await servers.find(upload_subject(token))).server for token in "abc"]
    assert [server and server.id for server in found] == ["there", None, None]


async def test_a_connection_serves_all_agents_of_a_server(database: Database) -> None:
    await start_server(database, "there", "192.0.2.1:8644")
    network = RecordedNetwork()
    servers = open_servers(database, network)
    for _ in range(2):
        found = (await servers.find(create_agent(database, "there").id)).server
        assert found is not None
        await servers.dial(found)
    assert (network.calls, network.open) == ([("192.0.2.1:8644", HTTP_CALL)] * 2, ["192.0.2.1:8644"])
    await servers.stop()
    assert network.open == []
