"""Answers of the Messages API, whole or as events, in OpenAI's form. Pure. Thinking is not shown."""

import json
from collections.abc import Iterator
from typing import Any

from roost.core import clock
from roost.drivers.model import json_access
from roost.drivers.model.contract import Json

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "pause_turn": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "content_filter",
}


def completion(answer: Json) -> Json:
    """A `message` as a `chat.completion`."""
    blocks = [json_access.obj(block) for block in json_access.items(answer.get("content"))]
    text = "".join(json_access.string(block.get("text")) for block in blocks if block.get("type") == "text")
    calls = [_call(block, json.dumps(json_access.obj(block.get("input")))) for block in blocks if _is_call(block)]
    message: Json = {"role": "assistant", "content": text or None}
    if calls:
        message["tool_calls"] = calls
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer.get("stop_reason")), "logprobs": None}
    return {
        **_head(answer, "chat.completion"),
        "choices": [choice],
        "usage": _usage(json_access.obj(answer.get("usage"))),
    }


class ChunkTranslator:
    """Turns the events of one answer into chunks. `complete` once the answer has ended as it should."""

    def __init__(self, *, with_usage: bool) -> None:
        self.complete = False
        self._with_usage = with_usage
        self._head: Json = {}
        self._usage: Json = {}
        self._calls: dict[int, int] = {}  # number of the block -> number of the call
        self._silent: set[int] = set()  # blocks of calls whose arguments have not begun

    def of(self, event: Json) -> Iterator[Json]:
        """The chunks that an event gives, often none."""
        block = json_access.count(event.get("index"))
        match event.get("type"):
            case "message_start":
                message = json_access.obj(event.get("message"))
                self._head = _head(message, "chat.completion.chunk")
                self._usage = dict(json_access.obj(message.get("usage")))
                yield self._piece({"role": "assistant", "content": ""})
            case "content_block_start" if _is_call(content := json_access.obj(event.get("content_block"))):
                number = self._calls[block] = len(self._calls)
                self._silent.add(block)
                yield self._piece({"tool_calls": [{"index": number, **_call(content, "")}]})
            case "content_block_delta":
                yield from self._delta(block, json_access.obj(event.get("delta")))
            case "content_block_stop" if block in self._silent:
                yield self._arguments(block, "{}")  # a call without arguments has none to send
            case "message_delta":
                self._usage |= json_access.obj(event.get("usage"))
                if reason := json_access.obj(event.get("delta")).get("stop_reason"):
                    yield self._piece({}, _finish(reason))
            case "message_stop":
                self.complete = True
                if self._with_usage:
                    yield {**self._head, "choices": [], "usage": _usage(self._usage)}
            case _:
                return

    def _delta(self, block: int, delta: Json) -> Iterator[Json]:
        if text := json_access.string(delta.get("text")):
            yield self._piece({"content": text})
        if (part := json_access.string(delta.get("partial_json"))) and block in self._calls:
            yield self._arguments(block, part)

    def _arguments(self, block: int, part: str) -> Json:
        self._silent.discard(block)
        return self._piece({"tool_calls": [{"index": self._calls[block], "function": {"arguments": part}}]})

    def _piece(self, delta: Json, finish: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
        return {**self._head, "choices": [choice]}


def _is_call(block: Json) -> bool:
    return block.get("type") == "tool_use"


def _call(block: Json, arguments: str) -> Json:
    function = {"name": json_access.string(block.get("name")), "arguments": arguments}
    return {"id": json_access.string(block.get("id")), "type": "function", "function": function}


def _head(message: Json, kind: str) -> Json:
    identity, model = json_access.string(message.get("id")), json_access.string(message.get("model"))
    return {"id": identity, "object": kind, "created": int(clock.utc_now().timestamp()), "model": model}


def _finish(reason: Any) -> str:
    return _FINISH.get(json_access.string(reason), "stop")


def _usage(usage: Json) -> Json:
    """OpenAI counts what came from and went to the cache as part of the prompt."""
    cached = json_access.count(usage.get("cache_read_input_tokens"))
    asked = (
        json_access.count(usage.get("input_tokens"))
        + json_access.count(usage.get("cache_creation_input_tokens"))
        + cached
    )
    answered = json_access.count(usage.get("output_tokens"))
    return {
        "prompt_tokens": asked,
        "completion_tokens": answered,
        "total_tokens": asked + answered,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
