"""Versions in the engines' registries, fetched in the background and cached for ten minutes."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from roost.core import clock, log
from roost.core.machine.threads import run_in_daemon_thread
from roost.core.problem import Problem
from roost.drivers.engine.contract import Engine

_TTL_SECONDS, _FAILURE_TTL_SECONDS = 600.0, 60.0
_TIMEOUT_SECONDS = 20.0
_log = log.get_logger("versions")


@dataclass(frozen=True)
class _CachedVersions:
    """Cached versions, None if the registry never responded; `until` is monotonic time."""

    versions: Sequence[str] | None
    until: float


class EngineVersionRegistry:
    def __init__(self) -> None:
        self._cache: dict[str, _CachedVersions] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def list_versions(self, engine: Engine) -> Sequence[str] | None:
        """List versions, newest first and up to ten minutes old; None if the registry has not responded yet."""
        cached = self._cache.get(engine.id)
        if cached is None or cached.until < clock.monotonic_seconds():
            if engine.id not in self._tasks:
                self._tasks[engine.id] = asyncio.create_task(self._fetch(engine))
            await asyncio.wait({self._tasks[engine.id]}, timeout=_TIMEOUT_SECONDS)
            cached = self._cache.get(engine.id)
        return cached.versions if cached else None

    async def _fetch(self, engine: Engine) -> None:
        try:
            versions = tuple(await run_in_daemon_thread(engine.available))
            self._cache[engine.id] = _CachedVersions(versions, clock.monotonic_seconds() + _TTL_SECONDS)
        except Problem as problem:
            _log.warning("version_registry.fetch_failed", engine=engine.id, reason=problem.message)
            previous = self._cache.get(engine.id)
            self._cache[engine.id] = _CachedVersions(
                previous.versions if previous else None, clock.monotonic_seconds() + _FAILURE_TTL_SECONDS
            )
        finally:
            del self._tasks[engine.id]
