"""Reconcile the stored agents of this host with its running containers, at the server's start and every few seconds.

The start adopts containers that outlived the last server, starts agents without one, removes the remains of deleted
agents, and stops containers of no agent (their files stay). It asks no container for anything, because those of a busy
machine answer late: what the last server recorded is true until a later run finds otherwise. Later runs look into
adopted containers once, for lost containers, for gateways that keep crashing, and for agents that got what they waited
for. A clean stop of the server stops all containers, and the next
start brings them back; or it keeps them, and the next start adopts them. A failure of one agent never affects others,
and nothing is done to the agents of a runtime that does not answer, until it does.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from roost import work
from roost.agents.lifecycle.workflows import model
from roost.agents.lifecycle.workflows.gateway import GatewayStarter
from roost.agents.lifecycle.workflows.model import AgentRelays
from roost.agents.registry.agent_containers import ContainerSurvey
from roost.agents.registry.agent_runtimes import GATEWAY_PROCESS, AgentRuntimes
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import HostAgents
from roost.agents.workspace.snapshots.model import RESTORE
from roost.core import log
from roost.core.db import Database
from roost.core.periodic import PeriodicTask
from roost.core.problem import Problem
from roost.warden_client.client import ProcessStatus

_log = log.get_logger("reconcile")
_STARTS = (model.START, model.MOVE, RESTORE)
"""Operations that start an agent or enqueue that. Others need a container only while they run, like a snapshot."""
_CRASH_LIMIT = 3
FindStartable = Callable[[Sequence[Agent]], Awaitable[Collection[str]]]
"""Returns the ids of those agents that waited for something and can start now."""
_CONCURRENCY = 16


@dataclass
class AgentReconciler:
    """`_interval` is in seconds."""

    _db: Database
    _host_agents: HostAgents
    _runtimes: AgentRuntimes
    _relays: AgentRelays
    _starter: GatewayStarter
    _find_startable: FindStartable
    _interval: float = 5.0

    def __post_init__(self) -> None:
        self._runtime = self._runtimes.runtime
        self._watch = PeriodicTask("reconcile", self._check_all, self._interval)
        self._slots = asyncio.Semaphore(_CONCURRENCY)
        self._unverified: set[str] = set()
        self._unanswered: set[str] = set()
        self._taken: set[str] = set()
        self._keeps_containers = False

    async def start(self) -> None:
        """Adopt or start every agent of this host; then begin the periodic checks, the first one at once."""
        # A SQLite database has a single server. On PostgreSQL an agent belongs to the server that has its files.
        await self._host_agents.adopt_unassigned(None if self._db.is_sqlite else await self._runtime.list_stored())
        survey = await self._runtime.assignments.survey()
        containers = {container.agent_id for container in survey.containers}
        agents = await self._host_agents.list()
        self._unanswered = self._find_unanswered(agents, survey)
        for orphan in containers - {agent.id for agent in agents}:
            _log.warning("container.orphan_stopped", agent=orphan)
            await self._runtime.stop(orphan)
        await self._adopt(agents, containers)
        self._watch.start()

    def wake(self) -> None:
        """Check soon, without the pause."""
        self._watch.wake()

    async def open_relays(self, agent_ids: Collection[str]) -> None:
        """Open the relays of agents of another server that are about to be this one's."""
        containers = {container.agent_id for container in await self._runtime.assignments.default.list()}
        await asyncio.gather(*map(self._open_relays, containers & {*agent_ids}))

    def adopt_agents(self, agent_ids: Collection[str]) -> None:
        """Adopt or start agents that were another server's until now."""
        self._taken.update(agent_ids)
        self._watch.wake()

    def keep_containers(self) -> None:
        """Let `stop` leave the containers to the next server."""
        self._keeps_containers = True

    async def pause(self) -> None:
        """Stop the checks, and leave everything as it is."""
        await self._watch.stop()

    async def stop(self) -> None:
        """Stop the checks, and all containers unless they are kept; the state of agents that run stays.

        Those of shared runtimes go on, for other servers.
        """
        await self._watch.stop()
        if self._keeps_containers:
            return
        survey, is_shared = await self._runtime.assignments.survey(), self._runtime.assignments.is_shared
        running = [one.agent_id for one in survey.containers if not is_shared(one.agent_id)]
        ended = await asyncio.gather(*map(self._shut_down, running))
        kept = {agent_id for agent_id, has_ended in zip(running, ended, strict=True) if not has_ended}
        agents = await self._host_agents.list()
        kept |= self._find_unanswered(agents, survey)
        stopped = [agent.id for agent in agents if agent.id not in kept and not is_shared(agent.id)]
        await self._db.write(
            lambda connection: self._host_agents.set_states(connection, stopped, AgentState.NOT_RUNNING)
        )

    async def _adopt(self, agents: Sequence[Agent], containers: Collection[str]) -> None:
        """Open the relays of the agents that have a container; start or delete the others."""
        present = [agent for agent in agents if agent.id in containers and not agent.deleted]
        opened = await asyncio.gather(*(self._open_relays(agent.id) for agent in present))
        adopted = {agent.id for agent, is_open in zip(present, opened, strict=True) if is_open}
        # One transaction, because each waits for the disk.
        await self._db.write(lambda connection: self._start_others(connection, agents, adopted))
        for agent_id in adopted:
            _log.info("agent.adopted", agent=agent_id)
        self._unverified |= adopted

    def _start_others(self, connection: Connection, agents: Sequence[Agent], adopted: set[str]) -> None:
        others = [agent for agent in agents if agent.id not in adopted]
        for agent in others:
            work.hasten_operations(connection, agent.id)
        self._enqueue(connection, model.DELETE, [agent for agent in others if agent.deleted])
        startable = [agent for agent in others if not agent.deleted and agent.id not in self._unanswered]
        self._enqueue(connection, model.START, startable)

    def _find_unanswered(self, agents: Sequence[Agent], survey: ContainerSurvey) -> set[str]:
        """Return the ids of agents whose runtime did not answer."""
        return {agent.id for agent in agents if self._runtime.assignments.get_name(agent.id) in survey.silent}

    async def _open_relays(self, agent_id: str) -> bool:
        """Open the relays again, which the last server took with it; return whether that succeeded."""
        try:
            await self._relays.open(agent_id)
        except (Problem, OSError) as error:
            _log.warning("relay.open_failed", agent=agent_id, reason=str(error))
            return False
        return True

    async def _shut_down(self, agent_id: str) -> bool:
        """Stop a container and return whether it has ended."""
        async with self._slots:
            try:
                await self._runtime.stop(agent_id)
            except Problem as problem:
                _log.error("container.stop_failed", agent=agent_id, reason=problem.message)
                return False
            await self._relays.close(agent_id)
            return True

    async def _check_all(self) -> None:
        # All of these agents were this server's at that time.
        open_before = {*self._relays.list_open()} - self._runtime.assignments.arriving
        every = await self._host_agents.list()
        agents = [agent for agent in every if not agent.deleted]
        # Listed after the agents: the container of a running agent is missing only if it is gone.
        survey = await self._runtime.assignments.survey()
        containers = {container.agent_id for container in survey.containers}
        unanswered = self._find_unanswered(agents, survey)
        if self._runtime.is_shared:
            await self._release(open_before - {agent.id for agent in every})
            # Also those of a takeover whose commit was not confirmed.
            closed = [agent for agent in agents if agent.state is AgentState.RUNNING and agent.id not in open_before]
            self._taken.update(agent.id for agent in closed if agent.id in containers)
        if taken := [agent for agent in every if agent.id in self._taken]:
            self._unanswered |= unanswered & self._taken
            await self._adopt(taken, containers)
            self._taken.difference_update(agent.id for agent in taken)
        if back := self._unanswered - unanswered:
            await self._start_answered([agent for agent in agents if agent.id in back])
        agents = [
            agent
            for agent in agents
            if agent.id not in unanswered | back
            and (agent.state is not AgentState.STARTING or agent.id in self._unverified)
        ]
        await run_concurrently(self._check_agent(agent, agent.id in containers) for agent in agents)
        idle = [agent for agent in agents if agent.state is AgentState.NOT_RUNNING]
        if startable := await self._find_startable(idle) if idle else ():
            complete = [agent for agent in idle if agent.id in startable]
            await self._db.write(lambda connection: self._enqueue(connection, model.START, complete))

    async def _release(self, agent_ids: Collection[str]) -> None:
        """Close the relays of agents that are another server's now."""
        for agent_id in agent_ids:
            _log.info("agent.released", agent=agent_id)
            await self._relays.close(agent_id)

    async def _start_answered(self, agents: Sequence[Agent]) -> None:
        """Start or adopt agents whose runtime did not answer when the server started."""
        await self._db.write(lambda connection: self._enqueue(connection, model.START, agents))
        self._unanswered -= {agent.id for agent in agents}

    async def _check_agent(self, agent: Agent, has_container: bool) -> None:
        if not has_container:
            if agent.state is AgentState.RUNNING:
                _log.warning("container.lost", agent=agent.id)
                await self._db.write(lambda connection: self._enqueue(connection, model.START, [agent]))
            return
        try:
            process = (await self._runtimes.get_warden(agent.id).processes()).get(GATEWAY_PROCESS)
        except Problem:
            return  # it may be too busy to answer
        if agent.id in self._unverified:
            await self._verify(agent, process)
            return
        crashing = process is not None and process.restarts >= _CRASH_LIMIT and process.state != "running"
        if agent.state is AgentState.RUNNING and crashing:
            await self._set_state(agent, AgentState.FAILED, "The gateway keeps crashing; see its logs")
        elif agent.state is not AgentState.RUNNING and not crashing and await self._starter.is_up(agent):
            await self._set_state(agent, AgentState.RUNNING)

    async def _verify(self, agent: Agent, process: ProcessStatus | None) -> None:
        """Start the gateway of an adopted container unless it runs; one that was not recorded as running must answer.

        Operations that the last server left unfinished decide by themselves.
        """
        is_running = process is not None and process.state != "exited"
        if agent.state is not AgentState.RUNNING:
            is_running = is_running and await self._starter.is_up(agent)

        def settle(connection: Connection) -> None:
            busy = work.list_busy_subjects(connection, [agent.id], (*_STARTS, model.UPDATE, model.DELETE))
            if busy or not self._host_agents.lock_own(connection, [agent.id]):
                return
            if not is_running:
                self._enqueue(connection, model.START, [agent])
            elif agent.state is not AgentState.RUNNING:
                self._host_agents.set_states(connection, [agent.id], AgentState.RUNNING)

        await self._db.write(settle)
        self._unverified.discard(agent.id)

    def _enqueue(self, connection: Connection, kind: str, agents: Sequence[Agent]) -> None:
        """Enqueue a start or delete of each agent that waits for none, unless another server has taken it over."""
        ids = self._host_agents.lock_own(connection, [agent.id for agent in agents])
        if kind == model.START:
            self._host_agents.set_states(connection, ids, AgentState.STARTING)
        busy = work.list_busy_subjects(connection, ids, _STARTS if kind == model.START else (model.DELETE,))
        for agent in agents:
            if agent.id in ids and agent.id not in busy:
                work.add_operation(connection, kind, agent.id, host=agent.host_id)

    async def _set_state(self, agent: Agent, to: AgentState, reason: str | None = None) -> None:
        def write(connection: Connection) -> None:
            if self._host_agents.lock_own(connection, [agent.id]):
                self._runtimes.agents.set_state(connection, agent.id, to, reason)

        await self._db.write(write)


async def run_concurrently(actions: Iterable[Awaitable[None]]) -> None:
    """Run all actions, `_CONCURRENCY` at a time, and then raise the first error of one."""
    waiting, errors = iter(actions), list[Exception]()

    async def run_next() -> None:  # not a task for each of maybe 10,000 agents, all but 16 of which would wait
        for action in waiting:
            try:
                await action
            except Exception as error:  # noqa: BLE001 - raised below
                errors.append(error)

    await asyncio.gather(*(run_next() for _ in range(_CONCURRENCY)))
    if errors:
        raise errors[0]
