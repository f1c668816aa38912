"""Move to another runtime, and back when it does not work, also when the server dies at any step."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from roost import work
from roost.agents.lifecycle.workflows import move
from roost.agents.lifecycle.workflows.model import MOVE, MoveResult, UnknownRuntime
from roost.agents.registry.agent_containers import AgentContainers
from roost.agents.registry.errors import AgentNotFound, AgentNotRunning
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import HostAgents
from roost.core.db import Database
from roost.drivers.runtime.contract import Container, ContainerSpec, Runtime, RuntimeFailed
from roost.drivers.runtime.fake import FakeRuntime
from roost.warden_client.client import ExecResult, WardenClient
from roost.warden_client.errors import ContainerNotRunning, WardenDisconnected
from roost.work import OperationState
from tests.agents.lifecycle.workflows.lifecycle_env import LifecycleEnv, open_lifecycle_env, until

MEMORY = ".roost/fake/memory"
CALLS = 11
"""Starts, stops and deletions of containers in one move; the last one is a margin."""


class Crash:
    """Death of a server's process: from the call of a runtime with that number on, none has an effect."""

    def __init__(self, at: int | None = None) -> None:
        self.at = at
        self.count = 0
        self.is_dead = asyncio.Event()

    def record_call(self) -> None:
        if self.at is not None and self.count >= self.at:
            self.is_dead.set()
            raise asyncio.CancelledError  # neither an error that is handled, nor the end of the operation
        self.count += 1


class MortalRuntime(FakeRuntime):
    def __init__(self, folder: Path, crash: Crash) -> None:
        super().__init__(folder)
        self.crash = crash
        self.fails = self.keeps = self.is_silent = self.has_served = False
        self.refusals = 0

    async def start(self, spec: ContainerSpec) -> Container:
        self.crash.record_call()
        if self.fails and spec.relays:
            raise RuntimeFailed("no more containers")
        self.has_served |= bool(spec.relays)
        return await super().start(spec)

    async def list(self) -> Sequence[Container]:
        if self.is_silent:
            raise RuntimeFailed("no answer")
        return await super().list()

    async def stop(self, agent_id: str, grace: float = 5.0) -> None:
        self.crash.record_call()
        await super().stop(agent_id, grace)

    async def delete(self, agent_id: str) -> None:
        self.crash.record_call()
        if self.keeps and self.has_served:
            self.refusals += 1
            raise RuntimeFailed("no answer")
        await FakeRuntime(self._paths.folder).delete(agent_id)


class OtherRuntime(MortalRuntime):
    name: ClassVar[str] = "other"


class TwoRuntimes:
    """Folders of two runtimes, for the servers of a test, one after the other."""

    def __init__(self, database: Database, folder: Path) -> None:
        self.database = database
        self.folder = folder
        self.crash = Crash()

    @asynccontextmanager
    async def serve(self, **options: Any) -> AsyncIterator[LifecycleEnv]:
        """Run a server with new drivers; those of the last one have no effect any more."""
        self.crash = Crash()
        self.first = MortalRuntime(self.folder, self.crash)
        self.other = OtherRuntime(self.folder / "other", self.crash)
        containers = AgentContainers([self.first, self.other])
        await HostAgents(self.database, "host").assign_runtimes(containers.assignments)
        async with open_lifecycle_env(self.database, self.folder, runtime=containers, **options) as env:
            yield env

    async def list_gateways(self, agent: Agent) -> list[str]:
        """Return the names of the runtimes in which the agent's gateway runs."""
        return [runtime.name for runtime in (self.first, self.other) if await has_gateway(runtime, agent)]


@pytest.fixture
async def two(database: Database, folder: Path) -> AsyncIterator[TwoRuntimes]:
    yield TwoRuntimes(database, folder)
    other = FakeRuntime(folder / "other")
    for agent_id in await other.list_stored():
        await other.delete(agent_id)


async def has_gateway(runtime: Runtime, agent: Agent) -> bool:
    if all(container.agent_id != agent.id for container in await runtime.list()):
        return False
    try:
        return "gateway" in await WardenClient(lambda: runtime.connect(agent.id)).processes()
    except ContainerNotRunning:  # it has ended since it was listed
        return False


async def fill(env: LifecycleEnv, agent: Agent) -> str:
    """Write files of each kind that a move keeps, and list them."""
    script = (
        "mkdir -p sub/deep empty && echo one > sub/deep/one.txt && head -c 1000000 /dev/urandom > large"
        " && ln -s sub/deep/one.txt link && ln -s /nowhere broken && printf run > run.sh && chmod 750 run.sh"
        " && mkfifo pipe && chmod 500 sub/deep && echo 'value of GIVEN' > .env"
        ' && mkdir -p "$HOME/.cache" && echo kept > "$HOME/.cache/thing"'
    )
    result = await env.warden(agent.id).exec(["sh", "-c", script])
    assert result.exit_code == 0, result.stderr
    await env.warden(agent.id).write(MEMORY, b"remembered", root="home")
    return await list_files(env, agent)


