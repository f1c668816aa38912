"""Move to another server of the deployment, and back when it does not work, also when a server dies meanwhile."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from roost import work
from roost.agents.lifecycle.hosts import store
from roost.agents.lifecycle.hosts.model import Host
from roost.agents.lifecycle.workflows import move
from roost.agents.lifecycle.workflows.model import UnknownRuntime
from roost.agents.registry.agent_ports import AgentPorts
from roost.agents.registry.errors import AgentNotFound, AgentOnOtherHost
from roost.agents.registry.model import Agent, AgentState
from roost.core import clock
from roost.core.db import Database
from roost.drivers.runtime.contract import Container, ContainerSpec, RuntimeFailed
from roost.drivers.runtime.fake import FakeRuntime
from roost.drivers.runtime.peer_contract import PeerFailed
from roost.drivers.runtime.tls_peers import _TlsPeerLink
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, open_lifecycle_env, until
from tests.agents.lifecycle.workflows.test_move import Crash, has_gateway
from tests.support.acme import find_free_ports

SCRIPT = (
    "mkdir -p sub empty && echo one > sub/one.txt && head -c 3000000 /dev/urandom > large && ln -s sub/one.txt link"
    " && printf run > run.sh && chmod 750 run.sh && echo 'value of GIVEN' > .env"
    ' && mkdir -p "$HOME/.cache" && echo kept > "$HOME/.cache/thing"'
)
LIST = (
    "find . -printf '%p %y %m %l\\n' | grep -v '/.roost' | sort; cat .env large sub/one.txt | sha256sum;"
    ' cat "$HOME/.cache/thing"'
)


class FailingRuntime(FakeRuntime):
    """Runtime that starts no agents when `fails`, cannot delete when `keeps`, and dies with its server by `crash`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.crash = Crash()
        self.fails = self.keeps = False

    async def start(self, spec: ContainerSpec) -> Container:
        self.crash.record_call()
        if self.fails and spec.relays:
            raise RuntimeFailed("no more containers")
        return await super().start(spec)

    async def stop(self, agent_id: str, grace: float = 5.0) -> None:
        self.crash.record_call()
        await super().stop(agent_id, grace)

    async def delete(self, agent_id: str) -> None:
        self.crash.record_call()
        if self.keeps:
            raise RuntimeFailed("no answer")
        await super().delete(agent_id)


class TwoServers:
    """The servers `one` and `two` of one database, each with a folder of its own."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database, self.folder = database, folder
        self.ports: dict[str, int] = dict(zip(("one", "two"), find_free_ports(2), strict=True))
        self.runtimes = {name: FailingRuntime(folder / name) for name in self.ports}

    @asynccontextmanager
    async def serve(self, name: str, **options: Any) -> AsyncIterator[LifecycleEnv]:
        now, address = clock.utc_now(), f"127.0.0.1:{self.ports[name]}"
        host = Host(name, f"{name}.example", str(self.folder / name), "s", now, now, address)
        self.database.run(lambda connection: store.replace_host(connection, host))
        options |= {"host": name, "address": address, "runtime": self.runtimes[name]}
        async with open_lifecycle_env(self.database, self.folder / name, **options) as env:
            await env.start.move.targets.discard_copies()
            yield env

    @asynccontextmanager
    async def serve_both(self) -> AsyncIterator[tuple[LifecycleEnv, LifecycleEnv]]:
        async with AsyncExitStack() as stack:
            one, two = [await stack.enter_async_context(self.serve(name)) for name in self.ports]
            yield one, two

    async def list_gateways(self, agent: Agent) -> list[str]:
        """Return the names of the servers where the agent's gateway runs."""
        return [name for name, runtime in self.runtimes.items() if await has_gateway(runtime, agent)]

    async def list_files(self) -> dict[str, list[str]]:
        """Return by server the agents of whose files or history it has something."""
        found = {name: {*await runtime.list_stored()} for name, runtime in self.runtimes.items()}
        for name, agents in found.items():
            agents.update(path.name for path in (self.folder / name / "git").glob("[a-z0-9]*"))
        return {name: sorted(agents) for name, agents in found.items()}


