"""The state of the deployment over HTTP, for the operator."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from fastapi import APIRouter, Depends
from pydantic import Field

from roost.agents.lifecycle.system.model import CheckStatus, EngineState, SystemState
from roost.agents.lifecycle.system.service import SystemService
from roost.identity.authenticator import ServiceCaller
from roost.web.schemas import ApiSchema, Moment
from roost.web.service_registry import provide_service
from roost.work import OperationState


class SoftwareRecord(ApiSchema):
    roost: str = Field(examples=["0.1.0"])
    python: str = Field(examples=["3.11.7"])
    platform: str = Field(examples=["Linux-6.12-x86_64"])
    database: str = Field(examples=["SQLite"])


class HostRecord(ApiSchema):
    """A server of the deployment. `seenAt` is its last heartbeat, null after a clean stop."""

    id: str
    name: str = Field(examples=["one.example.com"])
    is_running: bool = Field(examples=[True])
    is_this: bool = Field(examples=[True])
    """Whether it is the server that answers."""
    started_at: Moment
    seen_at: Moment | None


class OperationCountsRecord(ApiSchema):
    """Unfinished background work of all tenants and servers; `failing`: what failed last and keeps failing."""

    pending: int = Field(examples=[0])
    paused: int = Field(examples=[0])
    running: int = Field(examples=[1])
    failing: int = Field(examples=[0])


class DiskRecord(ApiSchema):
    """Bytes of the disk of the data folder; 0 where the file system does not count them."""

    free: int = Field(examples=[53687091200])
    total: int = Field(examples=[107374182400])


class MemoryRecord(ApiSchema):
    """Bytes of memory: of the machine, available without swapping, and resident of the server without its agents."""

    total: int = Field(examples=[8589934592])
    available: int = Field(examples=[4294967296])
    server: int = Field(examples=[209715200])


class SystemRecord(ApiSchema):
    software: SoftwareRecord
    checks: Mapping[str, Literal["ok", "failing"]] = Field(examples=[{"database": "ok", "disk": "ok"}])
    """As `/readyz`."""
    hosts: Sequence[HostRecord]
    operations: OperationCountsRecord
    disk: DiskRecord
    memory: MemoryRecord


class CheckRecord(ApiSchema):
    """A check of `roost doctor`. `no`: missing or not enforced; `fail`: agents cannot run."""

    part: str = Field(examples=["disk"])
    status: CheckStatus = Field(examples=["ok"])
    detail: str = Field(examples=["50.0 GiB free"])
    """What was found, and the remedy."""


class CheckList(ApiSchema):
    checks: Sequence[CheckRecord]


class OutdatedAgentRecord(ApiSchema):
    agent_id: str
    name: str
    agent_version: str


class InstalledEngineRecord(ApiSchema):
    """An engine. `latestVersion` is null if no release is known; the lists are newest first."""

    engine: str
    installed_versions: Sequence[str] = Field(examples=[["2026.9.6"]])
    available_versions: Sequence[str]
    latest_version: str | None
    outdated_agents: Sequence[OutdatedAgentRecord]
    """Your agents of this engine with an older version."""


class InstalledEngineList(ApiSchema):
    engines: Sequence[InstalledEngineRecord]


def system_record(state: SystemState) -> SystemRecord:
    counts, memory = state.operations, state.memory
    return SystemRecord(
        software=SoftwareRecord(**vars(state.software)),
        checks={name: "ok" if passed else "failing" for name, passed in state.readiness.items()},
        hosts=[
            HostRecord(**vars(host), is_running=host.is_running(state.now), is_this=host.id == state.host_id)
            for host in state.hosts
        ],
        operations=OperationCountsRecord(
            pending=counts[OperationState.PENDING],
            paused=counts[OperationState.PAUSED],
            running=counts[OperationState.RUNNING],
            failing=state.failing,
        ),
        disk=DiskRecord(**vars(state.disk)),
        memory=MemoryRecord(total=memory.total, available=memory.available, server=memory.process),
    )


def _engine_record(engine: EngineState) -> InstalledEngineRecord:
    return InstalledEngineRecord(
        engine=engine.versions.engine,
        installed_versions=engine.versions.installed,
        available_versions=engine.versions.releases,
        latest_version=engine.latest,
        outdated_agents=[
            OutdatedAgentRecord(agent_id=agent.id, name=agent.profile.name, agent_version=agent.engine_version)
            for agent in engine.outdated
        ],
    )


Service = Annotated[SystemService, Depends(provide_service(SystemService))]
router = APIRouter(prefix="/v0/system", tags=["system"])


@router.get("")
async def describe_system(caller: ServiceCaller, system: Service) -> SystemRecord:
    """Return versions, health, servers, background work, disk and memory. Only for the default tenant."""
    return system_record(await system.describe(caller))


@router.get("/checks")
async def check_system(caller: ServiceCaller, system: Service) -> CheckList:
    """Run the checks of `roost doctor`, which take seconds. Only for the default tenant."""
    return CheckList(checks=[CheckRecord.model_validate(finding) for finding in await system.check(caller)])


@router.get("/engines")
async def list_engine_states(caller: ServiceCaller, system: Service) -> InstalledEngineList:
    """List the installed engines, their releases, and your agents that are behind. Only for the default tenant."""
    return InstalledEngineList(engines=[_engine_record(engine) for engine in await system.list_engines(caller)])
