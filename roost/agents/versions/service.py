"""Versions: which there are for an agent, and the install of one that is asked for and not here.

It refuses to install what the registry does not offer, and more versions than the machine should hold.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.repository import AgentRepository
from roost.agents.versions import model
from roost.agents.versions.errors import (
    InvalidEngineVersion,
    TooManyEngineVersions,
    VersionInstallFailed,
    VersionRegistryUnavailable,
)
from roost.agents.versions.model import VersionCheck, VersionChoices
from roost.agents.versions.registry import EngineVersionRegistry
from roost.core import clock, log
from roost.core.daemon_thread import run_in_daemon_thread
from roost.core.problem import Problem
from roost.drivers.engine.contract import Engine, EngineNotInstalled, Progress

Prepare = Callable[[Engine, str, Progress], Awaitable[None]]
"""What has to be done once after an install, so that the version starts fast."""

_log = log.get_logger("versions")
_LOG_EVERY = 5.0


class VersionService:
    def __init__(self, roster: AgentRepository, reach: AgentRuntimes, prepare: Prepare) -> None:
        self._roster = roster
        self._reach = reach
        self._prepare = prepare
        self._registry = EngineVersionRegistry()
        self._installing: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def of_agent(self, agent_id: str) -> VersionChoices:
        """Raises AgentGone."""
        agent = await self._roster.get(agent_id)
        return await self._choices(self._reach.get_engine(agent.engine), agent.engine_version)

    async def of_new_agents(self) -> VersionChoices:
        """For an agent that is made without a wish. Raises EngineMissing."""
        if not (offered := self._reach.list_engines()):
            raise EngineNotInstalled
        installed = offered[0].installed()
        default = offered[0].default_version
        return await self._choices(offered[0], default if default in installed else installed[0])

    async def check(self, agent_id: str) -> VersionCheck:
        """Raises AgentGone."""
        agent = await self._roster.get(agent_id)
        return VersionCheck(
            agent.engine_version, await self.latest(self._reach.get_engine(agent.engine), agent.engine_version)
        )

    async def latest(self, engine: Engine, current: str) -> str:
        """The newest release that there is, or `current` if that is newer."""
        return max([current, *await self._known(engine)], key=model.order)

    async def require(self, engine: Engine, version: str) -> None:
        """That there is such a version, here or to be installed, an old one that is here among them.

        Raises InvalidVersion, UnknownVersions, TooManyVersions.
        """
        installed = engine.installed()
        if version in installed:
            return
        if not model.is_version(version):
            raise InvalidEngineVersion
        offered = await self._registry.offered(engine)
        if offered is None:
            raise VersionRegistryUnavailable
        if version not in offered:
            raise InvalidEngineVersion
        if len(installed) >= model.VERSIONS_LIMIT:
            raise TooManyEngineVersions

    async def install(self, engine: Engine, version: str) -> None:
        """Returns once it is here; all who ask for the same version share one install. Raises NotInstalled."""
        if version in engine.installed():
            return
        key = (engine.id, version)
        if key not in self._installing:
            self._installing[key] = asyncio.create_task(self._install(engine, version))
        try:
            await asyncio.wait_for(asyncio.shield(self._installing[key]), model.INSTALL_SECONDS)
        except TimeoutError:
            raise VersionInstallFailed from None

    async def _install(self, engine: Engine, version: str) -> None:
        progress = _telling(engine, version)
        try:
            await run_in_daemon_thread(lambda: engine.install(version, progress))
            await self._prepare(engine, version, progress)
        except Problem as problem:
            _log.error("install failed", engine=engine.id, version=version, reason=problem.message)
            raise VersionInstallFailed from problem
        finally:
            del self._installing[engine.id, version]
        _log.info("installed", engine=engine.id, version=version)

    async def _choices(self, engine: Engine, current: str) -> VersionChoices:
        here = self._reach.list_engines()
        known = await asyncio.gather(*(self._known(one) for one in here))
        per_engine = {one.id: versions for one, versions in zip(here, known, strict=True)}
        return VersionChoices(engine.id, current, per_engine.get(engine.id, ()), per_engine)

    async def _known(self, engine: Engine) -> Sequence[str]:
        return model.releases([*engine.installed(), *(await self._registry.offered(engine) or ())])


def _telling(engine: Engine, version: str) -> Progress:
    """Progress as lines of the log, one every few seconds."""
    told = -_LOG_EVERY

    def progress(what: str, done: float | None) -> None:
        nonlocal told
        if clock.monotonic_seconds() - told >= _LOG_EVERY:
            told = clock.monotonic_seconds()
            _log.info("installing", engine=engine.id, version=version, step=what, done=done)

    return progress