@pytest.fixture
async def servers(database: Database, tmp_path: Path) -> AsyncIterator[TwoServers]:
    made = TwoServers(database, tmp_path)
    yield made
    for runtime in made.runtimes.values():
        runtime.keeps = False
        for agent_id in await runtime.list_stored():
            await runtime.delete(agent_id)


async def fill(env: LifecycleEnv, agent: Agent) -> str:
    result = await env.warden(agent.id).exec(["sh", "-c", SCRIPT])
    assert result.exit_code == 0, result.stderr
    return await list_tree(env, agent)


async def list_tree(env: LifecycleEnv, agent: Agent) -> str:
    return (await env.warden(agent.id).exec(["sh", "-c", LIST])).stdout.decode()


async def test_an_agent_moves_with_files_and_history_and_back(servers: TwoServers) -> None:
    async with servers.serve_both() as (one, two):
        agent = await one.settled()
        token = (await one.gateways.read(agent.id)).reveal()
        before = await fill(one, agent)
        await one.snapshots.sync(agent.id)
        await until(lambda: one.git.head(agent.id))
        head = await one.git.head(agent.id)
        moved = await one.start.move(agent.id, "two.example")
        assert (moved.success, moved.runtime, moved.output) == (True, "fake", "Moved to the server two.example")
        assert await servers.list_gateways(agent) == ["two"]
        assert await list_tree(two, agent) == before
        assert await two.git.head(agent.id) == head
        after = await two.agents.get_here(agent.id)
        assert (after.state, after.runtime) == (AgentState.RUNNING, "fake")
        assert (await two.gateways.read(agent.id)).reveal() == token
        assert await servers.list_files() == {"one": [], "two": [agent.id]}
        assert (one.relays.open_now, two.relays.open_now) == (set(), {agent.id})
        with pytest.raises(AgentOnOtherHost):
            await one.services.restart(agent.id)
        await two.services.restart(agent.id)
        assert (await two.start.move(agent.id, "one")).success
        assert await servers.list_gateways(agent) == ["one"]
        assert await list_tree(one, agent) == before
        assert await servers.list_files() == {"one": [agent.id], "two": []}
        assert await one.host_agents.list_copies() == await two.host_agents.list_copies() == []


async def test_a_server_that_does_not_start_the_agent_gives_it_back(servers: TwoServers) -> None:
    async with servers.serve_both() as (one, two):
        agent = await one.settled()
        before = await fill(one, agent)
        servers.runtimes["two"].fails = True
        result = await one.start.move(agent.id, "two")
        assert (result.success, result.runtime) == (False, "fake")
        assert "not moved to the server two.example: no more containers" in result.output
        assert await servers.list_gateways(agent) == ["one"]
        assert await list_tree(one, agent) == before
        assert await servers.list_files() == {"one": [agent.id], "two": []}
        assert await two.host_agents.list_copies() == []


