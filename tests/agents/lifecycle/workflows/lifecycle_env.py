"""Lifecycle services over a database, containers without isolation, and the gateway of the fake engine."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from roost import work
from roost.agents.library.instances.service import TemplateInstanceService
from roost.agents.library.skills.attachments import SkillRequirements
from roost.agents.library.skills.delivery import SkillDelivery
from roost.agents.library.skills.service import SkillService
from roost.agents.lifecycle.archives.task_import import TaskImport
from roost.agents.lifecycle.hosts.service import load_certificate
from roost.agents.lifecycle.workflows.model import CreateAgent, LaunchSource, StartupInputs, TrustedAuthorities
from roost.agents.lifecycle.workflows.move_targets import OtherServers
from roost.agents.network.domains.service import AgentDomainService
from roost.agents.network.routes.service import RouteService
from roost.agents.registry.agent_containers import AgentContainers
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent, AgentProfile
from roost.agents.registry.repository import AgentRepository, HostAgents
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.channels.validator import ChannelValidator
from roost.agents.setup.secrets.service import SecretService
from roost.agents.workspace.scripts.model import operation_subject
from roost.app.lifecycle_services import (
    LibraryServices,
    LifecycleOptions,
    NetworkServices,
    RegistryServices,
    StoredSetup,
    build_lifecycle_services,
    build_start_services,
)
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.domain_names.service import DomainMirror, DomainService, PlatformNames
from roost.drivers.blob.folder_store import FolderStore
from roost.drivers.dns.fake import FakeDns
from roost.drivers.engine.contract import Dial, GatewayPlan, GatewaySetup
from roost.drivers.engine.fake.driver import FakeEngine
from roost.drivers.git.repositories import SandboxedRepositories
from roost.drivers.runtime.bwrap.sandbox import BwrapSandbox
from roost.drivers.runtime.contract import ContainerLimits, Runtime
from roost.drivers.runtime.fake import FakeRuntime
from roost.drivers.runtime.tls_carrier import make_bridge_certificate
from roost.drivers.runtime.tls_peers import TlsPeerNetwork
from roost.identity import tenants
from roost.identity.caller import Caller, CallerKind, Plan
from roost.identity.gateway_tokens import GatewayTokens, TokenReads
from roost.net.policy import EgressPolicy
from roost.storage.content.service import ContentService
from roost.storage.files.service import FileService
from roost.warden_client.client import WardenClient
from roost.work import OperationWorker

DEADLINE = 20.0
SEALER = Sealer(Sensitive(bytes(32)))


class OpenRelays:
    """Relays without sockets, which record the agents whose relays are open."""

    def __init__(self) -> None:
        self.open_now: set[str] = set()
        self.broken: set[str] = set()

    async def open(self, agent_id: str) -> None:
        if agent_id in self.broken:
            raise OSError("no more sockets")
        self.open_now.add(agent_id)

    async def close(self, agent_id: str) -> None:
        self.open_now.discard(agent_id)

    def list_open(self) -> Collection[str]:
        return list(self.open_now)

    def drain_connections(self) -> bool:
        return False

    async def close_all(self) -> None:
        self.open_now.clear()


class ControlledEngine(FakeEngine):
    """Fake engine whose gateway is never ready while `becomes_ready` is False."""

    start_deadline = 5.0

    def __init__(self) -> None:
        super().__init__()
        self.becomes_ready = True
        self.unfit: frozenset[str] = frozenset()

    async def ready(self, dial: Dial) -> bool:
        return self.becomes_ready and await super().ready(dial)

    def plan(self, version: str, setup: GatewaySetup) -> GatewayPlan:
        """Plan a gateway that exits at once for a version in `unfit`."""
        planned = super().plan(version, setup)
        return replace(planned, argv=["false"]) if version in self.unfit else planned


class LifecycleEnv:
    """Services of one server process; several can use one folder and database, one after the other."""

    def __init__(
        self,
        db: Database,
        runtime: Runtime,
        folder: Path,
        *,
        host: str,
        address: str | None,
        lease: float,
        every: float,
        build: float,
    ) -> None:
        self.db, self.runtime = db, runtime
        self.engine, self.relays = ControlledEngine(), OpenRelays()
        self.queue = OperationWorker(db, owner=host, lease=lease)
        self.agents = AgentRepository(db, SEALER, {Plan.FREE: 1, Plan.PAID: 20}, host)
        self.host_agents = HostAgents(db, host)
        load = partial(load_certificate, db, SEALER, partial(make_bridge_certificate, "servers"))
        self.peers = TlsPeerNetwork(address, "1.0", load)
        self.gateways = GatewayTokens(db, SEALER)
        self.secrets = SecretService(db, SEALER, self.agents)
        self.channels = ChannelRepository(db, SEALER, self.agents)
        containers = runtime if isinstance(runtime, AgentContainers) else AgentContainers([runtime], self.host_agents)
        self.runtimes = AgentRuntimes(self.agents, containers, [self.engine])
        self.instances = TemplateInstanceService(
            db,
            self.runtimes,
            self.secrets,
            self.channels,
            ChannelValidator([], lambda *_: None),
            _no_names,
            TaskImport.enqueue,
            _no_version,
        )
        self.git = SandboxedRepositories(folder / "git", BwrapSandbox(folder))
        content = ContentService(db, FolderStore(folder / "blobs"))
        skills = SkillService(db, content, FileService(db).quota)
        names = DomainService(db, DomainMirror(db), FakeDns(), PlatformNames("localhost", "agents.localhost", ()))
        domains = AgentDomainService(self.runtimes, names, _origin, lambda *_: None)
        options = LifecycleOptions(
            ContainerLimits(),
            TrustedAuthorities(),
            _prepare,
            reconcile_seconds=every,
            build_seconds=build,
        )
        registry = RegistryServices(
            operations=self.queue,
            runtimes=self.runtimes,
            host_agents=self.host_agents,
            relays=self.relays,
            tokens=self.gateways,
            token_reads=TokenReads(db, self.gateways),
            sealer=SEALER,
            origin=_origin,
        )
        library = LibraryServices(
            skills=skills,
            delivery=SkillDelivery(db, skills),
            requirements=SkillRequirements(self.secrets, self.runtimes, EgressPolicy()),
            instances=self.instances,
        )
        self.start = build_start_services(
            registry, library, _equip, self.git, options, OtherServers(self.peers, "s3://bucket")
        )
        self.services = build_lifecycle_services(
            registry,
            StoredSetup(self.secrets, self.channels, ChannelValidator([], lambda *_: None), _no_secrets),
            NetworkServices(RouteService(db, self.runtimes), domains),
            library,
            self.start,
            content,
            options,
        )
        self.snapshots = self.services.workspace.snapshots

    def caller(self, tenant: str = "acme", plan: Plan = Plan.PAID) -> Caller:
        return Caller(CallerKind.SERVICE, self.db.run(lambda c: tenants.ensure_tenant(c, tenant, plan)).id)

    async def create(self, name: str = "Ada", **fields: Any) -> Agent:
        return await self.services.launch.create(self.caller(), LaunchSource(CreateAgent(AgentProfile(name), **fields)))

    async def create_row(self, name: str = "Ada") -> Agent:
        """Create only the row of an agent."""
        tenant = self.caller().tenant_id
        return await self.db.write(lambda c: self.agents.create(c, tenant, AgentProfile(name), "fake", "1.0.0"))

    async def run(self, kind: str, agent_id: str, payload: Any = None) -> work.Operation:
        """Run an operation and return it once it has finished."""
        added = await self.db.write(lambda c: work.add_operation(c, kind, agent_id, payload))
        return await self.queue.wait(added.id, DEADLINE)

    def warden(self, agent_id: str) -> WardenClient:
        return self.runtimes.get_warden(agent_id)

    async def containers(self) -> dict[str, int | None]:
        """Return the pids of the wardens by agent."""
        return {container.agent_id: container.pid for container in await self.runtime.list()}

    async def settled(self) -> Agent:
        """Create an agent and wait until its start and its scripts have finished."""
        agent = await self.create()
        await self.quiet(agent)
        return agent

    async def quiet(self, agent: Agent) -> None:
        """Wait until no run of the agent's scripts is unfinished."""
        await until(lambda: self.db.read(lambda c: not work.is_subject_busy(c, operation_subject(agent.id))))

    async def gateway_pid(self, agent: Agent) -> int | None:
        return (await self.services.details.get_process(agent))[1]


