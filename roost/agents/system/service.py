"""Gathers the state of the deployment. Only the operator may ask (decision 0011)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from sqlalchemy import Connection

from roost import work
from roost.agents.hosts.service import list_hosts
from roost.agents.registry.repository import AgentRepository
from roost.agents.system.model import (
    CheckFinding,
    EngineState,
    SoftwareVersions,
    SystemState,
    find_outdated,
    require_operator,
)
from roost.agents.versions.service import VersionService
from roost.core.db import Database
from roost.core.disk_space import DiskSpace
from roost.core.memory import read_memory_use
from roost.core.ttl_cache import TTLCache
from roost.identity import tenants
from roost.identity.caller import Caller

_FINDINGS_SECONDS = 10.0

ReadReadiness = Callable[[], Awaitable[Mapping[str, bool]]]
RunChecks = Callable[[], Awaitable[Sequence[CheckFinding]]]


class SystemService:
    """host_id: of this server. read_disk: of the disk of its data folder."""

    def __init__(
        self,
        db: Database,
        agents: AgentRepository,
        versions: VersionService,
        *,
        software: SoftwareVersions,
        host_id: str,
        read_disk: Callable[[], DiskSpace],
        read_readiness: ReadReadiness,
        run_checks: RunChecks,
    ) -> None:
        self._db = db
        self._agents = agents
        self._versions = versions
        self._software = software
        self._host_id = host_id
        self._read_disk = read_disk
        self._read_readiness = read_readiness
        self._run_checks = run_checks
        self._findings = TTLCache[str, Sequence[CheckFinding]](_FINDINGS_SECONDS, 1)
        self._checking = asyncio.Lock()

    async def describe(self, caller: Caller) -> SystemState:
        """Return the present state. Raises PermissionDenied."""
        await self._require_operator(caller)
        readiness = await self._read_readiness()
        hosts, operations = await self._db.read(
            lambda connection: (list_hosts(connection), work.count_unfinished(connection))
        )
        return SystemState(
            software=self._software,
            readiness=readiness,
            hosts=hosts,
            host_id=self._host_id,
            operations=operations,
            disk=self._read_disk(),
            memory=read_memory_use(),
        )

    async def check(self, caller: Caller) -> Sequence[CheckFinding]:
        """Return the findings of `roost doctor`, up to 10 s old; they start a container. Raises PermissionDenied."""
        await self._require_operator(caller)
        async with self._checking:
            findings = self._findings.get("")
            if findings is None:
                findings = await self._run_checks()
                self._findings.put("", findings)
            return findings

    async def list_engines(self, caller: Caller) -> Sequence[EngineState]:
        """List the installed engines with the caller's agents that are behind. Raises PermissionDenied."""
        await self._require_operator(caller)
        agents = await self._agents.list(caller.tenant_id)
        return [find_outdated(versions, agents) for versions in await self._versions.list_engines()]

    async def _require_operator(self, caller: Caller) -> None:
        def read(connection: Connection) -> None:
            require_operator(caller, tenants.get_tenant(connection, caller.tenant_id))

        await self._db.read(read)