@pytest.mark.parametrize("fails", [False, True], ids=["moved", "given back"])
async def test_a_repository_that_servers_share_is_not_deleted(
    servers: TwoServers, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    deleted: list[str] = []

    async def delete(agent_id: str) -> None:
        deleted.append(agent_id)

    async with servers.serve_both() as (one, two):
        agent = await one.settled()
        for env in (one, two):
            monkeypatch.setattr(env.git, "is_shared", True)
            monkeypatch.setattr(env.git, "delete", delete)
        servers.runtimes["two"].fails = fails
        assert (await one.start.move(agent.id, "two")).success is not fails
        assert deleted == []


async def test_a_server_that_refuses_leaves_the_agent_running(servers: TwoServers) -> None:
    async with servers.serve_both() as (one, two):
        agent = await one.settled()
        gateway = await one.gateway_pid(agent)
        object.__setattr__(two.start.move.targets.others, "bucket", "s3://another")
        result = await one.start.move(agent.id, "two")
        assert not result.success
        assert "do not share a bucket" in result.output
        assert await one.gateway_pid(agent) == gateway
        assert await servers.list_files() == {"one": [agent.id], "two": []}


@pytest.mark.parametrize("name", ["one", "two"])
async def test_an_agent_that_would_lose_its_port_stays(
    servers: TwoServers, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with servers.serve_both() as (one, two):
        agent = await one.settled()
        with_ports = {"one": one, "two": two}[name]
        monkeypatch.setattr(with_ports.agents, "ports", AgentPorts(servers.database, name, range(9000, 9010)))
        result = await one.start.move(agent.id, "two")
        assert "Agents have ports instead of names" in result.output
        assert await servers.list_gateways(agent) == ["one"]


async def test_a_server_that_ends_during_the_copy_discards_it(
    servers: TwoServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with servers.serve("one") as one:
        agent = await one.settled()
        before = await fill(one, agent)
        async with servers.serve("two") as two:
            monkeypatch.setattr(_TlsPeerLink, "call", _end_at("move.write_repository", two))
            await one.snapshots.sync(agent.id)
            result = await one.start.move(agent.id, "two")
        assert (result.success, await servers.list_gateways(agent)) == (False, ["one"])
        assert agent.id in (await servers.list_files())["two"]
        async with servers.serve("two") as two:
            assert await servers.list_files() == {"one": [agent.id], "two": []}
            assert await two.host_agents.list_copies() == []
            monkeypatch.undo()
            assert (await one.start.move(agent.id, "two")).success
            assert await list_tree(two, agent) == before


async def test_a_copy_that_cannot_be_closed_is_undone(servers: TwoServers, monkeypatch: pytest.MonkeyPatch) -> None:
    async with servers.serve_both() as (one, two):
        agent = await one.settled()
        before, call, released = await fill(one, agent), _TlsPeerLink.call, list[str]()

        async def refuse_second(self: _TlsPeerLink, name: str, *arguments: Any, **fields: Any) -> Any:
            if name == "move.release":
                released.append(name)
                if len(released) == 2:
                    raise PeerFailed
            return await call(self, name, *arguments, **fields)

        monkeypatch.setattr(_TlsPeerLink, "call", refuse_second)
        assert not (await one.start.move(agent.id, "two")).success
        assert await servers.list_gateways(agent) == ["one"]
        assert await list_tree(one, agent) == before
        assert await servers.list_files() == {"one": [agent.id], "two": []}
        assert await two.host_agents.list_copies() == []


def _end_at(name: str, server: LifecycleEnv) -> Any:
    call = _TlsPeerLink.call

    async def call_once(self: _TlsPeerLink, called: str, *arguments: Any, **fields: Any) -> Any:
        if called == name:
            await server.peers.stop()
        return await call(self, called, *arguments, **fields)

    return call_once


@pytest.mark.parametrize("fails", [False, True], ids=["there", "back"])
async def test_an_agent_waits_for_the_server_that_has_it(servers: TwoServers, fails: bool) -> None:
    """The other server dies when the agent is its own; no other starts it, until that one is back."""
    async with servers.serve("one", lease=0.3, reconcile=True) as one:
        agent = await one.settled()
        before = await fill(one, agent)
        async with servers.serve("two", lease=0.3) as two:
            two.engine.becomes_ready = False
            moving = asyncio.create_task(one.start.move(agent.id, "two"))
            await until(lambda: has_gateway(servers.runtimes["two"], agent))
        await servers.runtimes["two"].stop(agent.id)
        await asyncio.sleep(0.5)
        assert await servers.list_gateways(agent) == []
        servers.runtimes["two"].fails = fails
        async with servers.serve("two") as two:
            assert (await moving).success is not fails
            where = one if fails else two
            assert await servers.list_gateways(agent) == ["one" if fails else "two"]
            assert await list_tree(where, agent) == before
            await until(lambda: _is_idle(one, agent))
            assert await servers.list_files() == {"one": [agent.id] * fails, "two": [agent.id] * (not fails)}


@pytest.mark.parametrize("fails", [False, True], ids=["there", "back"])
@pytest.mark.parametrize(("name", "at"), [*(("one", at) for at in range(4)), *(("two", at) for at in range(7))])
async def test_a_move_survives_the_death_of_either_server(servers: TwoServers, name: str, at: int, fails: bool) -> None:
    """One server dies at each call of its runtime; it comes back, and one of the two has the agent, whole."""
    async with AsyncExitStack() as stack, AsyncExitStack() as mortal:
        envs: dict[str, LifecycleEnv] = {}
        for one in servers.ports:
            opened = servers.serve(one, lease=0.3)
            envs[one] = await (mortal if one == name else stack).enter_async_context(opened)
        agent = await envs["one"].settled()
        before = await fill(envs["one"], agent)
        servers.runtimes["two"].fails = fails
        crash = servers.runtimes[name].crash
        crash.at = crash.count + at
        moving = asyncio.create_task(envs["one"].start.move(agent.id, "two"))
        await asyncio.wait([moving, asyncio.create_task(crash.is_dead.wait())], return_when="FIRST_COMPLETED")
        await mortal.aclose()
        moving.cancel()
        assert len(await servers.list_gateways(agent)) <= 1
        servers.runtimes[name].crash = Crash()
        envs[name] = await stack.enter_async_context(servers.serve(name, reconcile=True))
        await until(lambda: _is_settled(envs["one"], agent))
        (where,) = await servers.list_gateways(agent)
        assert (await envs["one"].agents.get(agent.id)).host_id == where
        assert await list_tree(envs[where], agent) == before
        assert where == "one" or not fails


async def _is_settled(env: LifecycleEnv, agent: Agent) -> bool:
    return await _is_idle(env, agent) and (await env.agents.get(agent.id)).state is AgentState.RUNNING


async def _is_idle(env: LifecycleEnv, agent: Agent) -> bool:
    return not await env.db.read(lambda connection: work.is_subject_busy(connection, agent.id))


async def test_an_agent_in_use_there_cannot_be_given_up(servers: TwoServers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(move, "_PAUSE", timedelta(milliseconds=20))
    async with servers.serve_both() as (one, two):
        agent = await one.settled()
        two.engine.becomes_ready, servers.runtimes["two"].keeps = False, False
        moving = asyncio.create_task(one.start.move(agent.id, "two"))
        await until(lambda: has_gateway(servers.runtimes["two"], agent))
        servers.runtimes["two"].keeps = True
        await until(lambda: _has_reason(two, agent, "has not removed its copy yet"))
        assert "one" not in await servers.list_gateways(agent)
        servers.runtimes["two"].keeps = False
        two.engine.becomes_ready = True
        assert (await moving).success is (await servers.list_gateways(agent) == ["two"])


async def _has_reason(env: LifecycleEnv, agent: Agent, reason: str) -> bool:
    return reason in ((await env.agents.get(agent.id)).reason or "")


async def test_a_deleted_agent_leaves_nothing_on_both(servers: TwoServers) -> None:
    async with servers.serve_both() as (one, two):
        agent = await one.settled()
        two.engine.becomes_ready = False
        moving = asyncio.create_task(one.start.move(agent.id, "two"))
        await until(lambda: has_gateway(servers.runtimes["two"], agent))
        await two.services.delete.delete(agent.id)
        with pytest.raises(AgentNotFound):
            await moving
        assert await servers.list_files() == {"one": [], "two": []}


async def test_calls_for_an_agent_that_is_there_are_refused(servers: TwoServers) -> None:
    async with servers.serve_both() as (one, two):
        agent = await two.settled()
        async with one.start.move.targets.open_target("", "two") as target:
            for refused in (target.discard, target.release, target.connect):
                with pytest.raises(Exception, match="The agent is on this server"):
                    await refused(agent.id)
        assert await servers.list_gateways(agent) == ["two"]


async def test_an_unknown_place_names_the_known_ones(servers: TwoServers) -> None:
    async with servers.serve_both() as (one, _):
        agent = await one.settled()
        with pytest.raises(UnknownRuntime) as unknown:
            await one.start.move(agent.id, "three")
        assert unknown.value.detail == "to must be one of fake, two.example (two), got 'three'"
