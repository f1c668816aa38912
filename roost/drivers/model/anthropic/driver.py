"""Upstream for Anthropic's Messages API, whose answers and events it translates without blocks of thinking."""

import json
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any

from roost.core import clock
from roost.drivers.model.anthropic.request import messages_request
from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import Json
from roost.drivers.model.json_access import as_count, as_list, as_object, as_string
from roost.drivers.model.remote import RemoteUpstream

_VERSION = "2023-06-01"
_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


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


def chat_completion(answer: Json) -> Json:
    """Translate a `message` to a `chat.completion`."""
    blocks = [as_object(block) for block in as_list(answer.get("content"))]
    text = "".join(as_string(block.get("text")) for block in blocks if block.get("type") == "text")
    calls = [_tool_call(block, json.dumps(as_object(block.get("input")))) for block in blocks if _is_call(block)]
    message: Json = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    reason = _finish_reason(answer.get("stop_reason"))
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    usage = _usage(as_object(answer.get("usage")))
    return {**_head(answer, "chat.completion"), "choices": [choice], "usage": usage}


class ChunkTranslator:
    """Translator of one answer's events to chunks; `complete` after the last event of a whole answer."""

    def __init__(self, *, with_usage: bool) -> None:
        self.complete = False
        self._with_usage = with_usage
        self._head: Json = {}
        self._usage: Json = {}
        self._reason: Any = None
        self._calls: dict[int, int] = {}  # block index -> call index
        self._inputs: dict[int, str] = {}  # of calls without a delta yet: the arguments that came with their start

    def translate(self, event: Json) -> Iterator[Json]:
        """Yield the chunks of an event, often none."""
        block = as_count(event.get("index"))
        match event.get("type"):
            case "message_start":
                message = as_object(event.get("message"))
                self._head = _head(message, "chat.completion.chunk")
                self._usage = dict(as_object(message.get("usage")))
                yield self._chunk({"role": "assistant", "content": ""})
                for content in as_list(message.get("content")):
                    yield from self._text_chunks(as_object(content))
            case "content_block_start" if _is_call(content := as_object(event.get("content_block"))):
                number = self._calls[block] = len(self._calls)
                self._inputs[block] = json.dumps(as_object(content.get("input")))
                yield self._chunk({"tool_calls": [{"index": number, **_tool_call(content, "")}]})
            case "content_block_start":  # Anthropic begins without text, compatible services may not
                yield from self._text_chunks(as_object(event.get("content_block")))
            case "content_block_delta":
                yield from self._delta_chunks(block, as_object(event.get("delta")))
            case "content_block_stop" if block in self._inputs:
                yield self._arguments_chunk(block, self._inputs[block])  # clients expect arguments for every call
            case "message_delta":
                given = as_object(event.get("usage"))
                self._usage |= {name: count for name, count in given.items() if count is not None}
                self._reason = as_object(event.get("delta")).get("stop_reason") or self._reason
            case "message_stop":
                self.complete = True
                yield self._chunk({}, _finish_reason(self._reason))
                if self._with_usage:
                    yield {**self._head, "choices": [], "usage": _usage(self._usage)}
            case _:
                return

    def _delta_chunks(self, block: int, delta: Json) -> Iterator[Json]:
        if text := as_string(delta.get("text")):
            yield self._chunk({"content": text})
        if (part := as_string(delta.get("partial_json"))) and block in self._calls:
            yield self._arguments_chunk(block, part)

    def _text_chunks(self, block: Json) -> Iterator[Json]:
        if block.get("type") == "text" and (text := as_string(block.get("text"))):
            yield self._chunk({"content": text})

    def _arguments_chunk(self, block: int, part: str) -> Json:
        self._inputs.pop(block, None)
        return self._chunk({"tool_calls": [{"index": self._calls[block], "function": {"arguments": part}}]})

    def _chunk(self, delta: Json, finish: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {**self._head, "choices": [choice]}


def _is_call(block: Json) -> bool:
    return block.get("type") == "tool_use"


def _tool_call(block: Json, arguments: str) -> Json:
    function = {"name": as_string(block.get("name")), "arguments": arguments}
    return {"id": as_string(block.get("id")), "type": "function", "function": function}


def _head(message: Json, kind: str) -> Json:
    identity, model = as_string(message.get("id")), as_string(message.get("model"))
    return {"id": identity, "object": kind, "created": int(clock.utc_now().timestamp()), "model": model}


def _finish_reason(reason: Any) -> str:
    return _FINISH.get(as_string(reason), "stop")


def _usage(usage: Json) -> Json:
    """Translate the usage; OpenAI counts cached tokens as part of the prompt."""
    cached = as_count(usage.get("cache_read_input_tokens"))
    prompt = as_count(usage.get("input_tokens")) + as_count(usage.get("cache_creation_input_tokens")) + cached
    completion = as_count(usage.get("output_tokens"))
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
