"""Cached list of the models of one upstream."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from roost.core import clock, log
from roost.drivers.model.contract import ModelUpstream, UpstreamProblem, UpstreamUnavailable

_TTL_SECONDS = 30.0
FAILURE_TTL_SECONDS = 5.0
TIMEOUT_SECONDS = 15.0
"""Time to cache a response, to cache a failure, and for an upstream to respond."""

_log = log.get_logger(__name__)


@dataclass(frozen=True)
class _CachedListing:
    until: float
    models: Sequence[str]
    problem: str | None = None


class ModelListing:
    def __init__(
        self, upstream: ModelUpstream, *, timeout: float = TIMEOUT_SECONDS, failure_ttl: float = FAILURE_TTL_SECONDS
    ) -> None:
        """Set the upstream's time to respond, and the time until the next attempt after a failure, in seconds."""
        self.upstream = upstream
        self._timeout = timeout
        self._failure_ttl = failure_ttl
        self._cached: _CachedListing | None = None
        self._lock = asyncio.Lock()

    @property
    def problem(self) -> str | None:
        """Return why the last request failed, None after a success."""
        return None if self._cached is None else self._cached.problem

    async def get_models(self) -> Sequence[str]:
        """Return the models, after a failure the previous ones. Raises UpstreamUnavailable."""
        async with self._lock:
            if self._cached is None or self._cached.until < clock.monotonic_seconds():
                self._cached = await self._fetch(self._cached.models if self._cached else ())
            cached = self._cached
        if cached.problem is not None and not cached.models:
            raise UpstreamUnavailable(cached.problem)
        return cached.models

    async def _fetch(self, previous: Sequence[str]) -> _CachedListing:
        problem = f"The model provider {self.upstream.name} does not list its models"
        try:
            async with asyncio.timeout(self._timeout):
                models = await self.upstream.list_models()
        except UpstreamProblem as error:
            problem = f"{problem}: {error.message}"
        except TimeoutError:
            problem = f"{problem} in time"
        else:
            return _CachedListing(clock.monotonic_seconds() + _TTL_SECONDS, models)
        _log.warning("model_list.fetch_failed", upstream=self.upstream.name, problem=problem)
        return _CachedListing(clock.monotonic_seconds() + self._failure_ttl, previous, problem)
