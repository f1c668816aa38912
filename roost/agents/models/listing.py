"""The models of one upstream: it is asked, and its answer remembered for a while."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from roost.core import clock, log
from roost.drivers.model.contract import ModelUpstream, UpstreamProblem, UpstreamUnavailable

_FRESH = 30.0
FAILED = 5.0
PATIENCE = 15.0
"""Seconds: how long an answer counts, how long a failure, and how long an upstream may take."""

_log = log.get_logger(__name__)


@dataclass(frozen=True)
class _CachedListing:
    until: float
    models: Sequence[str]
    problem: str | None = None


class ModelListing:
    def __init__(self, upstream: ModelUpstream, *, patience: float = PATIENCE, failed: float = FAILED) -> None:
        """Seconds: how long the upstream may take to answer, and how long it is left alone when it did not."""
        self.upstream = upstream
        self._patience = patience
        self._failed = failed
        self._known: _CachedListing | None = None
        self._asking = asyncio.Lock()

    async def models(self) -> Sequence[str]:
        """What it serves; where it does not tell, what it served before. Raises UpstreamUnavailable."""
        async with self._asking:
            if self._known is None or self._known.until < clock.monotonic_seconds():
                self._known = await self._asked(self._known.models if self._known else ())
            known = self._known
        if known.problem is not None and not known.models:
            raise UpstreamUnavailable(known.problem)
        return known.models

    async def _asked(self, former: Sequence[str]) -> _CachedListing:
        problem = f"The model provider {self.upstream.name} does not list its models"
        try:
            async with asyncio.timeout(self._patience):
                models = await self.upstream.list_models()
        except UpstreamProblem as error:
            problem = f"{problem}: {error.message}"
        except TimeoutError:
            problem = f"{problem} in time"
        else:
            return _CachedListing(clock.monotonic_seconds() + _FRESH, models)
        _log.warning("models unknown", upstream=self.upstream.name, problem=problem)
        return _CachedListing(clock.monotonic_seconds() + self._failed, former, problem)
