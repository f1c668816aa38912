"""Catalogue of models. Names are `upstream/model`, for the default upstream also the model's own id.

The catalogue of an agent's own providers falls back to the deployment's; the agent's own models take precedence.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from roost.agents.models.gateway.errors import UnknownModel
from roost.agents.models.gateway.model import AgentProviders, ModelInfo, ModelOffer
from roost.core import clock, log
from roost.drivers.model.contract import ModelSettings, ModelUpstream, UpstreamProblem, UpstreamUnavailable

_TTL_SECONDS = 30.0
FAILURE_TTL_SECONDS = 5.0
TIMEOUT_SECONDS = 15.0
"""Time to cache a response, to cache a failure, and for an upstream to respond."""
MAX_AGENTS = 256
MAX_PROVIDERS = 16
"""Maximum number of agents with open connections, and of providers of one agent."""
_AGENT_LIST_SECONDS, _AGENT_FAILURE_TTL_SECONDS = 5.0, 30.0
"""Time for a provider to list its models, which delays a gateway's start, and until the next attempt."""

_log = log.get_logger(__name__)


@dataclass(frozen=True)
class _CachedListing:
    until: float
    models: Sequence[str]
    problem: str | None = None


class ModelListing:
    """Cached list of the models of one upstream."""

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


class ModelCatalog:
    def __init__(
        self, listings: Sequence[ModelListing], default: str | None = None, *, fallback: "ModelCatalog | None" = None
    ) -> None:
        """Put the upstream or model `default` first: an upstream's name or `upstream/model`."""
        self._listings = {listing.upstream.name: listing for listing in listings}
        if not listings or len(self._listings) < len(listings):
            raise ValueError("the model gateway needs at least one upstream, and their names must differ")
        name, _, self._preferred = (default or listings[0].upstream.name).partition("/")
        if name not in self._listings:
            raise ValueError(f"the default {default!r} names no upstream; there are {', '.join(self._listings)}")
        self._default = self._listings[name]
        self._fallback = fallback
        others: Sequence[ModelListing] = () if fallback is None else fallback.listings
        self.listings: Sequence[ModelListing] = [
            *listings,
            *(one for one in others if one.upstream.name not in self._listings),
        ]
        """Own listings, and those of the fallback with other names."""

    async def get_offer(self) -> ModelOffer:
        """List every model by each of its ids, the default first, without upstreams that do not respond."""
        results = await asyncio.gather(*map(_models_or_none, self.listings))
        problems = [listing.problem for listing in self.listings if listing.problem is not None]
        models_by_id: dict[str, str] = {}
        for listing, models in zip(self.listings, results, strict=True):
            if listing is self._default:
                own = sorted(models or (), key=lambda model: model != self._preferred)
                models_by_id = dict.fromkeys(own, listing.upstream.name)
        for listing, models in zip(self.listings, results, strict=True):
            for model in models or ():
                models_by_id.setdefault(f"{listing.upstream.name}/{model}", listing.upstream.name)
        return ModelOffer([ModelInfo(model, upstream) for model, upstream in models_by_id.items()], problems)

    async def find(self, model: str) -> tuple[ModelUpstream, str]:
        """Return the upstream and its own id of a model. Raises UnknownModel, UpstreamUnavailable."""
        name, _, own = model.partition("/")
        listing = self._listings.get(name)
        if listing is not None and own in await listing.get_models():
            return listing.upstream, own
        try:
            if model in await self._default.get_models():
                return self._default.upstream, model
            problem: UnknownModel | UpstreamUnavailable = UnknownModel(model)
        except UpstreamUnavailable as unavailable:
            problem = unavailable
        if self._fallback is None:
            raise problem
        try:
            return await self._fallback.find(model)
        except UnknownModel:
            raise problem from None


async def _models_or_none(listing: ModelListing) -> Sequence[str] | None:
    try:
        return await listing.get_models()
    except UpstreamUnavailable:
        return None