async def list_files(env: LifecycleEnv, agent: Agent) -> str:
    """Return names, modes, targets and contents of the workspace, and contents of the home."""
    script = (
        "find . -name pipe -prune -o -printf '%p %y %m %l\\n' | sort; cat .env large sub/deep/one.txt | sha256sum;"
        ' cat "$HOME/.cache/thing" "$HOME/.roost/fake/memory"'
    )
    return (await env.warden(agent.id).exec(["sh", "-c", script])).stdout.decode()


async def test_an_agent_moves_with_all_its_files_and_back(two: TwoRuntimes) -> None:
    async with two.serve() as env:
        agent = await env.settled()
        token = (await env.gateways.read(agent.id)).reveal()
        before = await fill(env, agent)
        assert "value" not in before
        assert before.endswith("kept\nremembered")
        assert await env.start.move(agent.id, "other") == MoveResult(True, "other", "Moved from fake to other")
        assert await two.list_gateways(agent) == ["other"]
        assert await list_files(env, agent) == before
        after = await env.agents.get(agent.id)
        assert (after.state, after.runtime) == (AgentState.RUNNING, "other")
        assert (await env.gateways.read(agent.id)).reveal() == token
        assert list(await two.first.list_stored()) == []
        assert env.relays.open_now == {agent.id}
        await env.services.restart(agent.id)
        assert await two.list_gateways(agent) == ["other"]
        assert (await env.start.move(agent.id, "fake")).success
        assert await two.list_gateways(agent) == ["fake"]
        assert await list_files(env, agent) == before
        assert list(await two.other.list_stored()) == []


async def test_an_agent_that_writes_meanwhile_loses_nothing(two: TwoRuntimes) -> None:
    """A program writes to files of all ages, through a mapping too, until the move stops it."""
    program = (
        "import mmap, os, time\n"
        "m = mmap.mmap(os.open('mapped', os.O_RDWR | os.O_CREAT), 0) if os.path.getsize('mapped') else None\n"
        "n = 0\n"
        "while True:\n"
        "    n += 1\n"
        "    m[0:8] = b'%08d' % n\n"
        "    open('counter.new', 'w').write(str(n)); os.replace('counter.new', 'counter')\n"
        "    open(f'f{n % 50}', 'w').write('x' * (n % 7000))\n"
    )
    async with two.serve() as env:
        agent = await env.settled()
        warden = env.warden(agent.id)
        await warden.write("mapped", b"0" * 4096)
        await warden.write("counter", b"0")
        await warden.write("writer.py", program.encode())
        writing = asyncio.create_task(warden.exec(["python3", "writer.py"], timeout=60.0))
        await until(lambda: _counts(warden))
        assert (await env.start.move(agent.id, "other")).success
        (end,) = await asyncio.gather(writing, return_exceptions=True)
        assert isinstance(end, WardenDisconnected | ExecResult)  # the move ended it
        mapped = await env.warden(agent.id).read("mapped", limit=4096)
        counter = await env.warden(agent.id).read("counter", limit=100)
        assert int(mapped[:8]) - int(counter) in {0, 1}
        assert int(counter) > 0


async def _counts(warden: WardenClient) -> bool:
    return int(await warden.read("counter", limit=100) or b"0") > 5


async def test_a_runtime_that_does_not_start_the_agent_gives_it_back(two: TwoRuntimes) -> None:
    async with two.serve() as env:
        agent = await env.settled()
        before = await fill(env, agent)
        two.other.fails = True
        result = await env.start.move(agent.id, "other")
        assert (result.success, result.runtime) == (False, "fake")
        assert "no more containers" in result.output
        assert await two.list_gateways(agent) == ["fake"]
        assert await list_files(env, agent) == before
        after = await env.agents.get(agent.id)
        assert (after.state, after.runtime) == (AgentState.RUNNING, "fake")
        assert list(await two.other.list_stored()) == []


async def test_a_file_that_cannot_be_read_stops_the_move(two: TwoRuntimes) -> None:
    async with two.serve() as env:
        agent = await env.settled()
        await env.warden(agent.id).exec(["sh", "-c", "mkdir closed && touch closed/a && chmod 0 closed"])
        result = await env.start.move(agent.id, "other")
        if (await env.warden(agent.id).exec(["id", "-u"])).stdout.strip() == b"0":
            pytest.skip("the superuser can read all files")
        assert (result.success, result.runtime) == (False, "fake")
        assert "'closed' cannot be read" in result.output
        assert await two.list_gateways(agent) == ["fake"]


