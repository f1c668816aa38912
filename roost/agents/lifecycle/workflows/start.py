"""The operation behind launch, restart and recovery: start an agent's container and gateway from any state."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from roost import work
from roost.agents.library.skills.delivery import SkillDelivery
from roost.agents.lifecycle.versions.errors import VersionInstallFailed
from roost.agents.lifecycle.versions.service import VersionService
from roost.agents.lifecycle.workflows.disk_guard import DiskGuard
from roost.agents.lifecycle.workflows.errors import DiskLimitReached, public_reason
from roost.agents.lifecycle.workflows.gateway import STOP_SECONDS, GatewayStarter
from roost.agents.lifecycle.workflows.model import (
    START,
    START_GRACE,
    START_RETRIES,
    AgentRelays,
    PrepareStart,
    TrustedAuthorities,
    container_spec,
)
from roost.agents.registry.agent_runtimes import GATEWAY_PROCESS, AgentRuntimes
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import find_agent
from roost.agents.workspace.git.recovery import PushRecovery
from roost.agents.workspace.scripts.service import ScriptService
from roost.core import log
from roost.core.problem import Problem, ProblemKind
from roost.drivers.runtime.contract import ContainerLimits
from roost.warden_client.client import WardenClient
from roost.warden_client.errors import ContainerNotRunning
from roost.work import ClaimedOperation, Operation

_log = log.get_logger("lifecycle")


class AgentContainers:
    """Starts containers, without their gateways."""

    def __init__(
        self,
        runtimes: AgentRuntimes,
        relays: AgentRelays,
        disk: DiskGuard,
        limits: ContainerLimits,
        trust: TrustedAuthorities,
    ) -> None:
        self._runtimes = runtimes
        self._relays = relays
        self._disk = disk
        self._limits = limits
        self._trust = trust

    async def start(self, agent: Agent, *, new_container: bool) -> None:
        """Start the container; keep a running one unless `new_container`.

        Raises DiskLimitReached if the disk guard stopped the agent and it may still not write.
        """
        engine = self._runtimes.get_engine(agent.engine).require(agent.engine_version)
        if new_container:
            await self._runtimes.runtime.stop(agent.id)
        excess = await self._disk.find_excess(agent.id)
        await self._relays.open(agent.id)
        spec = container_spec(agent.id, engine, self._limits, self._trust, delete_only=excess is not None)
        await self._runtimes.runtime.start(spec)
        if excess is not None:
            raise DiskLimitReached(excess)

    async def stop(self, agent: Agent) -> None:
        """Stop the container, and close the sockets that lead out of it."""
        await self._runtimes.runtime.stop(agent.id)
        await self._relays.close(agent.id)


class StartWorkflow:
    def __init__(
        self,
        runtimes: AgentRuntimes,
        containers: AgentContainers,
        starter: GatewayStarter,
        versions: VersionService,
        scripts: ScriptService,
        pushes: PushRecovery,
        skills: SkillDelivery,
        prepare: PrepareStart,
    ) -> None:
        self._agents = runtimes.agents
        self._runtimes = runtimes
        self._runtime = runtimes.runtime
        self.containers = containers
        self._starter = starter
        self._versions = versions
        self._scripts = scripts
        self._pushes = pushes
        self._skills = skills
        self._prepare = prepare

    async def handle(self, operation: ClaimedOperation) -> dict[str, Any]:
        """Handle `agent.start`, idempotently; a payload (see `model.at_version`) asks for a new container.

        The result says in `waits_for` why the agent may not start yet, if so.
        """
        try:
            agent = await self._agents.get_here(operation.subject)
        except AgentNotFound:  # deleted while the operation waited
            return {}
        payload: dict[str, Any] = operation.payload or {}
        agent = await self._switch_version(operation, agent, payload.get("version", agent.engine_version))
        try:
            if reason := await self._prepare(agent):
                await operation.guard(
                    lambda connection: self._agents.set_state(connection, agent.id, AgentState.NOT_RUNNING, reason)
                )
                return {"waits_for": reason}
            await self.start_agent(agent, new_container=bool(payload))
        except Exception as error:
            is_temporary = isinstance(error, Problem) and error.kind is ProblemKind.UNAVAILABLE
            if is_temporary and operation.failures < START_RETRIES:
                await self._agents.get(agent.id)  # a deletion, which kills the container too, ends the start
                raise  # the agent is still `starting`, and another attempt follows
            reason = public_reason(error)
            detail = error.message if isinstance(error, Problem) else "Internal error"
            _log.warning("agent.start_failed", agent=agent.id, engine=agent.engine, reason=detail)
            await operation.guard(
                lambda connection: self._agents.set_state(connection, agent.id, AgentState.FAILED, reason)
            )
            raise
        await operation.guard(lambda connection: self.mark_running(connection, agent.id))
        _log.info("agent.started", agent=agent.id, engine=agent.engine, version=agent.engine_version)
        return {}

    async def start_agent(self, agent: Agent, *, new_container: bool) -> None:
        """Start the container and the gateway from any state; return when the gateway answers."""
        await self.containers.start(agent, new_container=new_container)
        self._runtime.prefer(agent.id)
        await self._pushes.try_finish(agent.id)
        await self._skills.try_deliver(agent, self._runtimes.get_warden(agent.id))
        await self._starter.start(agent)

    @asynccontextmanager
    async def open_workspace(self, agent: Agent) -> AsyncGenerator[WardenClient]:
        """Yield the warden of the agent's container; one that is started for it has no gateway, and ends with it.

        No push changes the workspace meanwhile. Raises as `AgentContainers.start` and `PushRecovery.exclude_pushes`.
        """
        warden = self._runtimes.get_warden(agent.id)
        try:
            await warden.ping()
        except ContainerNotRunning:
            if any(container.agent_id == agent.id for container in await self._runtime.list()):
                raise  # it runs, but cannot be reached now
        else:
            async with self._pushes.exclude_pushes(agent.id):
                yield warden
            return
        try:
            with suppress(DiskLimitReached):  # files can still be read
                await self.containers.start(agent, new_container=False)
            async with self._pushes.exclude_pushes(agent.id):
                yield warden
        finally:
            await self.containers.stop(agent)

    async def stop_gateway(self, agent: Agent) -> None:
        """Stop the gateway in the running container; it stays so until a start."""
        await self._runtimes.get_warden(agent.id).stop(GATEWAY_PROCESS, STOP_SECONDS)

    def mark_starting(self, connection: Connection, agent_id: str) -> None:
        """Set the state `starting`, so that nothing else starts the gateway."""
        self._agents.set_state(connection, agent_id, AgentState.STARTING)

    def mark_failed(self, connection: Connection, operation: Operation, reason: str) -> None:
        """Set the state `failed` of an agent that still waits for an operation, which has failed."""
        agent = find_agent(connection, operation.subject)
        if agent is not None and agent.state is AgentState.STARTING:
            self._agents.set_state(connection, agent.id, AgentState.FAILED, reason)

    def enqueue_start(self, connection: Connection, agent: Agent) -> str:
        """Enqueue a start in the present container, and return the id of the operation."""
        return work.add_operation(connection, START, agent.id, host=agent.host_id).id

    def get_start_seconds(self, agent: Agent) -> float:
        """Return how long a start may take."""
        return self._runtimes.get_engine(agent.engine).start_deadline + START_GRACE

    def mark_running(self, connection: Connection, agent_id: str) -> None:
        """Set the state `running` once the gateway answers, and enqueue the agent's scripts."""
        if self._agents.set_state(connection, agent_id, AgentState.RUNNING):
            self._scripts.enqueue(connection, agent_id)

    async def _switch_version(self, operation: ClaimedOperation, agent: Agent, version: str) -> Agent:
        """Install the version if it is missing, then record it; return the agent at that version.

        Raises VersionInstallFailed; the agent keeps its version then.
        """
        if version == agent.engine_version:
            return agent
        try:
            await self._versions.install(self._runtimes.get_engine(agent.engine), version)
        except VersionInstallFailed as problem:
            up, reason = await self._starter.is_up(agent), problem.message
            to = (AgentState.RUNNING, None) if up else (AgentState.FAILED, reason)
            await operation.guard(lambda connection: self._agents.set_state(connection, agent.id, *to))
            raise

        def change(connection: Connection) -> None:
            self._agents.set_version(connection, agent.id, version)
            self._agents.set_state(connection, agent.id, AgentState.STARTING)

        await operation.guard(change)
        return replace(agent, engine_version=version)
