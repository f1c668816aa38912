"""The reconciler: what the roster says and what really runs are made to agree, at start and ever after.

At the server's start every box that outlived the last server is adopted as it is; agents without one are started; boxes
that belong to no agent are ended (their files stay). Afterwards it looks every few seconds for lost boxes and for
gateways that crash again and again. A clean stop of the server ends all boxes and starts them again next time.
"""

import asyncio
import contextlib

from sqlalchemy import Connection

from roost import work
from roost.agents.lifecycle import model
from roost.agents.lifecycle.gateway import PROCESS, GatewayStarter
from roost.agents.lifecycle.model import Relays
from roost.agents.roster.model import Agent, AgentState
from roost.agents.roster.reach import Reach
from roost.agents.roster.service import Roster
from roost.core import log
from roost.core.db import Database
from roost.core.problem import Problem
from roost.drivers.runtime.contract import Runtime
from roost.work import Work

_log = log.get("reconcile")
_CRASHES = 3
_AT_ONCE = 16


class Reconciler:
    """`every` is the time between two looks, in seconds."""

    def __init__(
        self,
        db: Database,
        queue: Work,
        roster: Roster,
        reach: Reach,
        runtime: Runtime,
        relays: Relays,
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
        self._loop: asyncio.Task[None] | None = None
        self._turns = asyncio.Semaphore(_AT_ONCE)

    async def start(self) -> None:
        """Adopt or start every agent; then keep watch."""
        boxes = {box.agent_id for box in await self._runtime.list()}
        agents = await self._roster.everyone()
        for stray in boxes - {agent.id for agent in agents}:
            _log.warning("ending a container that belongs to no agent", agent=stray)
            await self._runtime.stop(stray)
        await asyncio.gather(*(self._adopt(agent, agent.id in boxes) for agent in agents if not agent.deleted))
        self._loop = asyncio.create_task(self._watch(), name="reconcile")

    async def stop(self) -> None:
        """End all boxes, cleanly; the agents are started again when the server is."""
        if self._loop is not None:
            self._loop.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._loop
        agents = [agent for agent in await self._roster.everyone() if not agent.deleted]
        await asyncio.gather(*(self._rest(agent) for agent in agents))

    async def _adopt(self, agent: Agent, has_box: bool) -> None:
        async with self._turns:
            if has_box:
                await self._relays.open(agent.id)
                if await self._gateways.is_up(agent):
                    await self._move(agent, AgentState.RUNNING)
                    _log.info("agent adopted", agent=agent.id)
                    return
            await self._enqueue_start(agent)

    async def _rest(self, agent: Agent) -> None:
        async with self._turns:
            await self._runtime.stop(agent.id)
            await self._relays.close(agent.id)
            await self._move(agent, AgentState.NOT_RUNNING)

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(self._every)
            try:
                await self._look()
            except Exception:  # noqa: BLE001 - the edge of the loop
                _log.exception("reconciling failed; trying again")

    async def _look(self) -> None:
        boxes = {box.agent_id for box in await self._runtime.list()}
        settled = [
            agent
            for agent in await self._roster.everyone()
            if not agent.deleted and agent.state in (AgentState.RUNNING, AgentState.FAILED)
        ]
        await asyncio.gather(*(self._examine(agent, agent.id in boxes) for agent in settled))

    async def _examine(self, agent: Agent, has_box: bool) -> None:
        async with self._turns:
            if not has_box:
                if agent.state is AgentState.RUNNING:
                    _log.warning("the container of a running agent is gone; starting it again", agent=agent.id)
                    await self._enqueue_start(agent)
                return
            try:
                process = (await self._reach.warden(agent.id).processes()).get(PROCESS)
            except Problem:
                return
            crashing = process is not None and process.restarts >= _CRASHES and process.state != "running"
            if agent.state is AgentState.RUNNING and crashing:
                await self._move(agent, AgentState.FAILED, "The gateway keeps crashing; see its logs")
            elif agent.state is AgentState.FAILED and not crashing and await self._gateways.is_up(agent):
                await self._move(agent, AgentState.RUNNING)

    async def _enqueue_start(self, agent: Agent) -> None:
        def enqueue(connection: Connection) -> None:
            self._roster.move(connection, agent.id, AgentState.STARTING)
            if not work.busy(connection, agent.id):
                work.add(connection, model.START, agent.id)

        await self._db.write(enqueue)
        self._queue.wake()

    async def _move(self, agent: Agent, to: AgentState, reason: str | None = None) -> None:
        await self._db.write(lambda connection: self._roster.move(connection, agent.id, to, reason))
