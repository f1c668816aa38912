"""OpenAI-compatible endpoints; requests and answers pass unchanged, within limits.

But for what another model left in a history and these services refuse: its thoughts, and ids of tool calls.
"""

import re
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from fnmatch import fnmatchcase
from typing import Any

import httpx2

from roost.drivers.model import json_access
from roost.drivers.model.chat import ChatMessage, ChatRequest
from roost.drivers.model.contract import ForwardingUpstream, Json, ModelSettings
from roost.drivers.model.history import repair_history
from roost.drivers.model.remote import ProviderEndpointClient

_MAX_MODELS = 5_000
_MAX_ID_LENGTH = 200
_CALL_ID = re.compile(r".{1,40}", re.DOTALL)
_CALL_IDS = {"mistral": re.compile(r"[A-Za-z0-9]{9}")}
_STRICT = frozenset({"mistral", "groq"})  # they refuse fields of others' answers: `reasoning_content`, `refusal` ...
_CALL_FIELDS = {"id": True, "type": True, "function": {"name", "arguments"}}
_FIELDS: Any = {**dict.fromkeys(("role", "content", "tool_call_id"), True), "tool_calls": {"__all__": _CALL_FIELDS}}
_LAST_EVENTS = frozenset({"response.completed", "response.incomplete", "response.failed"})


class OpenAIUpstream(ForwardingUpstream):
    def __init__(self, settings: ModelSettings, *, transport: httpx2.AsyncBaseTransport | None = None) -> None:
        """Connect to an endpoint; `transport` replaces the process's own network."""
        super().__init__(settings.name)
        self._settings = settings
        key = {} if settings.key is None else {"Authorization": f"Bearer {settings.key.reveal()}"}
        self._remote = ProviderEndpointClient(settings, key, transport=transport)

    async def list_models(self) -> Sequence[str]:
        return self._settings.models or model_ids(await self._remote.get("/models"), self._settings.prefer)

    async def complete(self, request: ChatRequest) -> Json:
        answer = await self._remote.post("/chat/completions", self._chat_body(request, stream=False))
        if not json_access.as_list(answer.get("choices")):
            raise self._remote.malformed_answer()
        return answer

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Json, None]:
        finished = False
        async with aclosing(
            self._remote.stream_events("/chat/completions", self._chat_body(request, stream=True))
        ) as chunks:
            async for chunk in chunks:
                finished = finished or _is_final(chunk)
                yield chunk
        if not finished:
            raise self._remote.truncated_stream()

    async def forward(self, path: str, body: Json) -> Json:
        return self._remote.redact_failure(await self._remote.post(path, body))

    async def forward_stream(self, path: str, body: Json) -> AsyncGenerator[Json, None]:
        finished = False
        async with aclosing(self._remote.stream_events(path, body)) as events:
            async for event in events:
                finished = finished or event.get("type") in _LAST_EVENTS
                response = json_access.as_object(event.get("response"))
                yield {**event, "response": self._remote.redact_failure(response)} if response else event
        if not finished:
            raise self._remote.truncated_stream()

    def _chat_body(self, request: ChatRequest, *, stream: bool) -> Json:
        history = repair_history(request.messages, _CALL_IDS.get(self.name, _CALL_ID), unique=False)
        if self.name in _STRICT:
            kept = [one.model_dump(include=_FIELDS, exclude_unset=True) for one in history]
            history = [ChatMessage.model_validate(one) for one in kept]
        messages = [one for one in history if one.role != "assistant" or one.parts or one.tool_calls or one.model_extra]
        return request.model_copy(update={"messages": messages}).request_body(stream=stream)

    async def close(self) -> None:
        await self._remote.close()


def model_ids(answer: Json, prefer: Sequence[str]) -> Sequence[str]:
    """Return the ids in a list of models, preferred ones first; OpenAI and Anthropic use the same format."""
    found = (
        json_access.as_string(json_access.as_object(entry).get("id"))
        for entry in json_access.as_list(answer.get("data"))[:_MAX_MODELS]
    )
    models = [model for model in found if 0 < len(model) <= _MAX_ID_LENGTH]
    return sorted(models, key=lambda model: _rank(model, prefer))


def _rank(model: str, prefer: Sequence[str]) -> int:
    return next((rank for rank, pattern in enumerate(prefer) if fnmatchcase(model, pattern)), len(prefer))


def _is_final(chunk: Json) -> bool:
    return any(
        json_access.as_object(choice).get("finish_reason") for choice in json_access.as_list(chunk.get("choices"))
    )
