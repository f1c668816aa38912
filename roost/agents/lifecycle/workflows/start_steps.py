"""The steps of an agent's start, in their order. An interrupted start begins again, so each step can run twice."""

from dataclasses import dataclass, replace
from typing import ClassVar

from sqlalchemy import Connection

from roost.agents.library.instances.service import TemplateInstanceService
from roost.agents.library.skills.delivery import SkillDelivery
from roost.agents.lifecycle.versions.service import VersionService
from roost.agents.lifecycle.workflows.disk_guard import DiskGuard
from roost.agents.lifecycle.workflows.errors import DiskLimitReached
from roost.agents.lifecycle.workflows.gateway import GatewayStarter
from roost.agents.lifecycle.workflows.model import AgentRelays, TrustedAuthorities, container_spec
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent, AgentState
from roost.agents.workspace.git.recovery import PushRecovery
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


class StartStep:
    name: ClassVar[str]

    async def run(self, start: StartContext) -> None:
        raise NotImplementedError

    async def undo(self, start: StartContext) -> None:
        """Undo the step when a container is stopped again; most steps leave nothing outside it."""


class VersionStep(StartStep):
    """Install another version if it is missing, and record it. Raises VersionInstallFailed; the agent keeps its own."""

    name = "version"

    def __init__(self, runtimes: AgentRuntimes, versions: VersionService, gateways: GatewayStarter) -> None:
        self._runtimes = runtimes
        self._versions = versions
        self._gateways = gateways

    async def run(self, start: StartContext) -> None:
        agent, version, agents = start.agent, start.version, self._runtimes.agents
        if version in (None, agent.engine_version) or start.operation is None:
            return
        try:
            await self._versions.install(self._runtimes.get_engine(agent.engine), version)
        except Exception:
            start.keeps_running = await self._gateways.is_up(agent)
            raise

        def change(connection: Connection) -> None:
            agents.set_version(connection, agent.id, version)
            agents.set_state(connection, agent.id, AgentState.STARTING)

        await start.operation.guard(change)
        start.agent = replace(agent, engine_version=version)


class NeedsStep(StartStep):
    """Ask whether the agent has what its template needs; one that does not waits for it."""

    name = "needs"

    def __init__(self, instances: TemplateInstanceService) -> None:
        self._instances = instances

    async def run(self, start: StartContext) -> None:
        start.waits_for = await self._instances.prepare(start.agent)


class EngineStep(StartStep):
    """Find the engine's version, and stop a container that is replaced. Raises EngineNotInstalled."""

    name = "engine"

    def __init__(self, runtimes: AgentRuntimes) -> None:
        self._runtimes = runtimes

    async def run(self, start: StartContext) -> None:
        start.engine = self._runtimes.get_engine(start.agent.engine).require(start.agent.engine_version)
        if start.new_container:
            await self._runtimes.runtime.stop(start.agent.id)


class DiskStep(StartStep):
    """Find out whether the disk guard stopped the agent, and why it may still not write."""

    name = "disk"

    def __init__(self, disk: DiskGuard) -> None:
        self._disk = disk

    async def run(self, start: StartContext) -> None:
        start.excess = await self._disk.find_excess(start.agent.id)


class RelayStep(StartStep):
    """Open the sockets that lead out of the container."""

    name = "relays"

    def __init__(self, relays: AgentRelays) -> None:
        self._relays = relays

    async def run(self, start: StartContext) -> None:
        await self._relays.open(start.agent.id)

    async def undo(self, start: StartContext) -> None:
        await self._relays.close(start.agent.id)


class ContainerStep(StartStep):
    """Start the container unless it runs, before others if the machine is busy.

    Raises RuntimeFailed, and DiskLimitReached if the agent may still not write: its container then only lets files be
    read and deleted.
    """

    name = "container"

    def __init__(self, runtime: Runtime, limits: ContainerLimits, trust: TrustedAuthorities) -> None:
        self._runtime = runtime
        self._limits = limits
        self._trust = trust

    async def run(self, start: StartContext) -> None:
        is_full = start.excess is not None
        spec = container_spec(start.agent.id, start.engine, self._limits, self._trust, delete_only=is_full)
        await self._runtime.start(spec)
        if start.excess is not None:
            raise DiskLimitReached(start.excess)
        self._runtime.prefer(start.agent.id)

    async def undo(self, start: StartContext) -> None:
        await self._runtime.stop(start.agent.id)


class PushStep(StartStep):
    """Finish an interrupted push; a failure does not prevent the start."""

    name = "push"

    def __init__(self, pushes: PushRecovery) -> None:
        self._pushes = pushes

    async def run(self, start: StartContext) -> None:
        await self._pushes.try_finish(start.agent.id)


class SkillStep(StartStep):
    """Deliver the agent's skills; a failure does not prevent the start. Raises ContainerNotRunning."""

    name = "skills"

    def __init__(self, runtimes: AgentRuntimes, skills: SkillDelivery) -> None:
        self._runtimes = runtimes
        self._skills = skills

    async def run(self, start: StartContext) -> None:
        await self._skills.try_deliver(start.agent, self._runtimes.get_warden(start.agent.id))


class GatewayStep(StartStep):
    """Start the gateway, and wait until it answers. Raises GatewayFailed."""

    name = "gateway"

    def __init__(self, gateways: GatewayStarter) -> None:
        self._gateways = gateways

    async def run(self, start: StartContext) -> None:
        await self._gateways.start(start.agent)
