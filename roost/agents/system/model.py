"""What the operator sees of a deployment, and who is the operator. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from roost.agents.hosts.model import Host
from roost.agents.registry.model import Agent
from roost.agents.versions.model import EngineReleases, version_key
from roost.core.disk_space import DiskSpace
from roost.core.memory import MemoryUse
from roost.identity.caller import Caller
from roost.identity.errors import PermissionDenied
from roost.identity.model import DEFAULT_TENANT, Tenant
from roost.work import OperationState

CheckFinding = Mapping[str, str]
"""A check of `roost doctor`: `part`, `status` (`ok`, `no` or `fail`) and `detail`, which names the remedy."""


@dataclass(frozen=True)
class SoftwareVersions:
    roost: str
    python: str
    platform: str
    database: str


@dataclass(frozen=True)
class SystemState:
    """State of the server that answers, and of what it shares with other servers: hosts and operations."""

    software: SoftwareVersions
    readiness: Mapping[str, bool]
    hosts: Sequence[Host]
    host_id: str
    operations: Mapping[OperationState, int]
    disk: DiskSpace
    memory: MemoryUse


@dataclass(frozen=True)
class EngineState:
    """Versions of an engine, and the operator's agents that have an older one than its newest release."""

    versions: EngineReleases
    outdated: Sequence[Agent]

    @property
    def latest(self) -> str | None:
        return self.versions.releases[0] if self.versions.releases else None


def require_operator(caller: Caller, tenant: Tenant) -> None:
    """Check for the operator: the default tenant, with a credential without limits. Raises PermissionDenied."""
    if tenant.name != DEFAULT_TENANT or not caller.grants(frozenset()):
        raise PermissionDenied


def find_outdated(versions: EngineReleases, agents: Sequence[Agent]) -> EngineState:
    """Return the state of an engine among the agents of all engines."""
    newest = version_key(versions.releases[0]) if versions.releases else []
    outdated = [one for one in agents if one.engine == versions.engine and version_key(one.engine_version) < newest]
    return EngineState(versions, outdated)
