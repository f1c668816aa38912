"""The lifecycle over real parts: a database, containers without isolation, and the fake engine's real gateway."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from roost import work
from roost.agents.channels.repository import ChannelRepository
from roost.agents.channels.validator import ChannelValidator
from roost.agents.lifecycle.model import CreateAgent, StartupInputs, TrustedAuthorities
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent, AgentProfile
from roost.agents.registry.repository import AgentRepository
from roost.agents.scripts.model import operation_subject
from roost.agents.secrets.service import SecretService
from roost.app.lifecycle_services import build_lifecycle_services
from roost.core.db import Database
from roost.core.seal import Sealer
from roost.core.sensitive import Sensitive
from roost.drivers.engine.contract import Dial, GatewayPlan, GatewaySetup
from roost.drivers.engine.fake import FakeEngine
from roost.drivers.runtime.contract import ContainerLimits, Runtime
from roost.drivers.runtime.fake import FakeRuntime
from roost.drivers.runtime.warden_client import WardenClient
from roost.identity import tenants
from roost.identity.caller import Caller, CallerKind, Plan
from roost.identity.gateway_tokens import GatewayTokens
from roost.work import OperationWorker

DEADLINE = 20.0
SEALER = Sealer(Sensitive(bytes(32)))


class OpenRelays:
    """Which agents have their sockets; opens none."""

    def __init__(self) -> None:
        self.open_now: set[str] = set()
        self.broken: set[str] = set()

    async def open(self, agent_id: str) -> None:
        if agent_id in self.broken:
            raise OSError("no more sockets")
        self.open_now.add(agent_id)

    async def close(self, agent_id: str) -> None:
        self.open_now.discard(agent_id)


class Engine(FakeEngine):
    """The fake engine, whose gateway is ready only when it is let."""

    start_deadline = 5.0

    def __init__(self) -> None:
        super().__init__()
        self.let = True
        self.unfit: frozenset[str] = frozenset()

    async def ready(self, dial: Dial) -> bool:
        return self.let and await super().ready(dial)

    def plan(self, version: str, setup: GatewaySetup) -> GatewayPlan:
        """A version that is unfit ends at once."""
        planned = super().plan(version, setup)
        return replace(planned, argv=["false"]) if version in self.unfit else planned


class LifecycleEnv:
    """What one process of the server holds; several can stand on one folder and database, one after the other."""

    def __init__(self, db: Database, runtime: Runtime, *, lease: float, every: float, build: float) -> None:
        self.db, self.runtime = db, runtime
        self.engine, self.relays = Engine(), OpenRelays()
        self.queue = OperationWorker(db, owner="server", lease=lease)
        self.roster = AgentRepository(db, SEALER, {Plan.FREE: 1, Plan.PAID: 20})
        self.gateways = GatewayTokens(db, SEALER)
        self.secrets = SecretService(db, SEALER, self.roster)
        self.book = ChannelRepository(db, SEALER, self.roster)
        self.reach = AgentRuntimes(self.roster, runtime, [self.engine])
        self.services = build_lifecycle_services(
            db=db,
            operations=self.queue,
            repository=self.roster,
            runtimes=self.reach,
            runtime=runtime,
            relays=self.relays,
            gateway_tokens=self.gateways,
            secrets=self.secrets,
            channels=self.book,
            channel_validator=ChannelValidator([]),
            origin=_origin,
            startup_inputs=_equip,
            prepare_version=_prepare,
            limits=ContainerLimits(),
            trust=TrustedAuthorities(),
            reconcile_seconds=every,
            build_seconds=build,
        )

    def caller(self, tenant: str = "acme", plan: Plan = Plan.PAID) -> Caller:
        return Caller(CallerKind.SERVICE, self.db.run(lambda c: tenants.ensure_tenant(c, tenant, plan)).id)

    async def create(self, name: str = "Ada", **order: Any) -> Agent:
        return await self.services.launch.create(self.caller(), CreateAgent(AgentProfile(name), **order))

    async def admitted(self, name: str = "Ada") -> Agent:
        """An agent of which there is only the row."""
        tenant = self.caller().tenant_id
        return await self.db.write(lambda c: self.roster.create(c, tenant, AgentProfile(name), "fake", "1.0.0"))

    async def run(self, kind: str, agent_id: str, payload: Any = None) -> work.Operation:
        """An operation, once it is over."""
        added = await self.db.write(lambda c: work.add_operation(c, kind, agent_id, payload))
        self.queue.wake()
        return await self.queue.wait(added.id, DEADLINE)

    def warden(self, agent_id: str) -> WardenClient:
        return self.reach.get_warden(agent_id)

    async def containers(self) -> dict[str, int | None]:
        """Agent to the pid of its warden."""
        return {container.agent_id: container.pid for container in await self.runtime.list()}

    async def settled(self) -> Agent:
        """A new agent whose start is over with all that follows it."""
        agent = await self.create()
        await self.quiet(agent)
        return agent

    async def quiet(self, agent: Agent) -> None:
        """Returns once the agent's scripts are neither run nor to be run."""
        await until(lambda: self.db.read(lambda c: not work.is_subject_busy(c, operation_subject(agent.id))))

    async def gateway_pid(self, agent: Agent) -> int | None:
        return (await self.services.details.process(agent))[1]


@asynccontextmanager
async def open_lifecycle_env(
    db: Database,
    folder: Path,
    *,
    reconcile: bool = False,
    runtime: Runtime | None = None,
    lease: float = 15.0,
    every: float = 0.05,
    build: float = 60.0,
) -> AsyncIterator[LifecycleEnv]:
    """A server's services at work. At the end they vanish as in a crash: containers go on."""
    made = LifecycleEnv(db, runtime or FakeRuntime(folder), lease=lease, every=every, build=build)
    if reconcile:
        await made.services.reconciler.start()
    await made.queue.start()
    try:
        yield made
    finally:
        await made.services.reconciler._watch.stop()
        await made.queue.stop(grace=0)


async def until(condition: Callable[[], Awaitable[object]]) -> None:
    last = time.monotonic() + DEADLINE
    while not await condition():
        assert time.monotonic() < last, "it did not come true"
        await asyncio.sleep(0.01)


def _origin(agent_id: str) -> str:
    return f"http://{agent_id}.agents.localhost"


async def _equip(_agent: Agent) -> StartupInputs:
    return StartupInputs(models=["scripted"], environment={"GIVEN": Sensitive("value of GIVEN")})


async def _prepare(*_: object) -> None:
    """The fake engine needs nothing after an install."""
