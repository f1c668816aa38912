"""Upstream for Anthropic's Messages API."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing

from roost.drivers.model.anthropic.answer import ChunkTranslator, chat_completion
from roost.drivers.model.anthropic.request import messages_request
from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import Json
from roost.drivers.model.remote import RemoteUpstream

_VERSION = "2023-06-01"


class AnthropicUpstream(RemoteUpstream):
    list_path = "/v1/models?limit=1000"

    async def complete(self, request: ChatRequest) -> Json:
        answer = await self._post("/v1/messages", messages_request(request))
        if answer.get("type") != "message":
            raise self._malformed_answer()
        return chat_completion(answer)

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Json, None]:
        chunks = ChunkTranslator(with_usage=request.wants_usage)
        body = {**messages_request(request), "stream": True}
        async with aclosing(self._stream_events("/v1/messages", body)) as events:
            async for event in events:
                for chunk in chunks.translate(event):
                    yield chunk
                if chunks.complete:
                    return
        raise self._truncated_stream()

    def _headers(self) -> Mapping[str, str]:
        headers = {"anthropic-version": _VERSION}
        if self._settings.key is None or self._settings.bearer:
            return {**headers, **super()._headers()}
        return {**headers, "x-api-key": self._settings.key.reveal()}
