"""Which models there are: asks the upstreams and remembers their answers for a while.

Every model is called `upstream/model`; those of the default upstream also by their own name.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from roost.agents.models.errors import UnknownModel
from roost.agents.models.model import ModelInfo
from roost.core import clock, log
from roost.drivers.model.contract import Upstream, UpstreamProblem, UpstreamUnavailable

_FRESH = 30.0
_FAILED = 5.0
_PATIENCE = 15.0
"""Seconds: how long an answer counts, how long a failure, and how long an upstream may take."""

_log = log.get(__name__)


@dataclass(frozen=True)
class _Known:
    until: float
    models: Sequence[str]
    problem: str | None = None


class Catalogue:
    def __init__(self, upstreams: Sequence[Upstream], default: str | None) -> None:
        """`default` is the name of an upstream (else it is the first), or `upstream/model` to put that model first."""
        self._upstreams = {upstream.name: upstream for upstream in upstreams}
        if not upstreams or len(self._upstreams) < len(upstreams):
            raise ValueError("the model gateway has upstreams, each with a name of its own")
        name, _, self._preferred = (default or upstreams[0].name).partition("/")
        if name not in self._upstreams:
            raise ValueError(f"there is no upstream {name}")
        self._default = self._upstreams[name]
        self._known: dict[str, _Known] = {}
        self._asking = {name: asyncio.Lock() for name in self._upstreams}

    async def list(self) -> Sequence[ModelInfo]:
        """The default model first. Upstreams that do not answer are left out."""
        found: list[ModelInfo] = []
        for upstream in self._upstreams.values():
            try:
                models = await self._models(upstream)
            except UpstreamUnavailable:
                continue
            if upstream is self._default:
                own = sorted(models, key=lambda model: model != self._preferred)
                found[:0] = [ModelInfo(model, upstream.name) for model in own]
            found += [ModelInfo(f"{upstream.name}/{model}", upstream.name) for model in models]
        return found

    async def find(self, model: str) -> tuple[Upstream, str]:
        """The upstream and its own id of the model. Raises UnknownModel, UpstreamUnavailable."""
        name, _, own = model.partition("/")
        upstream = self._upstreams.get(name)
        if upstream is not None and own in await self._models(upstream):
            return upstream, own
        if model in await self._models(self._default):
            return self._default, model
        raise UnknownModel(model)

    async def _models(self, upstream: Upstream) -> Sequence[str]:
        async with self._asking[upstream.name]:
            known = self._known.get(upstream.name)
            if known is None or known.until < clock.monotonic():
                known = self._known[upstream.name] = await _asked(upstream, known.models if known else ())
        if known.problem is not None and not known.models:
            raise UpstreamUnavailable(known.problem)
        return known.models


async def _asked(upstream: Upstream, former: Sequence[str]) -> _Known:
    """What the upstream serves now; where it does not tell, what it served before."""
    problem = f"The model provider {upstream.name} does not list its models"
    try:
        async with asyncio.timeout(_PATIENCE):
            models = await upstream.models()
    except UpstreamProblem as error:
        problem = f"{problem}: {error.message}"
    except TimeoutError:
        problem = f"{problem} in time"
    else:
        return _Known(clock.monotonic() + _FRESH, models)
    _log.warning("models unknown", upstream=upstream.name, problem=problem)
    return _Known(clock.monotonic() + _FAILED, former, problem)