class AgentCatalogs:
    """Cache of the catalogues of agents with model providers of their own.

    A request keeps its catalogue until it ends; a removed catalogue is closed when its last request has ended.
    """

    def __init__(self, providers: AgentProviders, deployment: ModelCatalog, max_agents: int = MAX_AGENTS) -> None:
        self._providers = providers
        self._deployment = deployment
        self._max_agents = max_agents
        self._entries: OrderedDict[str, _CatalogEntry] = OrderedDict()
        self._checks = 0
        self._closing: dict[asyncio.Task[None], _CatalogEntry] = {}

    @asynccontextmanager
    async def open_catalog(self, agent_id: str) -> AsyncGenerator[ModelCatalog, None]:
        """Return the agent's current catalogue, whose connections stay open while the context lasts."""
        await self._check(agent_id)
        # Cached before it is loaded, so that a change of the agent's keys meanwhile removes this entry.
        entry = self._entries.setdefault(agent_id, _CatalogEntry())
        self._entries.move_to_end(agent_id)
        entry.users += 1
        entry.unused.clear()
        try:
            while len(self._entries) > self._max_agents:
                self._close_when_unused(self._entries.popitem(last=False)[1])
            yield await self._load(agent_id, entry)
        finally:
            entry.users -= 1
            if not entry.users:
                entry.unused.set()

    def forget(self, agent_id: str | None) -> None:
        """Remove the agent's catalogue after a change of its providers or keys; with None, each that has changed."""
        if agent_id is None:
            self._checks += 1
        elif (entry := self._entries.pop(agent_id, None)) is not None:
            self._close_when_unused(entry)

    async def close(self) -> None:
        """Close all connections, including those in use. Idempotent."""
        for agent_id in list(self._entries):
            self.forget(agent_id)
        for entry in self._closing.values():
            entry.unused.set()
        await asyncio.gather(*self._closing)

    async def _check(self, agent_id: str) -> None:
        """Remove a loaded catalogue that is not what the database has, if that was not checked since it may be so."""
        entry, checks = self._entries.get(agent_id), self._checks
        if entry is None or entry.catalog is None or entry.checks == checks:
            return
        settings = await self._read_settings(agent_id)
        entry.checks = checks
        if settings != entry.settings and self._entries.get(agent_id) is entry:
            self.forget(agent_id)

    async def _read_settings(self, agent_id: str) -> Sequence[ModelSettings]:
        return list(await self._providers.settings(agent_id))[:MAX_PROVIDERS]

    async def _load(self, agent_id: str, entry: "_CatalogEntry") -> ModelCatalog:
        async with entry.loading:
            if entry.catalog is None:
                entry.checks = self._checks
                settings = entry.settings = await self._read_settings(agent_id)
                entry.upstreams = [self._providers.connect(agent_id, one) for one in settings]
                listings = [
                    ModelListing(upstream, timeout=_AGENT_LIST_SECONDS, failure_ttl=_AGENT_FAILURE_TTL_SECONDS)
                    for upstream in entry.upstreams
                ]
                entry.catalog = ModelCatalog(listings, fallback=self._deployment) if listings else self._deployment
        return entry.catalog

    def _close_when_unused(self, entry: "_CatalogEntry") -> None:
        task = asyncio.create_task(entry.close())
        self._closing[task] = entry
        task.add_done_callback(self._closing.pop)


class _CatalogEntry:
    """The catalogue of one agent and its connections; `unused` is set while it has no users."""

    def __init__(self) -> None:
        self.catalog: ModelCatalog | None = None
        self.settings: Sequence[ModelSettings] = ()
        self.upstreams: Sequence[ModelUpstream] = ()
        self.checks = 0
        self.loading = asyncio.Lock()
        self.users = 0
        self.unused = asyncio.Event()
        self.unused.set()

    async def close(self) -> None:
        """Close the connections as soon as they are unused."""
        await self.unused.wait()
        for upstream in self.upstreams:
            await upstream.close()
