"""Translation of OpenAI's chat requests to the Messages API. Pure.

Options that the Messages API lacks (`seed`, `logprobs`, `response_format` ...) are dropped; content that would be lost
(audio, files) is rejected.
"""

import re
from collections.abc import Sequence

from roost.drivers.model import json_access
from roost.drivers.model.chat import ChatMessage, ChatRequest, ContentPart, ToolCall
from roost.drivers.model.contract import Json, UpstreamRefused

MAX_TOKENS = 8_192
"""Limit for requests without one; the Messages API requires a limit, and every current model accepts this one."""

_DATA_URL = re.compile(r"data:(image/[\w.+-]{1,50});base64,", re.IGNORECASE)
_NO_PARAMETERS: Json = {"type": "object", "properties": {}}
_SYSTEM = frozenset({"system", "developer"})
_TEXTS = frozenset({"text", "refusal"})


def messages_request(request: ChatRequest) -> Json:
    """Translate a request. Raises UpstreamRefused for content that the Messages API does not support."""
    body: Json = {
        "model": request.model,
        "max_tokens": request.max_completion_tokens or request.max_tokens or MAX_TOKENS,
        "messages": _turns([message for message in request.messages if message.role not in _SYSTEM]),
    }
    if system := [block for message in request.messages if message.role in _SYSTEM for block in _blocks(message.parts)]:
        body["system"] = system
    if request.functions:
        body["tools"] = _tools(request)
    if choice := _tool_choice(request):
        body["tool_choice"] = choice
    if request.temperature is not None:
        body["temperature"] = min(request.temperature, 1.0)  # OpenAI's scale goes to 2
    if request.top_p is not None:
        body["top_p"] = request.top_p
    if request.stop:
        body["stop_sequences"] = [request.stop] if isinstance(request.stop, str) else request.stop
    return body


def _turns(messages: Sequence[ChatMessage]) -> list[Json]:
    """Merge consecutive messages of one role, so that all tool results of a turn are in one message."""
    turns: list[Json] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        if not (blocks := _content(message)):
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return turns


def _content(message: ChatMessage) -> list[Json]:
    blocks = _blocks(message.parts)
    if message.role == "tool":
        result: Json = {"type": "tool_result", "tool_use_id": message.tool_call_id or ""}
        return [{**result, "content": blocks} if blocks else result]
    if message.role == "assistant":
        return blocks + [_tool_use(call) for call in message.tool_calls or [] if call.function is not None]
    return blocks


def _tool_use(call: ToolCall) -> Json:
    assert call.function is not None
    given = call.function.arguments or "{}"
    value = json_access.parse_json(given)
    # A model's malformed JSON is sent back unchanged, because it is part of its history.
    arguments: Json = json_access.as_object(value) if isinstance(value, dict) else {"arguments": given}
    return {"type": "tool_use", "id": call.id, "name": call.function.name, "input": arguments}


def _blocks(parts: Sequence[ContentPart]) -> list[Json]:
    """Translate parts to content blocks, without empty text, which the Messages API rejects."""
    return [_block(part) for part in parts if part.type not in _TEXTS or part.text]


def _block(part: ContentPart) -> Json:
    block: Json
    if part.text and part.type in _TEXTS:
        block = {"type": "text", "text": part.text}
    elif part.image_url is not None:
        block = {"type": "image", "source": _image(part.image_url.url)}
    else:
        raise UpstreamRefused(f"This model does not accept content of type {part.type[:50]!r}")
    if cache := json_access.as_object((part.model_extra or {}).get("cache_control")):
        block["cache_control"] = cache  # clients that know the provider mark blocks to cache
    return block


def _image(url: str) -> Json:
    if found := _DATA_URL.match(url):
        return {"type": "base64", "media_type": found[1].lower(), "data": url[found.end() :]}
    if url.startswith(("https://", "http://")):
        return {"type": "url", "url": url}
    raise UpstreamRefused("An image must be a base64 data URL or an HTTP URL")


def _tools(request: ChatRequest) -> list[Json]:
    tools: list[Json] = []
    for function in request.functions:
        tool: Json = {"name": function.name, "input_schema": function.parameters or _NO_PARAMETERS}
        if function.description:
            tool["description"] = function.description
        tools.append(tool)
    return tools


def _tool_choice(request: ChatRequest) -> Json | None:
    """Translate the tool choice; None omits it, which is required without tools."""
    if not request.functions:
        return None
    one_at_a_time = request.parallel_tool_calls is False
    given = request.tool_choice
    choice: Json = {"type": "auto"}
    if given == "none":
        return {"type": "none"}
    if given == "required":
        choice = {"type": "any"}
    elif name := json_access.as_string(json_access.as_object(json_access.as_object(given).get("function")).get("name")):
        choice = {"type": "tool", "name": name}
    elif not one_at_a_time:
        return None
    return {**choice, "disable_parallel_tool_use": True} if one_at_a_time else choice
