"""Reconcile the stored agents with the running containers, at start and ever after.

At the server's start, containers that outlived the last server are adopted, agents without one are started, remains
of deleted agents are removed, and containers of no agent are ended (their files stay). Afterwards the reconciler
looks every few seconds for lost containers and for gateways that keep crashing. A clean stop of the server ends all
containers; the next start brings them back. Trouble with one agent never affects the others.
"""

import asyncio

from sqlalchemy import Connection

from roost import work
from roost.agents.lifecycle import model
from roost.agents.lifecycle.gateway import PROCESS, GatewayStarter
from roost.agents.lifecycle.model import AgentRelays
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import AgentRepository
from roost.core import log
from roost.core.db import Database
from roost.core.periodic import PeriodicTask
from roost.core.problem import Problem
from roost.drivers.runtime.contract import Runtime
from roost.work import OperationWorker

_log = log.get_logger("reconcile")
_CRASHES = 3
_AT_ONCE = 16


class AgentReconciler:
    """`every` is the time between two looks, in seconds."""

    def __init__(
        self,
        db: Database,
        queue: OperationWorker,
        roster: AgentRepository,
        reach: AgentRuntimes,
        runtime: Runtime,
        relays: AgentRelays,
        gateways: GatewayStarter,
        every: float = 5.0,
    ) -> None:
        self._db = db
        self._queue = queue
        self._roster = roster
        self._reach = reach
        self._runtime = runtime
        self._relays = relays
        self._gateways = gateways
        self._every = every
        self._watch = PeriodicTask("reconcile", self._look, every)
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def start(self) -> None:
        """Adopt or start every agent; then keep watch."""
        containers = {container.agent_id for container in await self._runtime.list()}
        agents = await self._roster.list_all()
        for stray in containers - {agent.id for agent in agents}:
            _log.warning("container.orphan_stopped", agent=stray)
            await self._runtime.stop(stray)
        await asyncio.gather(*(self._take_up(agent, agent.id in containers) for agent in agents))
        self._watch.start(delay=self._every)

    async def stop(self) -> None:
        """End all containers, cleanly; the agents are started again when the server is."""
        await self._watch.stop()
        await asyncio.gather(*(self._rest(agent) for agent in await self._roster.list_all()))

    async def _take_up(self, agent: Agent, has_container: bool) -> None:
        async with self._turns:
            if agent.deleted:
                await self._enqueue(agent, model.DELETE)
            elif has_container and await self._answers_again(agent):
                await self._db.write(lambda connection: self._adopt(connection, agent))
                _log.info("agent.adopted", agent=agent.id)
            else:
                await self._enqueue(agent, model.START)

    async def _answers_again(self, agent: Agent) -> bool:
        """Give the container the sockets that the last server took with it, and ask its gateway."""
        try:
            await self._relays.open(agent.id)
        except (Problem, OSError) as error:
            _log.warning("relay.open_failed", agent=agent.id, reason=str(error))
            return False
        return await self._gateways.is_up(agent)

    def _adopt(self, connection: Connection, agent: Agent) -> None:
        if not work.is_subject_busy(connection, agent.id):  # else it is being started anew, and that is finished first
            self._roster.set_state(connection, agent.id, AgentState.RUNNING)

    async def _rest(self, agent: Agent) -> None:
        async with self._turns:
            try:
                await self._runtime.stop(agent.id)
            except Problem as problem:
                _log.error("container.stop_failed", agent=agent.id, reason=problem.message)
                return
            await self._relays.close(agent.id)
            await self._move(agent, AgentState.NOT_RUNNING)

    async def _look(self) -> None:
        settled = [
            agent
            for agent in await self._roster.list_all()
            if not agent.deleted and agent.state in (AgentState.RUNNING, AgentState.FAILED)
        ]
        # Asked afterwards: the container of an agent that ran a moment ago is missing here only if it is gone.
        containers = {container.agent_id for container in await self._runtime.list()}
        await asyncio.gather(*(self._examine(agent, agent.id in containers) for agent in settled))

    async def _examine(self, agent: Agent, has_container: bool) -> None:
        async with self._turns:
            if not has_container:
                if agent.state is AgentState.RUNNING:
                    _log.warning("container.lost", agent=agent.id)
                    await self._enqueue(agent, model.START)
                return
            try:
                process = (await self._reach.get_warden(agent.id).processes()).get(PROCESS)
            except Problem:
                return
            crashing = process is not None and process.restarts >= _CRASHES and process.state != "running"
            if agent.state is AgentState.RUNNING and crashing:
                await self._move(agent, AgentState.FAILED, "The gateway keeps crashing; see its logs")
            elif agent.state is AgentState.FAILED and not crashing and await self._gateways.is_up(agent):
                await self._move(agent, AgentState.RUNNING)

    async def _enqueue(self, agent: Agent, kind: str) -> None:
        """Have an agent started or deleted, unless something is being done about it already."""

        def enqueue(connection: Connection) -> None:
            if kind == model.START:
                self._roster.set_state(connection, agent.id, AgentState.STARTING)
            if not work.is_subject_busy(connection, agent.id):
                work.add_operation(connection, kind, agent.id)

        await self._db.write(enqueue)
        self._queue.wake()

    async def _move(self, agent: Agent, to: AgentState, reason: str | None = None) -> None:
        await self._db.write(lambda connection: self._roster.set_state(connection, agent.id, to, reason))