@asynccontextmanager
async def open_lifecycle_env(
    db: Database,
    folder: Path,
    *,
    reconcile: bool = False,
    runtime: Runtime | None = None,
    host: str = "host",
    address: str | None = None,
    lease: float = 15.0,
    every: float = 0.05,
    build: float = 60.0,
) -> AsyncIterator[LifecycleEnv]:
    """Run the services of a server; at the end they stop as in a crash, and containers keep running."""
    runtime = runtime or FakeRuntime(folder)
    env = LifecycleEnv(db, runtime, folder, host=host, address=address, lease=lease, every=every, build=build)
    if reconcile:
        await env.services.reconciler.start()
    await env.queue.start()
    await env.peers.start()
    try:
        yield env
    finally:
        await env.peers.stop()
        await env.services.reconciler._watch.stop()
        await env.queue.stop(grace=0)


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    last = time.monotonic() + DEADLINE
    while not await condition():
        assert time.monotonic() < last, "the condition did not become true"
        await asyncio.sleep(0.01)


def _origin(agent_id: str) -> str:
    return f"http://{agent_id}.agents.localhost"


async def _equip(_agent: Agent) -> StartupInputs:
    return StartupInputs(models=["scripted"], environment={"GIVEN": Sensitive("value of GIVEN")})


async def _no_secrets(_agent_id: str) -> Mapping[str, Sensitive[str]]:
    return {}


async def _no_names(_agent_id: str) -> Sequence[str]:
    return ()


async def _no_version(*_: str) -> int | None:
    return None


async def _prepare(*_: object) -> None:
    """Do nothing: the fake engine needs no preparation."""
