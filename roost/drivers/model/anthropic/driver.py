"""Upstream for Anthropic's Messages API."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import httpx2

from roost.drivers.model.anthropic.answer import ChunkTranslator, chat_completion
from roost.drivers.model.anthropic.request import messages_request
from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import Json, ModelSettings, ModelUpstream
from roost.drivers.model.openai import model_ids
from roost.drivers.model.remote import ProviderEndpointClient

_VERSION = "2023-06-01"


class AnthropicUpstream(ModelUpstream):
    def __init__(self, settings: ModelSettings, *, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        """Connect to an endpoint; `transport` replaces the process's own network."""
        super().__init__(settings.name)
        self._settings = settings
        self._remote = ProviderEndpointClient(
            settings, {"anthropic-version": _VERSION, **_key(settings)}, transport=transport
        )

    async def list_models(self) -> Sequence[str]:
        return self._settings.models or model_ids(
            await self._remote.get("/v1/models?limit=1000"), self._settings.prefer
        )

    async def complete(self, request: ChatRequest) -> Json:
        answer = await self._remote.post("/v1/messages", messages_request(request))
        if answer.get("type") != "message":
            raise self._remote.malformed_answer()
        return chat_completion(answer)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Json, None]:
        chunks = ChunkTranslator(with_usage=request.wants_usage)
        body = {**messages_request(request), "stream": True}
        async with aclosing(self._remote.stream_events("/v1/messages", body)) as events:
            async for event in events:
                for chunk in chunks.translate(event):
                    yield chunk
                if chunks.complete:
                    return
        raise self._remote.truncated_stream()

    async def close(self) -> None:
        await self._remote.close()


def _key(settings: ModelSettings) -> dict[str, str]:
    if settings.key is None:
        return {}
    key = settings.key.reveal()
    return {"Authorization": f"Bearer {key}"} if settings.bearer else {"x-api-key": key}
