"""Gathers the state of the deployment. Only the operator may ask (decision 0011)."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from roost import work
from roost.agents.lifecycle.hosts.service import list_hosts
from roost.agents.lifecycle.system.model import (
    CheckResult,
    EngineState,
    SoftwareVersions,
    SystemState,
    find_outdated,
    unfinished_check,
)
from roost.agents.lifecycle.versions.service import VersionService
from roost.agents.registry.repository import AgentRepository
from roost.core.db import Database, read_database_time
from roost.core.machine.disk_space import DiskSpace
from roost.core.machine.memory import read_memory_use
from roost.core.ttl_cache import TTLCache
from roost.identity.caller import Caller
from roost.identity.errors import PermissionDenied
from roost.identity.tenants import is_operator
from roost.work.faults import count_faults

CHECK_SECONDS = 30.0
_RECENT_SECONDS = 10.0

ReadReadiness = Callable[[], Awaitable[Mapping[str, bool]]]
RunChecks = Callable[[Callable[[CheckResult], None]], Awaitable[None]]
"""Runs all checks, and passes each result to a function, perhaps in another thread."""


@dataclass
class SystemService:
    """host_id: of this server. read_disk: of the disk of its data folder."""

    db: Database
    agents: AgentRepository
    versions: VersionService
    software: SoftwareVersions
    host_id: str
    read_disk: Callable[[], DiskSpace]
    read_readiness: ReadReadiness
    run_checks: RunChecks

    def __post_init__(self) -> None:
        self._recent = TTLCache[str, Sequence[CheckResult]](_RECENT_SECONDS, 1)
        self._checking = asyncio.Lock()
        self._results: list[CheckResult] = []
        self._run: asyncio.Future[None] | None = None

    async def describe(self, caller: Caller) -> SystemState:
        """Return the present state. Raises PermissionDenied."""
        await self._require_operator(caller)
        readiness = await self.read_readiness()
        now, hosts, operations, failing = await self.db.read(
            lambda connection: (
                read_database_time(connection),
                list_hosts(connection),
                work.count_unfinished(connection),
                count_faults(connection),
            )
        )
        return SystemState(
            now=now,
            software=self.software,
            readiness=readiness,
            hosts=hosts,
            host_id=self.host_id,
            operations=operations,
            failing=failing,
            disk=self.read_disk(),
            memory=read_memory_use(),
        )

    async def check(self, caller: Caller) -> Sequence[CheckResult]:
        """Return the results of `roost doctor`, up to 10 s old; they start a container. Raises PermissionDenied.

        After 30 s those that there are by then, and one more that says so.
        """
        await self._require_operator(caller)
        async with self._checking:
            results = self._recent.get("")
            if results is None:
                results = await self._check_in_time()
                self._recent.put("", results)
            return results

    async def _check_in_time(self) -> Sequence[CheckResult]:
        if self._run is None:  # else a check of the last time still hangs, in a thread that nothing can end
            self._results = []
            self._run = asyncio.ensure_future(self.run_checks(self._results.append))
        await asyncio.wait({self._run}, timeout=CHECK_SECONDS)
        if not self._run.done():
            return [*self._results, unfinished_check(CHECK_SECONDS, self._results)]
        run, self._run = self._run, None
        run.result()
        return self._results

    async def list_engines(self, caller: Caller) -> Sequence[EngineState]:
        """List the installed engines with the caller's agents that are behind. Raises PermissionDenied."""
        await self._require_operator(caller)
        agents = await self.agents.list(caller.tenant_id)
        return [find_outdated(versions, agents) for versions in await self.versions.list_engines()]

    async def _require_operator(self, caller: Caller) -> None:
        if not await self.db.read(lambda connection: is_operator(connection, caller)):
            raise PermissionDenied
