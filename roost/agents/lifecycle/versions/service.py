"""Versions of engines: lists for agents, and installation of missing versions.

It rejects versions that are not in the registry, and more versions than the limit.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from roost.agents.lifecycle.versions import model
from roost.agents.lifecycle.versions.model import (
    EngineReleases,
    InvalidEngineVersion,
    TooManyEngineVersions,
    VersionChoices,
    VersionInstallFailed,
)
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.core import clock, log
from roost.core.machine.threads import run_in_daemon_thread
from roost.core.problem import Problem
from roost.drivers.engine.contract import Engine, EngineNotInstalled, Progress

_TTL_SECONDS, _FAILURE_TTL_SECONDS = 600.0, 60.0
_TIMEOUT_SECONDS = 20.0
_NOT_FETCHED = None, float("-inf")
_LOG_INTERVAL_SECONDS = 5.0
_log = log.get_logger("versions")

Prepare = Callable[[Engine, str, Progress], Awaitable[None]]
"""Completes a new version once after its install: channels, and what makes it start fast."""


class VersionService:
    def __init__(self, runtimes: AgentRuntimes, prepare: Prepare) -> None:
        self._agents = runtimes.agents
        self._runtimes = runtimes
        self._prepare = prepare
        self._published: dict[str, tuple[Sequence[str] | None, float]] = {}
        """Versions in the engines' registries, None if one never responded, and until when that is believed."""
        self._fetching: dict[str, asyncio.Task[None]] = {}
        self._installing: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def list_for_agent(self, agent_id: str) -> VersionChoices:
        """List the versions for an agent. Raises AgentNotFound."""
        agent = await self._agents.get(agent_id)
        return await self._get_choices(self._runtimes.get_engine(agent.engine), agent.engine_version)

    async def list_for_new_agents(self) -> VersionChoices:
        """List the versions for a new agent, with its default. Raises EngineNotInstalled."""
        if not (offered := self._runtimes.list_engines()):
            raise EngineNotInstalled
        installed = offered[0].installed()
        default = offered[0].default_version
        return await self._get_choices(offered[0], default if default in installed else installed[0])

    async def list_engines(self) -> Sequence[EngineReleases]:
        """List the versions of all installed engines, in order of preference."""
        engines = self._runtimes.list_engines()
        releases = await asyncio.gather(*(self._list_releases(engine) for engine in engines))
        return [EngineReleases(one.id, one.installed(), found) for one, found in zip(engines, releases, strict=True)]

    async def check_update(self, agent_id: str) -> tuple[str, str]:
        """Return the current and the latest version, which is never older. Raises AgentNotFound."""
        agent = await self._agents.get(agent_id)
        current = agent.engine_version
        return current, await self.find_latest(self._runtimes.get_engine(agent.engine), current)

    async def find_latest(self, engine: Engine, current: str) -> str:
        """Return the newest release, or `current` if that is newer."""
        return max([current, *await self._list_releases(engine)], key=model.version_key)

    async def require(self, engine: Engine, version: str) -> None:
        """Check that a version is installed or can be installed.

        Raises InvalidEngineVersion, also if the registry does not respond, and TooManyEngineVersions.
        """
        if version in engine.installed():
            return
        if not model.is_version(version):
            raise InvalidEngineVersion
        offered = await self._list_published(engine)
        if offered is None:
            raise InvalidEngineVersion(detail="It is not installed, and the engine's registry does not respond")
        if version not in offered:
            raise InvalidEngineVersion
        self._check_limit(engine, version)

    async def install(self, engine: Engine, version: str) -> None:
        """Install a version; concurrent calls share one install. Raises VersionInstallFailed."""
        if version in engine.installed():
            return
        key = (engine.id, version)
        if key not in self._installing:
            try:
                self._check_limit(engine, version)  # again, for several versions at once
            except TooManyEngineVersions as problem:
                raise VersionInstallFailed(problem.message) from None
            self._installing[key] = asyncio.create_task(self._install(engine, version))
        try:
            await asyncio.wait_for(asyncio.shield(self._installing[key]), model.INSTALL_SECONDS)
        except TimeoutError:
            raise VersionInstallFailed from None

    async def _install(self, engine: Engine, version: str) -> None:
        progress = _progress_logger(engine, version)
        try:
            await run_in_daemon_thread(lambda: engine.install(version, progress))
            await self._prepare(engine, version, progress)
        except Problem as problem:
            _log.error("version.install_failed", engine=engine.id, version=version, reason=problem.message)
            raise VersionInstallFailed from problem
        finally:
            del self._installing[engine.id, version]
        _log.info("version.installed", engine=engine.id, version=version)

    async def _list_published(self, engine: Engine) -> Sequence[str] | None:
        """List versions, newest first and up to ten minutes old; None if the registry has not responded yet."""
        versions, until = self._published.get(engine.id, _NOT_FETCHED)
        if until < clock.monotonic_seconds():
            if engine.id not in self._fetching:
                self._fetching[engine.id] = asyncio.create_task(self._fetch(engine))
            await asyncio.wait({self._fetching[engine.id]}, timeout=_TIMEOUT_SECONDS)
            versions, _ = self._published.get(engine.id, _NOT_FETCHED)
        return versions

    async def _fetch(self, engine: Engine) -> None:
        versions, _ = self._published.get(engine.id, _NOT_FETCHED)
        seconds = _FAILURE_TTL_SECONDS
        try:
            versions, seconds = tuple(await run_in_daemon_thread(engine.available)), _TTL_SECONDS
        except Problem as problem:
            _log.warning("version_registry.fetch_failed", engine=engine.id, reason=problem.message)
        finally:
            del self._fetching[engine.id]
        self._published[engine.id] = versions, clock.monotonic_seconds() + seconds

    def _check_limit(self, engine: Engine, version: str) -> None:
        """Raise TooManyEngineVersions unless the version may be added to those that are there or on their way."""
        present = {*engine.installed(), *(one for engine_id, one in self._installing if engine_id == engine.id)}
        if len(present - {version}) >= model.VERSIONS_LIMIT:
            raise TooManyEngineVersions

    async def _get_choices(self, engine: Engine, current: str) -> VersionChoices:
        engines = self._runtimes.list_engines()
        releases = await asyncio.gather(*(self._list_releases(one) for one in engines))
        per_engine = {one.id: versions for one, versions in zip(engines, releases, strict=True)}
        return VersionChoices(engine.id, current, per_engine.get(engine.id, ()), per_engine)

    async def _list_releases(self, engine: Engine) -> Sequence[str]:
        return model.sort_releases([*engine.installed(), *(await self._list_published(engine) or ())])


def _progress_logger(engine: Engine, version: str) -> Progress:
    last = -_LOG_INTERVAL_SECONDS

    def progress(step: str, done: float | None) -> None:
        nonlocal last
        if clock.monotonic_seconds() - last >= _LOG_INTERVAL_SECONDS:
            last = clock.monotonic_seconds()
            _log.info("version.install_progressed", engine=engine.id, version=version, step=step, done=done)

    return progress
