"""The steps of an agent's start, in their order. An interrupted start begins again, so each step can run twice."""

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from sqlalchemy import Connection

from roost.agents.library.instances.service import TemplateInstanceService
from roost.agents.library.skills.delivery import SkillDelivery
from roost.agents.lifecycle.versions.service import VersionService
from roost.agents.lifecycle.workflows.disk_guard import DiskGuard
from roost.agents.lifecycle.workflows.gateway import GatewayStarter
from roost.agents.lifecycle.workflows.model import AgentRelays, DiskLimitReached, TrustedAuthorities, container_spec
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import set_wait_reason
from roost.agents.workspace.git.recovery import PushRecovery
from roost.core.problem import DependencyAway
from roost.core.sanitize import hide_paths
from roost.drivers.runtime.contract import ContainerLimits, EngineVersion, Runtime
from roost.work import ClaimedOperation


@dataclass
class StartContext:
    """What the steps of a start know, and find out for later steps.

    version: the engine version to start at, if not the agent's own; only an operation changes it. new_container:
    whether a running container is replaced. engine: set for the steps after `EngineStep`. excess: why the disk guard
    still stops the agent. waits_for: why the agent may not start yet, which ends the start. keeps_running: whether the
    agent runs on after a failure. step: the name of the present step.
    """

    agent: Agent
    new_container: bool = False
    operation: ClaimedOperation | None = None
    version: str | None = None
    engine: EngineVersion | None = None
    excess: str | None = None
    waits_for: str | None = None
    keeps_running: bool = False
    step: str = ""


class StartStep(ABC):
    """One step of a start, with the services that it needs."""

    name: ClassVar[str]

    @abstractmethod
    async def run(self, start: StartContext) -> None:
        """Do the step, or find out that the agent has to wait. Raises what keeps the agent from starting."""

    async def undo(self, start: StartContext) -> None:  # noqa: B027 - most steps leave nothing outside the container
        """Undo the step when a container is stopped again."""


@dataclass
class VersionStep(StartStep):
    """Install another version if it is missing, and record it. Raises VersionInstallFailed; the agent keeps its own."""

    runtimes: AgentRuntimes
    versions: VersionService
    gateways: GatewayStarter
    name = "version"

    async def run(self, start: StartContext) -> None:
        agent, version, agents = start.agent, start.version, self.runtimes.agents
        if version in (None, agent.engine_version) or start.operation is None:
            return
        try:
            await self.versions.install(self.runtimes.get_engine(agent.engine), version)
        except Exception:  # nothing has changed yet, so a gateway that runs goes on
            start.keeps_running = await self.gateways.is_up(agent)
            raise

        def change(connection: Connection) -> None:
            agents.set_version(connection, agent.id, version)
            agents.set_state(connection, agent.id, AgentState.STARTING)

        await start.operation.guard(change)
        start.agent = replace(agent, engine_version=version)


@dataclass
class NeedsStep(StartStep):
    """Ask whether the agent has what its template needs; one that does not waits for it."""

    instances: TemplateInstanceService
    name = "needs"

    async def run(self, start: StartContext) -> None:
        start.waits_for = await self.instances.prepare(start.agent)


@dataclass
class EngineStep(StartStep):
    """Find the engine's version, and stop a container that is replaced. Raises EngineNotInstalled."""

    runtimes: AgentRuntimes
    name = "engine"

    async def run(self, start: StartContext) -> None:
        start.engine = self.runtimes.get_engine(start.agent.engine).require(start.agent.engine_version)
        if start.new_container:
            await self.runtimes.runtime.stop(start.agent.id)


@dataclass
class DiskStep(StartStep):
    """Find out whether the disk guard stopped the agent, and why it may still not write."""

    disk: DiskGuard
    name = "disk"

    async def run(self, start: StartContext) -> None:
        start.excess = await self.disk.find_excess(start.agent.id)


@dataclass
class RelayStep(StartStep):
    """Open the sockets that lead out of the container."""

    relays: AgentRelays
    name = "relays"

    async def run(self, start: StartContext) -> None:
        await self.relays.open(start.agent.id)

    async def undo(self, start: StartContext) -> None:
        await self.relays.close(start.agent.id)


@dataclass
class ContainerStep(StartStep):
    """Start the container unless it runs, before others if the machine is busy.

    Raises RuntimeFailed, and DiskLimitReached if the agent may still not write: its container then only lets files be
    read and deleted.
    """

    runtime: Runtime
    limits: ContainerLimits
    trust: TrustedAuthorities
    name = "container"

    async def run(self, start: StartContext) -> None:
        is_full = start.excess is not None
        spec = container_spec(start.agent.id, start.engine, self.limits, self.trust, delete_only=is_full)
        await self.runtime.start(replace(spec, report_wait=partial(self._report_wait, start)))
        if start.excess is not None:
            raise DiskLimitReached(start.excess)
        self.runtime.prefer(start.agent.id)

    async def undo(self, start: StartContext) -> None:
        await self.runtime.stop(start.agent.id)

    async def _report_wait(self, start: StartContext, reason: str) -> None:
        if start.operation is not None:
            with suppress(DependencyAway):  # the container starts without the database
                await start.operation.guard(
                    lambda connection: set_wait_reason(connection, start.agent.id, hide_paths(reason))
                )


@dataclass
class PushStep(StartStep):
    """Finish an interrupted push; a failure does not prevent the start."""

    pushes: PushRecovery
    name = "push"

    async def run(self, start: StartContext) -> None:
        await self.pushes.try_finish(start.agent.id)


@dataclass
class SkillStep(StartStep):
    """Deliver the agent's skills; a failure does not prevent the start. Raises ContainerNotRunning."""

    runtimes: AgentRuntimes
    skills: SkillDelivery
    name = "skills"

    async def run(self, start: StartContext) -> None:
        await self.skills.try_deliver(start.agent, self.runtimes.get_warden(start.agent.id))


@dataclass
class GatewayStep(StartStep):
    """Start the gateway, and wait until it answers. Raises GatewayFailed."""

    gateways: GatewayStarter
    name = "gateway"

    async def run(self, start: StartContext) -> None:
        await self.gateways.start(start.agent)
