"""The model gateway: finds the upstream of a model, gives its answer, whole or in pieces, and counts.

It refuses what is too much at once for one agent. Keys, and what an upstream speaks, are the drivers' business.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, nullcontext
from datetime import timedelta

from roost.agents.models import store
from roost.agents.models.agent_catalogs import AgentCatalogs
from roost.agents.models.catalog import ModelCatalog
from roost.agents.models.concurrency import ConcurrencyLimiter, ConcurrencySlot
from roost.agents.models.errors import UpstreamTimeout
from roost.agents.models.listing import ModelListing
from roost.agents.models.model import IDLE, USAGE_DAYS, WHOLE, AgentProviders, ModelInfo, ModelOffer, ModelUsage
from roost.agents.models.token_count import TokenCount
from roost.agents.models.usage_meter import UsageMeter
from roost.core import clock
from roost.core.db import Database
from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import Json, ModelUpstream
from roost.identity.caller import Caller


class CompletionStream:
    """An answer in pieces, opened: the first piece is there. Iterate it once; `aclose` it whatever happens."""

    def __init__(self, pieces: AsyncIterator[Json], held: AsyncExitStack) -> None:
        self._pieces = pieces
        self._held = held

    def __aiter__(self) -> AsyncIterator[Json]:
        return self._pieces

    async def aclose(self) -> None:
        """End the request upstream, if it has not ended, and count it. Idempotent."""
        await self._held.aclose()


class ModelGateway:
    def __init__(
        self,
        db: Database,
        upstreams: Sequence[ModelUpstream],
        default: str | None = None,
        *,
        own: AgentProviders | None = None,
        idle: float = IDLE,
    ) -> None:
        """`upstreams` are the deployment's, for everybody; `own` is what agents bring for themselves.

        `default` is the name of an upstream, or `upstream/model` to put that model first; `idle` is in seconds.
        """
        self._db = db
        self._upstreams = upstreams
        self._deployment = ModelCatalog([ModelListing(upstream) for upstream in upstreams], default)
        self._own = None if own is None else AgentCatalogs(own, self._deployment)
        self._slots = ConcurrencyLimiter()
        self._meter = UsageMeter(db)
        self._idle = idle

    async def start(self) -> None:
        self._meter.start()

    async def stop(self) -> None:
        """Write down what has been counted and close the upstreams. Idempotent."""
        await self._meter.stop()
        if self._own is not None:
            await self._own.close()
        for upstream in self._upstreams:
            await upstream.close()

    async def offer(self, agent_id: str | None = None) -> ModelOffer:
        """Every model by every id that it has: the deployment's, for an agent with its own before them."""
        async with self._catalogue(agent_id) as catalogue:
            return await catalogue.offer()

    async def get(self, model: str, agent_id: str | None = None) -> ModelInfo:
        """Raises UnknownModel, UpstreamUnavailable."""
        async with self._catalogue(agent_id) as catalogue:
            upstream, _ = await catalogue.find(model)
            return ModelInfo(model, upstream.name)

    def changed(self, agent_id: str) -> None:
        """Call it when an agent's own providers or keys are others: its next request goes by them."""
        if self._own is not None:
            self._own.forget(agent_id)

    def admit(self, caller: Caller) -> AbstractContextManager[ConcurrencySlot]:
        """Hold one of the caller's slots for as long as a request lasts. Raises TooManyAtOnce."""
        return self._slots.taken(caller.agent_id or caller.tenant_id)

    @property
    def running(self) -> Mapping[str, int]:
        """Requests that are running, by the id of the agent, or of the tenant for its own."""
        return self._slots.running

    async def complete(self, caller: Caller, request: ChatRequest) -> Json:
        """A `chat.completion`. Raises UnknownModel, UpstreamProblem, Silent."""
        async with self._catalogue(caller.agent_id) as catalogue:
            upstream, model = await catalogue.find(request.model)
            try:
                async with asyncio.timeout(WHOLE):
                    answer = await upstream.complete(request.for_model(model))
            except TimeoutError:
                raise UpstreamTimeout from None
        tally = TokenCount(request)
        tally.see(answer)
        self._count(caller, f"{upstream.name}/{model}", tally)
        return answer

    async def stream(self, caller: Caller, request: ChatRequest) -> CompletionStream:
        """`chat.completion.chunk` objects. What goes wrong before the first raises here, later out of the iteration.

        Raises UnknownModel, UpstreamProblem, Silent.
        """
        async with AsyncExitStack() as held:
            catalogue = await held.enter_async_context(self._catalogue(caller.agent_id))
            upstream, model = await catalogue.find(request.model)
            chunks = upstream.stream(request.for_model(model))
            first = await self._next(chunks)  # a generator that raises has ended: nothing is left open then
            tally = TokenCount(request)
            held.callback(self._count, caller, f"{upstream.name}/{model}", tally)
            held.push_async_callback(chunks.aclose)
            return CompletionStream(self._pieces(first, chunks, tally, shows_usage=request.wants_usage), held.pop_all())

    async def usage(self, tenant_id: str, agent_id: str | None = None) -> Sequence[ModelUsage]:
        """The tenant's, or one agent's, of the last 31 days, newest first; up to this moment."""
        await self._meter.flush()
        since = (clock.utc_now() - timedelta(days=USAGE_DAYS - 1)).date().isoformat()
        return await self._db.read(lambda connection: store.usage(connection, tenant_id, agent_id, since))

    def _catalogue(self, agent_id: str | None) -> AbstractAsyncContextManager[ModelCatalog]:
        if agent_id is None or self._own is None:
            return nullcontext(self._deployment)
        return self._own.held(agent_id)

    async def _pieces(
        self, chunk: Json | None, chunks: AsyncGenerator[Json, None], tally: TokenCount, *, shows_usage: bool
    ) -> AsyncGenerator[Json, None]:
        while chunk is not None:
            tally.see(chunk)
            if (piece := chunk if shows_usage else _without_usage(chunk)) is not None:
                yield piece
            chunk = await self._next(chunks)

    async def _next(self, chunks: AsyncGenerator[Json, None]) -> Json | None:
        """The next chunk, or None at the end. Raises Silent."""
        try:
            async with asyncio.timeout(self._idle):
                return await anext(chunks, None)
        except TimeoutError:
            raise UpstreamTimeout from None

    def _count(self, caller: Caller, model: str, tally: TokenCount) -> None:
        day = clock.utc_now().date().isoformat()
        agent = caller.agent_id or ""
        self._meter.add(
            ModelUsage(caller.tenant_id, agent, model, day, 1, tally.prompt_tokens, tally.completion_tokens)
        )


def _without_usage(chunk: Json) -> Json | None:
    """The chunk for a client that did not ask for usage; None for one that carries nothing else."""
    if "usage" not in chunk:
        return chunk
    if chunk["usage"] and not chunk.get("choices"):
        return None
    return {name: value for name, value in chunk.items() if name != "usage"}
