"""OpenAI-compatible endpoints; requests and answers pass unchanged, within limits.

But for what another model left in a history and these services refuse: its thoughts, and ids of tool calls.
"""

import re
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from roost.drivers.model.chat import ChatMessage, ChatRequest
from roost.drivers.model.contract import ForwardingUpstream, Json
from roost.drivers.model.history import repair_history
from roost.drivers.model.json_access import as_list, as_object
from roost.drivers.model.remote import RemoteUpstream

_CALL_ID = re.compile(r".{1,40}", re.DOTALL)
_CALL_IDS = {"mistral": re.compile(r"[A-Za-z0-9]{9}")}
_STRICT = frozenset({"mistral", "groq"})  # they refuse fields of others' answers: `reasoning_content`, `refusal` ...
_CALL_FIELDS = {"id": True, "type": True, "function": {"name", "arguments"}}
_FIELDS: Any = {**dict.fromkeys(("role", "content", "tool_call_id"), True), "tool_calls": {"__all__": _CALL_FIELDS}}
_LAST_EVENTS = frozenset({"response.completed", "response.incomplete", "response.failed"})


class OpenAIUpstream(RemoteUpstream, ForwardingUpstream):
    list_path = "/models"

    async def complete(self, request: ChatRequest) -> Json:
        answer = await self._post("/chat/completions", self._chat_body(request, stream=False))
        if not as_list(answer.get("choices")):
            raise self._malformed_answer()
        return answer

    async def stream(self, request: ChatRequest) -> AsyncGenerator[Json, None]:
        finished = False
        async with aclosing(self._stream_events("/chat/completions", self._chat_body(request, stream=True))) as chunks:
            async for chunk in chunks:
                finished = finished or _is_final(chunk)
                yield chunk
        if not finished:
            raise self._truncated_stream()

    async def forward(self, path: str, body: Json) -> Json:
        return self._redact_failure(await self._post(path, body))

    async def forward_stream(self, path: str, body: Json) -> AsyncGenerator[Json, None]:
        finished = False
        async with aclosing(self._stream_events(path, body)) as events:
            async for event in events:
                finished = finished or event.get("type") in _LAST_EVENTS
                response = as_object(event.get("response"))
                yield {**event, "response": self._redact_failure(response)} if response else event
        if not finished:
            raise self._truncated_stream()

    def _chat_body(self, request: ChatRequest, *, stream: bool) -> Json:
        history = repair_history(request.messages, _CALL_IDS.get(self.name, _CALL_ID), unique=False)
        if self.name in _STRICT:
            kept = [one.model_dump(include=_FIELDS, exclude_unset=True) for one in history]
            history = [ChatMessage.model_validate(one) for one in kept]
        messages = [one for one in history if one.role != "assistant" or one.parts or one.tool_calls or one.model_extra]
        return request.model_copy(update={"messages": messages}).request_body(stream=stream)


def _is_final(chunk: Json) -> bool:
    return any(as_object(choice).get("finish_reason") for choice in as_list(chunk.get("choices")))
