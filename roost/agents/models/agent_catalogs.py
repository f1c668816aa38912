"""The catalogues of agents that have model providers of their own: made once, used until they change or are pushed out.

A request keeps what it began with; what has been let go of is closed when its last request is over.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager

from roost.agents.models.catalog import ModelCatalog
from roost.agents.models.listing import ModelListing
from roost.agents.models.model import AgentProviders
from roost.drivers.model.contract import ModelUpstream

MOST_AGENTS = 256
MOST_PROVIDERS = 16
"""Agents of which connections are kept at a time, and providers of one agent."""
_PATIENCE, _FAILED = 5.0, 30.0
"""Seconds in which a provider has to tell its models, for a start waits for it, and until it is asked again."""


class AgentCatalogs:
    def __init__(self, own: AgentProviders, deployment: ModelCatalog, most: int = MOST_AGENTS) -> None:
        self._own = own
        self._deployment = deployment
        self._most = most
        self._shelves: OrderedDict[str, _CatalogEntry] = OrderedDict()
        self._closing: dict[asyncio.Task[None], _CatalogEntry] = {}

    @asynccontextmanager
    async def held(self, agent_id: str) -> AsyncGenerator[ModelCatalog, None]:
        """The agent's catalogue as it is now; its connections stay while the context lasts."""
        # On the shelf before it is filled: whoever changes the agent's keys meanwhile takes this one away.
        shelf = self._shelves.setdefault(agent_id, _CatalogEntry())
        self._shelves.move_to_end(agent_id)
        shelf.readers += 1
        shelf.unread.clear()
        try:
            while len(self._shelves) > self._most:
                self._let_go(self._shelves.popitem(last=False)[1])
            yield await self._filled(agent_id, shelf)
        finally:
            shelf.readers -= 1
            if not shelf.readers:
                shelf.unread.set()

    def forget(self, agent_id: str) -> None:
        """The agent's providers or keys are others now: the next request begins anew."""
        if (shelf := self._shelves.pop(agent_id, None)) is not None:
            self._let_go(shelf)

    async def close(self) -> None:
        """Close all connections, those in use too. Idempotent."""
        for agent_id in list(self._shelves):
            self.forget(agent_id)
        for shelf in self._closing.values():
            shelf.unread.set()
        await asyncio.gather(*self._closing)

    async def _filled(self, agent_id: str, shelf: "_CatalogEntry") -> ModelCatalog:
        async with shelf.filling:
            if shelf.catalogue is None:
                settings = (await self._own.settings(agent_id))[:MOST_PROVIDERS]
                shelf.upstreams = [self._own.connect(agent_id, one) for one in settings]
                listings = [ModelListing(upstream, patience=_PATIENCE, failed=_FAILED) for upstream in shelf.upstreams]
                shelf.catalogue = ModelCatalog(listings, below=self._deployment) if listings else self._deployment
        return shelf.catalogue

    def _let_go(self, shelf: "_CatalogEntry") -> None:
        task = asyncio.create_task(shelf.close())
        self._closing[task] = shelf
        task.add_done_callback(self._closing.pop)


class _CatalogEntry:
    """What is kept of one agent; `unread` while nobody uses it."""

    def __init__(self) -> None:
        self.catalogue: ModelCatalog | None = None
        self.upstreams: Sequence[ModelUpstream] = ()
        self.filling = asyncio.Lock()
        self.readers = 0
        self.unread = asyncio.Event()
        self.unread.set()

    async def close(self) -> None:
        """Close the connections as soon as nobody uses them."""
        await self.unread.wait()
        for upstream in self.upstreams:
            await upstream.close()
