"""Cache of the catalogues of agents with model providers of their own.

A request keeps its catalogue until it ends; a removed catalogue is closed when its last request has ended.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from roost.agents.models.gateway.catalog import ModelCatalog, ModelListing
from roost.agents.models.gateway.model import AgentProviders
from roost.drivers.model.contract import ModelUpstream

MAX_AGENTS = 256
MAX_PROVIDERS = 16
"""Maximum number of agents with open connections, and of providers of one agent."""
_LIST_TIMEOUT_SECONDS, _FAILURE_TTL_SECONDS = 5.0, 30.0
"""Time for a provider to list its models, which delays a gateway's start, and until the next attempt."""


class AgentCatalogs:
    def __init__(self, providers: AgentProviders, deployment: ModelCatalog, max_agents: int = MAX_AGENTS) -> None:
        self._providers = providers
        self._deployment = deployment
        self._max_agents = max_agents
        self._entries: OrderedDict[str, _CatalogEntry] = OrderedDict()
        self._closing: dict[asyncio.Task[None], _CatalogEntry] = {}

    @asynccontextmanager
    async def open_catalog(self, agent_id: str) -> AsyncGenerator[ModelCatalog, None]:
        """Return the agent's current catalogue, whose connections stay open while the context lasts."""
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

    def forget(self, agent_id: str) -> None:
        """Remove the agent's catalogue after a change of its providers or keys."""
        if (entry := self._entries.pop(agent_id, None)) is not None:
            self._close_when_unused(entry)

    async def close(self) -> None:
        """Close all connections, including those in use. Idempotent."""
        for agent_id in list(self._entries):
            self.forget(agent_id)
        for entry in self._closing.values():
            entry.unused.set()
        await asyncio.gather(*self._closing)

    async def _load(self, agent_id: str, entry: "_CatalogEntry") -> ModelCatalog:
        async with entry.loading:
            if entry.catalog is None:
                settings = (await self._providers.settings(agent_id))[:MAX_PROVIDERS]
                entry.upstreams = [self._providers.connect(agent_id, one) for one in settings]
                listings = [
                    ModelListing(upstream, timeout=_LIST_TIMEOUT_SECONDS, failure_ttl=_FAILURE_TTL_SECONDS)
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
        self.upstreams: Sequence[ModelUpstream] = ()
        self.loading = asyncio.Lock()
        self.users = 0
        self.unused = asyncio.Event()
        self.unused.set()

    async def close(self) -> None:
        """Close the connections as soon as they are unused."""
        await self.unused.wait()
        for upstream in self.upstreams:
            await upstream.close()
