"""The model gateway: routes completions to the upstream of a model and counts usage.

It limits concurrent requests per agent. Drivers handle keys and the upstreams' protocols.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    asynccontextmanager,
    nullcontext,
)
from datetime import date, timedelta
from functools import partial

from roost.agents.models.gateway import store
from roost.agents.models.gateway.catalog import AgentCatalogs, ModelCatalog, ModelListing
from roost.agents.models.gateway.concurrency import ConcurrencyLimiter, ConcurrencySlot
from roost.agents.models.gateway.errors import EndpointUnsupported, StoredResponseRefused, UpstreamTimeout
from roost.agents.models.gateway.model import (
    USAGE_DAYS,
    AgentProviders,
    ModelInfo,
    ModelOffer,
    ModelTimeouts,
    ModelUsage,
    UsageSummary,
)
from roost.agents.models.gateway.token_count import ForwardedTokenCount, TokenCount
from roost.core import clock
from roost.core.db import Connection, Database
from roost.core.periodic import PeriodicFlusher
from roost.drivers.model.chat import ChatRequest, ForwardedRequest
from roost.drivers.model.contract import ForwardingUpstream, Json, ModelUpstream
from roost.identity.caller import Caller

RESPONSES, EMBEDDINGS = "/responses", "/embeddings"
"""Further endpoints of OpenAI's API, which are passed on to a source that has them."""
_STORED_FIELDS = ("previous_response_id", "conversation", "background")
_FLUSH_SECONDS = 1.0


class UsageMeter(PeriodicFlusher):
    """In-memory counters of model usage, flushed to the database every second."""

    def __init__(self, db: Database) -> None:
        super().__init__("model usage", _FLUSH_SECONDS)
        self._db = db
        self._pending: dict[tuple[str, ...], ModelUsage] = {}

    def add(self, usage: ModelUsage) -> None:
        known = self._pending.get(usage.key)
        self._pending[usage.key] = usage if known is None else known + usage

    async def _write(self) -> None:
        if not self._pending:
            return
        batch, self._pending = self._pending, {}
        try:
            await self._db.write(lambda connection: store.add_usage(connection, batch.values()))
        except Exception:
            for usage in batch.values():
                self.add(usage)
            raise


class CompletionStream:
    """An open streamed completion, whose first chunk has arrived. Iterate it once; always `aclose` it."""

    def __init__(self, chunks: AsyncIterator[Json], resources: AsyncExitStack) -> None:
        self._chunks = chunks
        self._resources = resources

    def __aiter__(self) -> AsyncIterator[Json]:
        return self._chunks

    async def aclose(self) -> None:
        """End the request to the upstream if necessary, and count it. Idempotent."""
        await self._resources.aclose()


