"""Agents of servers that are gone, in a runtime that all servers share: who gets them, and what the old one may do."""

import asyncio
from collections.abc import Collection
from datetime import timedelta

import pytest

from roost import work
from roost.agents.lifecycle.hosts import store, takeover
from roost.agents.lifecycle.hosts.model import HEARTBEAT_SECONDS, HOST_TIMEOUT, HostIdentity
from roost.agents.lifecycle.hosts.service import HostService
from roost.agents.lifecycle.hosts.takeover import AgentTakeover
from roost.agents.lifecycle.workflows import model
from roost.agents.lifecycle.workflows.disk_guard import DiskGuard
from roost.agents.lifecycle.workflows.model import UnknownRuntime
from roost.agents.registry.agent_containers import AgentContainers
from roost.agents.registry.errors import AgentOnOtherHost
from roost.agents.registry.model import AgentState
from roost.agents.registry.repository import set_agent_runtime
from roost.core import clock
from roost.drivers.runtime.contract import ContainerSpec
from roost.work import OperationState
from tests.agents.lifecycle.hosts.shared_servers import Servers, servers
from tests.agents.lifecycle.workflows.lifecycle_env import DEADLINE, until

__all__ = ["servers"]
ONLY_POSTGRESQL = [pytest.param("postgresql", marks=pytest.mark.postgres)]
pytestmark = pytest.mark.parametrize("dialect", ONLY_POSTGRESQL)


async def open_nothing(_: object) -> None:
    return


@pytest.mark.parametrize("seen", [True, False], ids=["dead", "stopped"])
async def test_agents_of_a_server_that_is_gone_run_on_at_another(servers: Servers, seen: bool) -> None:
    async with servers.serve("two") as two:
        async with servers.serve("one") as one:
            agent = await one.env.settled()
            containers, gateway = await one.env.containers(), await one.env.gateway_pid(agent)
            await two.looks.look()
            assert not await two.has(agent)
            await one.env.services.reconciler.stop()
        assert await two.env.containers() == containers
        servers.end("one", seen=seen)
        await two.looks.look()
        await until(lambda: two.serves(agent))
        taken = await two.env.agents.get(agent.id)
        assert (await two.env.containers(), await two.env.gateway_pid(taken)) == (containers, gateway)


async def test_an_agent_without_a_container_is_started_by_the_server_that_takes_it(servers: Servers) -> None:
    async with servers.serve("two") as two:
        async with servers.serve("one") as one:
            agent = await one.env.settled()
        await servers.runtime.stop(agent.id, grace=0)
        servers.end("one")
        await two.looks.look()
        await until(lambda: two.serves(agent))


async def test_a_server_leaves_the_containers_of_others_alone(servers: Servers) -> None:
    async with servers.serve("one") as one:
        agent = await one.env.settled()
        containers = await one.env.containers()
        await servers.runtime.start(ContainerSpec("orphan"))
        async with servers.serve("two") as two:  # which ends the container of no agent
            assert await one.env.containers() == containers
            assert await two.env.runtimes.runtime.list() == []
            guard = DiskGuard(two.env.runtimes.runtime, 1, 0, None)
            await guard.measure_agents()
            for change in (two.env.runtimes.runtime.stop, two.env.runtimes.runtime.delete):
                with pytest.raises(AgentOnOtherHost):
                    await change(agent.id)
            with pytest.raises(AgentOnOtherHost):
                await two.env.runtimes.runtime.start(ContainerSpec(agent.id, delete_only=True))
            await two.env.services.reconciler.stop()
        assert await one.env.containers() == containers
        assert await one.serves(agent)


async def test_living_servers_share_the_agents_and_take_each_once(servers: Servers) -> None:
    takers = [await servers.register(name) for name in ("two", "three")]
    await servers.register("one")
    async with servers.serve("one", reconcile=False) as one:
        made = {(await one.env.create_row(name)).id for name in "abcdef"}
    servers.end("one")
    taken: list[list[str]] = [[], []]
    for looks, found in zip(takers, taken, strict=True):
        looks._on_taken = found.extend
    await asyncio.gather(*(looks.look() for looks in takers))
    assert sorted(map(len, taken)) == [2, 3]
    while len(taken[0] + taken[1]) < len(made):
        await asyncio.gather(*(looks.look() for looks in takers))
    assert sorted(taken[0] + taken[1]) == sorted(made)