@pytest.mark.parametrize("fails", [False, True], ids=["to-the-new-one", "back-to-the-old-one"])
@pytest.mark.parametrize("at", range(CALLS))
async def test_the_next_server_finishes_a_move_that_died(two: TwoRuntimes, at: int, fails: bool) -> None:
    """The server dies at each call of a runtime; the next one moves the agent, or gives it back, whole."""
    async with two.serve(lease=0.3) as first:
        agent = await first.settled()
        before = await fill(first, agent)
        two.other.fails = fails
        two.crash.at = two.crash.count + at
        moving = asyncio.create_task(first.start.move(agent.id, "other"))
        await asyncio.wait([moving, asyncio.create_task(two.crash.is_dead.wait())], return_when="FIRST_COMPLETED")
        await first.queue.stop(grace=0)
        assert len(await two.list_gateways(agent)) <= 1
        async with two.serve(reconcile=True) as second:
            two.other.fails = fails
            await until(lambda: _is_settled(second, agent))
            wanted = "fake" if fails else "other"
            assert await two.list_gateways(agent) == [wanted]
            after = await second.agents.get(agent.id)
            assert (after.state, after.runtime) == (AgentState.RUNNING, wanted)
            assert await list_files(second, agent) == before
            unused = two.other if fails else two.first
            assert list(await unused.list_stored()) == []
        moving.cancel()


async def test_nothing_starts_an_agent_while_the_other_runtime_may_run_it(
    two: TwoRuntimes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(move, "_PAUSE", timedelta(milliseconds=20))
    async with two.serve(reconcile=True) as env:
        agent = await env.settled()
        env.engine.becomes_ready, two.other.keeps = False, True
        moving = asyncio.create_task(env.start.move(agent.id, "other"))
        await until(lambda: _has_reason(env, agent, "has not removed its copy yet"))
        env.engine.becomes_ready = True
        restarting = asyncio.create_task(env.services.restart(agent.id))
        await until(lambda: _has_refused(two.other, 15))
        assert "fake" not in await two.list_gateways(agent)
        two.other.keeps = False
        assert not (await moving).success
        await restarting
        assert await two.list_gateways(agent) == ["fake"]
        assert list(await two.other.list_stored()) == []


async def _has_reason(env: LifecycleEnv, agent: Agent, reason: str) -> bool:
    return reason in ((await env.agents.get(agent.id)).reason or "")


async def _has_refused(runtime: MortalRuntime, count: int) -> bool:
    return runtime.refusals >= count


async def test_a_silent_runtime_holds_up_its_own_agents_only(two: TwoRuntimes) -> None:
    async with two.serve(reconcile=True) as first:
        stays, moves = await first.settled(), await first.create("Bob")
        await first.quiet(moves)
        assert (await first.start.move(moves.id, "other")).success
        await first.quiet(moves)
    async with two.serve() as second:
        two.other.is_silent = True
        await second.services.reconciler.start()
        container = await second.containers()
        assert list(container) == [stays.id]
        await two.first.stop(stays.id)
        await until(lambda: _is_back(second, stays, container[stays.id]))
        assert (await second.agents.get(moves.id)).state is AgentState.RUNNING
        assert moves.id not in second.relays.open_now
        two.other.is_silent = False
        await until(lambda: _has_relays(second, moves))
        assert await two.list_gateways(moves) == ["other"]


async def _is_back(env: LifecycleEnv, agent: Agent, earlier: int | None) -> bool:
    return (await env.containers()).get(agent.id, earlier) != earlier and await _is_settled(env, agent)


async def _has_relays(env: LifecycleEnv, agent: Agent) -> bool:
    return agent.id in env.relays.open_now and await _is_settled(env, agent)


async def _is_settled(env: LifecycleEnv, agent: Agent) -> bool:
    is_busy = await env.db.read(lambda connection: work.is_subject_busy(connection, agent.id))
    return not is_busy and (await env.agents.get(agent.id)).state is AgentState.RUNNING


async def test_an_agent_that_is_deleted_meanwhile_leaves_nothing(two: TwoRuntimes) -> None:
    async with two.serve() as env:
        agent = await env.settled()
        env.engine.becomes_ready = False
        moving = asyncio.create_task(env.start.move(agent.id, "other"))
        await until(lambda: has_gateway(two.other, agent))
        await env.services.delete.delete(agent.id)
        with pytest.raises(AgentNotFound):
            await moving
        assert [*await two.first.list_stored(), *await two.other.list_stored()] == []


async def test_moves_that_make_no_sense_are_rejected(two: TwoRuntimes) -> None:
    async with two.serve() as env:
        agent = await env.settled()
        with pytest.raises(UnknownRuntime) as unknown:
            await env.start.move(agent.id, "docker")
        assert unknown.value.detail == "to must be one of fake, other, got 'docker'"
        gateway = await env.gateway_pid(agent)
        assert (await env.start.move(agent.id, "fake")).success
        assert await env.gateway_pid(agent) == gateway
        with pytest.raises(AgentNotFound):
            await env.start.move("nobody", "other")
        assert (await env.run(MOVE, "nobody", {"to": "other"})).state is OperationState.DONE
        await env.db.write(lambda c: env.agents.set_state(c, agent.id, AgentState.FAILED, "broken"))
        with pytest.raises(AgentNotRunning):
            await env.start.move(agent.id, "other")