class ModelGateway:
    def __init__(
        self,
        db: Database,
        upstreams: Sequence[ModelUpstream],
        default: str | None = None,
        *,
        providers: AgentProviders | None = None,
        timeouts: ModelTimeouts | None = None,
        record_use: Callable[[str], None] | None = None,
    ) -> None:
        """Serve the deployment's `upstreams` to all callers, and agents' own `providers` to those agents.

        `default` is the name of an upstream, or `upstream/model` to put that model first. `record_use` is
        called for each request of an agent, with the agent's id.
        """
        self._db = db
        self._upstreams = upstreams
        self._deployment = ModelCatalog([ModelListing(upstream) for upstream in upstreams], default)
        self._agent_catalogs = None if providers is None else AgentCatalogs(providers, self._deployment)
        self._slots = ConcurrencyLimiter()
        self._meter = UsageMeter(db)
        self._timeouts = timeouts or ModelTimeouts()
        self._record_use = record_use

    async def start(self) -> None:
        self._meter.start()

    async def stop(self) -> None:
        """Flush usage and close the upstreams. Idempotent."""
        await self._meter.stop()
        if self._agent_catalogs is not None:
            await self._agent_catalogs.close()
        for upstream in self._upstreams:
            await upstream.close()

    async def get_offer(self, agent_id: str | None = None) -> ModelOffer:
        """List every model by each of its ids; an agent's own models come first."""
        async with self._open_catalog(agent_id) as catalogue:
            return await catalogue.get_offer()

    async def get(self, model: str, agent_id: str | None = None) -> ModelInfo:
        """Return one model. Raises UnknownModel, UpstreamUnavailable."""
        async with self._open_catalog(agent_id) as catalogue:
            upstream, _ = await catalogue.find(model)
            return ModelInfo(model, upstream.name)

    def refresh_agent(self, agent_id: str | None) -> None:
        """Apply a change of an agent's own providers or keys, or perhaps of all agents', to its next request."""
        if self._agent_catalogs is not None:
            self._agent_catalogs.forget(agent_id)

    def acquire_slot(self, caller: Caller) -> AbstractContextManager[ConcurrencySlot]:
        """Hold one of the caller's slots for the duration of a request. Raises TooManyModelRequests."""
        return self._slots.acquire(caller.agent_id or caller.tenant_id)

    async def complete(self, caller: Caller, request: ChatRequest) -> Json:
        """Return a `chat.completion`. Raises UnknownModel, UpstreamProblem, UpstreamTimeout."""
        async with self._open_catalog(caller.agent_id) as catalogue:
            upstream, model = await catalogue.find(request.model)
            async with _time_limit(self._timeouts.answer):
                completion = await upstream.complete(request.for_model(model))
        tokens = TokenCount(request)
        tokens.add(completion)
        self._count(caller, f"{upstream.name}/{model}", tokens)
        return completion

    async def stream(self, caller: Caller, request: ChatRequest) -> CompletionStream:
        """Stream `chat.completion.chunk` objects; errors after the first chunk raise from the iteration.

        Raises UnknownModel, UpstreamProblem, UpstreamTimeout.
        """
        async with AsyncExitStack() as resources:
            catalogue = await resources.enter_async_context(self._open_catalog(caller.agent_id))
            upstream, model = await catalogue.find(request.model)
            chunks, tokens = upstream.stream(request.for_model(model)), TokenCount(request)
            first = await self._begin(chunks, tokens, caller, f"{upstream.name}/{model}", resources)
            visible = self._visible_chunks(first, chunks, tokens, shows_usage=request.wants_usage)
            return CompletionStream(visible, resources.pop_all())

    async def forward(self, caller: Caller, path: str, request: ForwardedRequest) -> Json:
        """Return the answer of a model's source to a request at `path`, which is relative to its base URL.

        Raises EndpointUnsupported, StoredResponseRefused, and the errors of `complete`.
        """
        async with self._open_catalog(caller.agent_id) as catalogue:
            upstream, model, body = await self._route(catalogue, path, request)
            async with _time_limit(self._timeouts.answer):
                answer = await upstream.forward(path, body)
        tokens = ForwardedTokenCount(request)
        tokens.add(answer)
        self._count(caller, model, tokens)
        return answer

    async def forward_stream(self, caller: Caller, path: str, request: ForwardedRequest) -> CompletionStream:
        """Stream the events of an answer in the form of the Responses API; errors are those of `forward`."""
        async with AsyncExitStack() as resources:
            catalogue = await resources.enter_async_context(self._open_catalog(caller.agent_id))
            upstream, model, body = await self._route(catalogue, path, request)
            events, tokens = upstream.forward_stream(path, body), ForwardedTokenCount(request)
            first = await self._begin(events, tokens, caller, model, resources)
            return CompletionStream(self._visible_chunks(first, events, tokens, shows_usage=True), resources.pop_all())

    async def list_usage(self, tenant_id: str, agent_id: str | None = None) -> Sequence[ModelUsage]:
        """List usage of the tenant or of one agent in the last 31 days, newest first."""
        await self._meter.flush()
        since = (clock.utc_now() - timedelta(days=USAGE_DAYS - 1)).date().isoformat()
        return await self._db.read(lambda connection: store.list_usage(connection, tenant_id, agent_id, since))

    async def sum_usage(
        self, tenant_id: str, agent_id: str | None, first: date, last: date, limit: int
    ) -> UsageSummary:
        """Sum usage of the tenant or of one agent; `limit` is the number of models and of agents, the largest first."""

        def read(connection: Connection) -> UsageSummary:
            sums = partial(store.sum_usage, connection, tenant_id, agent_id, (first, last))
            days = sums("day", (last - first).days + 1)
            return UsageSummary(days, sums("model", limit), sums("agent_id", limit))

        await self._meter.flush()
        return await self._db.read_long(read, tenant_id)

    def _open_catalog(self, agent_id: str | None) -> AbstractAsyncContextManager[ModelCatalog]:
        if agent_id is None or self._agent_catalogs is None:
            return nullcontext(self._deployment)
        return self._agent_catalogs.open_catalog(agent_id)

    async def _route(
        self, catalogue: ModelCatalog, path: str, request: ForwardedRequest
    ) -> tuple[ForwardingUpstream, str, Json]:
        """Return the upstream of the model, its name with the upstream's, and the body to forward."""
        upstream, model = await catalogue.find(request.model)
        if not isinstance(upstream, ForwardingUpstream):
            raise EndpointUnsupported(request.model, path)
        body, is_shared = request.for_model(model), upstream in self._upstreams
        return upstream, f"{upstream.name}/{model}", _stateless_body(path, body) if is_shared else body

    async def _begin(
        self,
        chunks: AsyncGenerator[Json, None],
        tokens: TokenCount | ForwardedTokenCount,
        caller: Caller,
        model: str,
        resources: AsyncExitStack,
    ) -> Json | None:
        """Return the first chunk; `resources` then end the request to the upstream, and count it."""
        first = await self._next(chunks)  # a generator that raised has ended, so nothing stays open
        resources.callback(self._count, caller, model, tokens)
        resources.push_async_callback(chunks.aclose)
        return first

    async def _visible_chunks(
        self,
        chunk: Json | None,
        chunks: AsyncGenerator[Json, None],
        tokens: TokenCount | ForwardedTokenCount,
        *,
        shows_usage: bool,
    ) -> AsyncGenerator[Json, None]:
        while chunk is not None:
            tokens.add(chunk)
            if (visible := chunk if shows_usage else _without_usage(chunk)) is not None:
                yield visible
            chunk = await self._next(chunks)

    async def _next(self, chunks: AsyncGenerator[Json, None]) -> Json | None:
        """Return the next chunk, or None at the end. Raises UpstreamTimeout."""
        async with _time_limit(self._timeouts.idle):
            return await anext(chunks, None)

    def _count(self, caller: Caller, model: str, tokens: TokenCount | ForwardedTokenCount) -> None:
        day = clock.utc_now().date().isoformat()
        agent = caller.agent_id or ""
        if agent and self._record_use is not None:
            self._record_use(agent)
        self._meter.add(
            ModelUsage(caller.tenant_id, agent, model, day, 1, tokens.prompt_tokens, tokens.completion_tokens)
        )


@asynccontextmanager
async def _time_limit(seconds: float) -> AsyncGenerator[None]:
    """Raise UpstreamTimeout after `seconds`."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise UpstreamTimeout(seconds) from None


def _stateless_body(path: str, body: Json) -> Json:
    """Keep a provider from storing a response under a key that agents share, with which each could read it.

    Raises StoredResponseRefused if the request needs stored responses.
    """
    if path != RESPONSES:
        return body
    if used := [name for name in _STORED_FIELDS if body.get(name)]:
        raise StoredResponseRefused(used[0])
    return {**body, "store": False}


def _without_usage(chunk: Json) -> Json | None:
    """Remove usage from a chunk; return None if the chunk contains nothing else."""
    if "usage" not in chunk:
        return chunk
    if chunk["usage"] and not chunk.get("choices"):
        return None
    return {name: value for name, value in chunk.items() if name != "usage"}
