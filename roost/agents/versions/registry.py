"""What the registries offer: asked aside, at most every ten minutes for each engine, and never waited for long."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from roost.core import clock, log
from roost.core.daemon_thread import run_in_daemon_thread
from roost.core.problem import Problem
from roost.drivers.engine.contract import Engine

_KEPT, _KEPT_FAILURE = 600.0, 60.0
_PATIENCE = 20.0
_log = log.get_logger("versions")


@dataclass(frozen=True)
class _CachedVersions:
    """`versions` is None when the registry never answered; `until` is on the monotonic clock."""

    versions: Sequence[str] | None
    until: float


class EngineVersionRegistry:
    def __init__(self) -> None:
        self._answers: dict[str, _CachedVersions] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}

    async def offered(self, engine: Engine) -> Sequence[str] | None:
        """The versions, newest first, perhaps ten minutes old; None when the registry has given no answer yet."""
        answer = self._answers.get(engine.id)
        if answer is None or answer.until < clock.monotonic_seconds():
            if engine.id not in self._asking:
                self._asking[engine.id] = asyncio.create_task(self._ask(engine))
            await asyncio.wait({self._asking[engine.id]}, timeout=_PATIENCE)
            answer = self._answers.get(engine.id)
        return answer.versions if answer else None

    async def _ask(self, engine: Engine) -> None:
        try:
            versions = tuple(await run_in_daemon_thread(engine.available))
            self._answers[engine.id] = _CachedVersions(versions, clock.monotonic_seconds() + _KEPT)
        except Problem as problem:
            _log.warning("a registry cannot be asked for versions", engine=engine.id, reason=problem.message)
            former = self._answers.get(engine.id)
            self._answers[engine.id] = _CachedVersions(
                former.versions if former else None, clock.monotonic_seconds() + _KEPT_FAILURE
            )
        finally:
            del self._asking[engine.id]