async def test_agents_of_a_server_that_leaves_are_shared_once_their_relays_lead_to_others(servers: Servers) -> None:
    takers = [await servers.register(name) for name in ("two", "three")]
    async with servers.serve("one", reconcile=False) as one:
        made = {(await one.env.create_row(name)).id for name in "abcdefgh"}
        opened: list[set[str]] = []

        async def open_relays(agent_ids: Collection[str]) -> None:
            assert {agent.id for agent in await one.env.host_agents.list()} >= {*agent_ids} >= looks._passing
            opened.append({*agent_ids})

        assert await one.looks.has_takers()
        await servers.hosts["one"].mark_leaving()
        for looks in takers:
            looks._open_relays = open_relays
            for _ in range(2):
                await looks.look()
            assert not looks._passing
        assert {*map(len, opened)} != {0, len(made)}
        assert set[str]().union(*opened) == made
        assert await one.env.host_agents.list() == []
        assert servers.list_hosts() == ["two", "three", "one"]  # it still answers
        for name in ("two", "three"):
            await servers.hosts[name].mark_leaving()
        assert not await takers[0].has_takers()


async def test_servers_hear_of_one_that_leaves(servers: Servers, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(takeover, "_LOOK_SECONDS", 3600.0)
    async with servers.serve("two") as two, servers.serve("one") as one:
        agent = await one.env.settled()
        two.looks.start(two.env.services.reconciler.adopt_agents, two.env.services.reconciler.open_relays)
        await until(lambda: has_looked(two.looks))
        await one.env.services.reconciler.pause()
        await servers.hosts["one"].mark_leaving()
        await until(lambda: two.serves(agent))
        await two.looks.stop()
        assert one.env.relays.open_now == {agent.id}  # for the requests that it began


async def test_many_agents_of_a_server_that_leaves_are_taken_some_at_a_time(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(takeover, "_LOOK_SECONDS", 3600.0)
    monkeypatch.setattr(takeover, "TAKEN_AT_ONCE", 2)
    two, taken = await servers.register("two"), list[Collection[str]]()
    async with servers.serve("one", reconcile=False) as one:
        agents = {(await one.env.create_row(name)).id for name in "abcde"}
        await servers.hosts["one"].mark_leaving()
        two.start(taken.append, open_nothing)

        async def has_all() -> bool:
            return {agent_id for some in taken for agent_id in some} == agents

        await until(has_all)
        await two.stop()
        assert [len(some) for some in taken] == [2, 2, 1]


async def has_looked(looks: AgentTakeover) -> bool:
    return looks._looked_at is not None


async def test_agents_of_a_server_that_died_while_it_left_are_taken_like_those_of_others(servers: Servers) -> None:
    two = await servers.register("two")
    await servers.register("three")  # which takes nothing
    async with servers.serve("one", reconcile=False) as one:
        for name in "abc":
            await one.env.create_row(name)
        await servers.hosts["one"].mark_leaving()
        servers.end("one")
        for _ in range(3):
            await two.look()
        assert await one.env.host_agents.list() == []


async def test_agents_of_other_runtimes_stay_with_their_server(servers: Servers) -> None:
    two = await servers.register("two")
    async with servers.serve("one", reconcile=False) as one:
        agents = [await one.env.create_row(name) for name in "abc"]
    for agent, runtime in zip(agents, ("bwrap", "fake", None), strict=True):
        if runtime:
            servers.database.run(lambda c, agent=agent, runtime=runtime: set_agent_runtime(c, agent.id, runtime))
    servers.end("one", seen=False)
    for _ in range(2):
        await two.look()
    assert [agent.id for agent in await one.env.host_agents.list()] == [agents[0].id]
    assert servers.list_hosts() == ["two", "one"]


async def test_a_server_that_came_back_keeps_its_agents(servers: Servers) -> None:
    two = await servers.register("two")
    async with servers.serve("one", reconcile=False) as one:
        agent = await one.env.create_row()
        servers.end("one")
        await one.env.db.write(lambda c: store.set_seen(c, "one", "s", clock.utc_now()))
        assert servers.database.run(lambda c: two._take_share("one", c)) == ()
        servers.end("two")  # a server that is late itself takes nothing
        servers.end("one")
        assert servers.database.run(lambda c: two._take_share("one", c)) == ()
        assert await one.has(agent)


async def test_a_server_that_hung_or_had_no_database_waits_for_the_others(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = await servers.register("two")
    async with servers.serve("one", reconcile=False) as one:
        agent = await one.env.create_row()
        servers.end("one")
        monkeypatch.setattr(takeover, "_GRACE_SECONDS", 60.0)
        two._looked_at = clock.utc_now() - timedelta(seconds=2 * HEARTBEAT_SECONDS)
        await two.look()
        assert await one.has(agent)
        two._believes_at = clock.monotonic_seconds()
        await two.look()
        assert not await one.has(agent)


async def test_a_server_takes_nothing_when_its_own_clock_is_wrong(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    two = await servers.register("two")
    async with servers.serve("one", reconcile=False) as one:
        agent = await one.env.create_row()
    real = clock.utc_now
    monkeypatch.setattr(clock, "utc_now", lambda: real() + 2 * HOST_TIMEOUT)
    for name in ("two", "one"):  # "one" has the right time
        await servers.hosts[name]._heartbeat.run_once()
        monkeypatch.undo()
    monkeypatch.setattr(takeover, "_GRACE_SECONDS", 0.0)
    monkeypatch.setattr(clock, "utc_now", lambda: real() + 2 * HOST_TIMEOUT)
    await two.look()
    assert await one.has(agent)
    servers.end("one", seen=False)
    await two.look()
    assert not await one.has(agent)


async def test_a_server_that_began_or_whose_database_changed_its_clock_waits_for_the_others(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    two, taken = await servers.register("two"), list[str]()
    two._on_taken = taken.extend
    async with servers.serve("one", reconcile=False) as one:
        await one.env.create_row()
    servers.end("one")
    monkeypatch.undo()
    await two.look()
    assert two._believes_at > clock.monotonic_seconds() + HOST_TIMEOUT.total_seconds() / 2
    two._believes_at = 0.0
    for hours in (1, -1):
        assert two._looked_at is not None
        two._looked_at += timedelta(hours=hours)
        await two.look()
        assert two._believes_at > clock.monotonic_seconds()
    assert taken == []
    two._believes_at = 0.0
    await two.look()
    assert len(taken) == 1


async def test_a_server_that_returns_gives_its_agents_up(servers: Servers) -> None:
    """The old server hung: it knows of the agent when it goes on, and that it was to start it."""
    async with servers.serve("one") as one, servers.serve("two") as two:
        agent = await one.env.settled()
        containers = await one.env.containers()
        await one.env.services.reconciler._watch.stop()
        known = await one.env.host_agents.list()
        servers.end("one")
        await two.looks.look()
        await until(lambda: two.serves(agent))
        reconciler = one.env.services.reconciler
        await one.env.db.write(lambda c: reconciler._enqueue(c, model.START, known))
        await reconciler._set_state(known[0], AgentState.FAILED, "crashing")
        assert await two.serves(agent)
        await reconciler._check_all()
        assert one.env.relays.open_now == set()
        assert await two.serves(agent)
        assert await two.env.containers() == containers
        await servers.hosts["one"]._heartbeat.run_once()  # its identity is still its own
        assert not servers.hosts["one"]._is_lost
        assert await one.env.create("Bob")


async def test_an_operation_goes_on_at_the_server_that_takes_its_agent(servers: Servers) -> None:
    async with servers.serve("two") as two:
        async with servers.serve("one") as one:
            one.env.engine.becomes_ready = False
            creating = asyncio.create_task(one.env.create())
            await until(one.env.containers)
            (agent,) = await one.env.host_agents.list()
            one.env.queue._extend_task._interval = 3600.0  # the server hangs
            servers.end("one")
            await two.looks.look()
            await until(lambda: two.serves(agent))
            assert (await creating).id == agent.id
            one.env.engine.becomes_ready = True
        await until(lambda: two.serves(agent))


async def test_an_operation_of_the_old_server_is_passed_on(servers: Servers) -> None:
    async with servers.serve("one") as one, servers.serve("two") as two:
        agent = await one.env.settled()
        servers.end("one")
        await two.looks.look()
        await until(lambda: two.serves(agent))
        # A request at the old server that had read the agent before.
        late = [await one.env.db.write(lambda c: work.add_operation(c, model.START, agent.id, host="one"))]
        await one.env.queue.wait(late[0].id, DEADLINE)
        assert (await one.env.queue.wait(late[0].id, DEADLINE)).state is OperationState.DONE
        await until(lambda: two.serves(agent))
        # One that nobody would claim.
        await one.env.queue.stop(grace=0)
        late.append(await one.env.db.write(lambda c: work.add_operation(c, model.START, agent.id, host="one")))
        await two.looks.look()
        assert (await two.env.queue.wait(late[1].id, DEADLINE)).state is OperationState.DONE


async def test_a_deletion_goes_on_at_the_server_that_takes_the_agent(servers: Servers) -> None:
    async with servers.serve("two") as two:
        async with servers.serve("one") as one:
            agent = await one.env.settled()
        await servers.database.write(lambda c: two.env.agents.mark_deleted(c, agent.id))
        servers.end("one")
        await two.looks.look()

        async def is_gone() -> bool:
            return not await servers.runtime.list_stored() and not await two.has(agent)

        await until(is_gone)
        assert await two.env.containers() == {}


async def test_a_container_in_which_nothing_can_be_written_stays_so(
    servers: Servers, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with servers.serve("two") as two:
        async with servers.serve("one") as one:
            agent = await one.env.settled()
        await servers.runtime.start(ContainerSpec(agent.id, delete_only=True))
        servers.end("one")
        await two.looks.look()
        monkeypatch.delattr(AgentContainers, "list")  # a start looks at no other agents
        guard = DiskGuard(two.env.runtimes.runtime, 1, 0, None)
        assert "more than its limit" in (await guard.find_excess(agent.id) or "")


@pytest.mark.parametrize("seen", [True, False], ids=["dead", "stopped"])
async def test_a_server_without_agents_is_forgotten(servers: Servers, seen: bool) -> None:
    two, _ = await servers.register("two"), await servers.register("one")
    servers.end("one", seen=seen)
    await two.look()
    assert servers.list_hosts() == ["two"] + ["one"] * seen  # one without a heartbeat may only hang
    long_ago = clock.utc_now() - takeover._RETENTION - timedelta(minutes=1)
    servers.database.run(lambda c: store.set_seen(c, "one", "s", long_ago))
    await two.look()
    assert servers.list_hosts() == ["two"]


async def test_servers_with_runtimes_of_their_own_take_and_lose_nothing(servers: Servers) -> None:
    two = await servers.register("two")
    own = HostService(servers.database, HostIdentity("own", "own", "/own", "s"), lambda: None)
    await own.start()
    await own.stop()
    await two.look()
    assert servers.list_hosts() == ["two", "own"]
    without = AgentTakeover(servers.database, "own", None)
    without.start(lambda _: None, open_nothing)
    assert without._task._task is None


async def test_agents_of_a_shared_runtime_move_to_no_other_server(servers: Servers) -> None:
    async with servers.serve("one") as one, servers.serve("two"):
        agent = await one.env.settled()
        with pytest.raises(UnknownRuntime) as unknown:
            await one.env.start.move(agent.id, "two")
        assert unknown.value.detail == "to must be one of fake, got 'two'"


async def test_the_repository_of_an_agent_begins_again_at_the_server_that_takes_it(servers: Servers) -> None:
    (servers.folder / "blobs").mkdir()
    for name in ("one", "two"):  # one bucket
        (servers.folder / name).mkdir()
        (servers.folder / name / "blobs").symlink_to(servers.folder / "blobs")
    async with servers.serve("two") as two:
        async with servers.serve("one") as one:
            agent = await one.env.settled()
            await one.env.warden(agent.id).write("kept.txt", b"kept")
            await one.env.snapshots.commit_changes(agent.id)
            assert await one.env.git.head(agent.id)
        servers.end("one")
        await two.looks.look()
        await until(lambda: two.serves(agent))
        await two.env.snapshots.commit_changes(agent.id)
        assert await two.env.git.head(agent.id)
