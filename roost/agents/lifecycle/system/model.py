"""What the operator sees of a deployment. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypedDict

from roost.agents.lifecycle.hosts.model import Host
from roost.agents.lifecycle.versions.model import EngineReleases, version_key
from roost.agents.registry.model import Agent
from roost.core.machine.disk_space import DiskSpace
from roost.core.machine.memory import MemoryUse
from roost.work import OperationState

CheckStatus = Literal["ok", "no", "fail"]
"""Of a part: fine, missing or not enforced, or such that agents cannot run."""


class CheckResult(TypedDict):
    """Result of a check of `roost doctor`. detail: what was found, and the remedy."""

    part: str
    status: CheckStatus
    detail: str


@dataclass(frozen=True)
class SoftwareVersions:
    roost: str
    python: str
    platform: str
    database: str


@dataclass(frozen=True)
class SystemState:
    """State of the server that answers, and of what it shares with other servers: hosts, operations and `now`."""

    now: datetime
    software: SoftwareVersions
    readiness: Mapping[str, bool]
    hosts: Sequence[Host]
    host_id: str
    operations: Mapping[OperationState, int]
    failing: int
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


def find_outdated(versions: EngineReleases, agents: Sequence[Agent]) -> EngineState:
    """Return the state of an engine among the agents of all engines."""
    newest = version_key(versions.releases[0]) if versions.releases else []
    outdated = [one for one in agents if one.engine == versions.engine and version_key(one.engine_version) < newest]
    return EngineState(versions, outdated)


def unfinished_check(seconds: float, before: Sequence[CheckResult]) -> CheckResult:
    """Return the result that stands for the checks which did not finish in time. before: those that did."""
    last = before[-1]["part"] if before else None
    which = f"the checks after {last!r}" if last else "the checks"
    detail = (
        f"{which} did not finish within {seconds:.0f} s; `roost doctor` on the server's machine shows where they hang"
    )
    return {"part": "checks", "status": "fail", "detail": detail}
