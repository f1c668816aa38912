"""The operation behind launch, restart and recovery: start an agent's container and gateway from any state."""

from dataclasses import replace
from typing import Any

from sqlalchemy import Connection

from roost.agents.lifecycle.gateway import GatewayStarter
from roost.agents.lifecycle.model import AgentRelays, TrustedAuthorities, container_spec
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.errors import AgentNotFound
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import AgentRepository
from roost.agents.scripts.service import ScriptService
from roost.agents.versions.errors import VersionInstallFailed
from roost.agents.versions.service import VersionService
from roost.core import log
from roost.core.problem import Problem
from roost.drivers.runtime.contract import ContainerLimits, Runtime
from roost.work import ClaimedOperation

_log = log.get_logger("lifecycle")


class StartWorkflow:
    """Handles `agent.start`; the payload is None or from `model.at_version`."""

    def __init__(
        self,
        roster: AgentRepository,
        reach: AgentRuntimes,
        runtime: Runtime,
        relays: AgentRelays,
        gateways: GatewayStarter,
        versions: VersionService,
        scripts: ScriptService,
        limits: ContainerLimits,
        trust: TrustedAuthorities,
    ) -> None:
        self._roster = roster
        self._reach = reach
        self._runtime = runtime
        self._relays = relays
        self._gateways = gateways
        self._versions = versions
        self._scripts = scripts
        self._limits = limits
        self._trust = trust

    async def __call__(self, operation: ClaimedOperation) -> dict[str, Any]:
        """Idempotent: can be cut off anywhere and run again."""
        try:
            agent = await self._roster.get(operation.subject)
        except AgentNotFound:  # it was deleted before its turn came
            return {}
        asked: dict[str, Any] = operation.payload or {}
        agent = await self._at(operation, agent, asked.get("version", agent.engine_version))
        try:
            await self.bring_up(agent, fresh_container="box" in asked)
        except Exception as error:
            reason = error.message if isinstance(error, Problem) else "Internal error"
            _log.warning("agent.start_failed", agent=agent.id, engine=agent.engine, reason=reason)
            await operation.guard(
                lambda connection: self._roster.set_state(connection, agent.id, AgentState.FAILED, reason)
            )
            raise
        await operation.guard(lambda connection: self.arrived(connection, agent.id))
        _log.info("agent.started", agent=agent.id, engine=agent.engine, version=agent.engine_version)
        return {}

    async def bring_up(self, agent: Agent, *, fresh_container: bool) -> None:
        """Container and gateway, from whatever state they are in. Returns when the gateway answers."""
        await self.open(agent, fresh=fresh_container)
        await self._gateways.start(agent)

    async def open(self, agent: Agent, *, fresh: bool) -> None:
        """The container alone; one that runs stays as it is unless it is to be fresh."""
        engine = self._reach.get_engine(agent.engine).require(agent.engine_version)
        if fresh:
            await self._runtime.stop(agent.id)
        await self._relays.open(agent.id)
        await self._runtime.start(container_spec(agent.id, engine, self._limits, self._trust))

    def arrived(self, connection: Connection, agent_id: str) -> None:
        """The agent's gateway answers: it is running, and its scripts are next."""
        if self._roster.set_state(connection, agent_id, AgentState.RUNNING):
            self._scripts.enqueue(connection, agent_id)

    async def _at(self, operation: ClaimedOperation, agent: Agent, version: str) -> Agent:
        """The agent at that version, which is installed when it is missing; until then nothing changes for the agent.

        Raises NotInstalled.
        """
        if version == agent.engine_version:
            return agent
        try:
            await self._versions.install(self._reach.get_engine(agent.engine), version)
        except VersionInstallFailed as problem:
            up, reason = await self._gateways.is_up(agent), problem.message
            to = (AgentState.RUNNING, None) if up else (AgentState.FAILED, reason)
            await operation.guard(lambda connection: self._roster.set_state(connection, agent.id, *to))
            raise

        def change(connection: Connection) -> None:
            self._roster.set_version(connection, agent.id, version)
            self._roster.set_state(connection, agent.id, AgentState.STARTING)

        await operation.guard(change)
        return replace(agent, engine_version=version)
