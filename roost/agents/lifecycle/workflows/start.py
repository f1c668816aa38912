"""The operation behind launch, restart and recovery: start an agent's container and gateway from any state."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from roost import work
from roost.agents.lifecycle.workflows.gateway import STOP_SECONDS
from roost.agents.lifecycle.workflows.model import START, START_GRACE, START_RETRIES, DiskLimitReached, public_reason
from roost.agents.lifecycle.workflows.start_steps import StartContext, StartStep
from roost.agents.registry.agent_runtimes import GATEWAY_PROCESS, AgentRuntimes
from roost.agents.registry.errors import AgentNotFound, AgentOnOtherHost
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import find_agent
from roost.agents.workspace.git.recovery import PushRecovery
from roost.agents.workspace.scripts.service import ScriptService
from roost.core import log
from roost.core.problem import Problem
from roost.warden_client.client import WardenClient
from roost.work import ClaimedOperation, Operation

_log = log.get_logger("lifecycle")


@dataclass(frozen=True)
class StartWorkflow:
    """Walks the ordered steps of a start; those of `container` alone open a workspace without a gateway."""

    _runtimes: AgentRuntimes
    _scripts: ScriptService
    _pushes: PushRecovery
    first: Sequence[StartStep]
    container: Sequence[StartStep]
    gateway: Sequence[StartStep]

    @property
    def steps(self) -> Sequence[StartStep]:
        return (*self.first, *self.container, *self.gateway)

    async def handle(self, operation: ClaimedOperation) -> dict[str, Any]:
        """Handle `agent.start`, idempotently; a payload with a `version` asks for a new container at it.

        The result says in `waits_for` why the agent may not start yet, if so.
        """
        agents = self._runtimes.agents
        try:
            agent = await agents.get_here(operation.subject)
        except AgentNotFound:  # deleted while the operation waited
            return {}
        payload: dict[str, Any] = operation.payload or {}
        start = StartContext(agent, bool(payload), operation, payload.get("version"))
        try:
            await _walk(self.steps, start)
        except AgentOnOtherHost:  # which goes on with the operation
            raise
        except Exception as error:
            await self._record_failure(operation, start, error)
            raise
        if start.waits_for:
            await operation.guard(
                lambda connection: agents.set_state(connection, agent.id, AgentState.NOT_RUNNING, start.waits_for)
            )
            return {"waits_for": start.waits_for}
        await operation.guard(lambda connection: self.mark_running(connection, agent.id))
        _log.info("agent.started", agent=agent.id, engine=agent.engine, version=start.agent.engine_version)
        return {}

    async def _record_failure(self, operation: ClaimedOperation, start: StartContext, error: Exception) -> None:
        """Record why an agent did not start, unless it is still `starting` because another attempt follows."""
        agent = start.agent
        is_temporary = isinstance(error, Problem) and error.kind.is_temporary
        if is_temporary and operation.failures < START_RETRIES:
            await self._runtimes.agents.get(agent.id)  # a deletion, which kills the container too, ends the start
            return
        state, reason = AgentState.RUNNING, None
        if not start.keeps_running:
            state, reason = AgentState.FAILED, public_reason(error)
            detail = error.message if isinstance(error, Problem) else "Internal error"
            _log.warning("agent.start_failed", agent=agent.id, engine=agent.engine, step=start.step, reason=detail)
        await operation.guard(lambda connection: self._runtimes.agents.set_state(connection, agent.id, state, reason))

    async def start_agent(self, agent: Agent, *, new_container: bool) -> None:
        """Start the container and the gateway from any state; return when the gateway answers."""
        await _walk((*self.container, *self.gateway), StartContext(agent, new_container))

    async def start_container(self, agent: Agent, *, new_container: bool = False) -> None:
        """Start the container without a gateway; keep a running one unless `new_container`."""
        await _walk(self.container, StartContext(agent, new_container))

    @asynccontextmanager
    async def open_workspace(self, agent: Agent) -> AsyncGenerator[WardenClient]:
        """Yield the warden of the agent's container; one that is started for it has no gateway, and ends with it.

        No push changes the workspace meanwhile. Raises as `start_container` and `PushRecovery.exclude_pushes`.
        """
        warden = self._runtimes.get_warden(agent.id)
        if await self._runtimes.has_container(agent.id):
            async with self._pushes.exclude_pushes(agent.id):
                yield warden
            return
        try:
            with suppress(DiskLimitReached):  # files can still be read
                await self.start_container(agent)
            async with self._pushes.exclude_pushes(agent.id):
                yield warden
        finally:
            for step in reversed(self.container):
                await step.undo(StartContext(agent))

    async def stop_gateway(self, agent: Agent) -> None:
        """Stop the gateway in the running container; it stays so until a start."""
        await self._runtimes.get_warden(agent.id).stop(GATEWAY_PROCESS, STOP_SECONDS)

    def mark_failed(self, connection: Connection, operation: Operation, reason: str) -> None:
        """Set the state `failed` of an agent that still waits for an operation, which has failed."""
        agent = find_agent(connection, operation.subject)
        if agent is not None and agent.state is AgentState.STARTING:
            self._runtimes.agents.set_state(connection, agent.id, AgentState.FAILED, reason)

    def enqueue_start(self, connection: Connection, agent: Agent) -> str:
        """Enqueue a start in the present container, and return the id of the operation."""
        return work.add_operation(connection, START, agent.id, host=agent.host_id).id

    def get_start_seconds(self, agent: Agent) -> float:
        """Return how long a start may take."""
        return self._runtimes.get_engine(agent.engine).start_deadline + START_GRACE

    def mark_running(self, connection: Connection, agent_id: str) -> None:
        """Set the state `running` once the gateway answers, and enqueue the agent's scripts."""
        if self._runtimes.agents.set_state(connection, agent_id, AgentState.RUNNING):
            self._scripts.enqueue(connection, agent_id)


async def _walk(steps: Sequence[StartStep], start: StartContext) -> None:
    for step in steps:
        start.step = step.name
        await step.run(start)
        if start.waits_for:
            return
