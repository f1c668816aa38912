"""Translation of OpenAI's chat requests to the Messages API. Pure.

What the Messages API forbids is repaired where the meaning stays, and refused with the field's name where it would not:
white space as text, pictures with other types, ids and names of tools in other forms, calls without a result. Options
that it lacks (`seed`, `logprobs`, `response_format` ...) are dropped; audio and files are refused. It accepts four
formats of pictures, and compares their label and bytes.
"""

import json
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from roost.drivers.model.chat import ChatMessage, ChatRequest, ContentPart, ToolCall
from roost.drivers.model.contract import Json, UpstreamRefused
from roost.drivers.model.history import repair_history
from roost.drivers.model.json_access import as_list, as_object, as_string, parse_json

MAX_TOKENS = 8_192
"""Limit for requests without one; the Messages API requires a limit, and every current model accepts this one."""

_CALL_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_NAME_CHARACTER = re.compile(r"[^A-Za-z0-9_-]")
_SYSTEM = frozenset({"system", "developer"})
_TEXTS = frozenset({"text", "refusal", "input_text", "output_text"})
_CACHE_MARKS = 4
_CACHE_TIMES = ("5m", "1h")
_NO_RESULT = "This call has no result."
_BEGINNING = "(The conversation begins with the assistant.)"
_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_DATA_URL = re.compile(r"data:([\w.+-]{1,50}/[\w.+-]{1,50})?(?:;[\w.+=-]{1,100}){0,5}?;base64,", re.IGNORECASE)
_IMAGE_TYPES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
_BEGINNINGS = {"/9j/": "image/jpeg", "iVBORw0KGgo": "image/png", "R0lGOD": "image/gif", "UklGR": "image/webp"}
"""How the formats begin in base64."""
_OTHER_NAMES = {"image/jpg": "image/jpeg", "image/pjpeg": "image/jpeg", "image/x-png": "image/png"}
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}")
_OTHER_ALPHABET = str.maketrans("-_", "+/")


def messages_request(request: ChatRequest) -> Json:
    """Translate a request. Raises UpstreamRefused, with the field, for what the Messages API does not accept."""
    system: list[Json] = []
    spoken: list[tuple[str, ChatMessage]] = []  # with its place in the request
    history = repair_history(request.messages, _CALL_ID, unique=True)
    for index, message in enumerate(history):
        place = f"messages[{index}]"
        if message.role in _SYSTEM:
            system += _texts(message, place)
        else:
            spoken.append((place, message))
    body: Json = {
        "model": request.model,
        "max_tokens": request.max_completion_tokens or request.max_tokens or MAX_TOKENS,
        "messages": _turns(spoken),
    }
    if system:
        body["system"] = system
    if tools := _list_tools(request):
        body["tools"] = tools
    if choice := _choose_tool(request, tools):
        body["tool_choice"] = choice
    body |= _sampling(request)
    _limit_cache_marks([*system, *(block for turn in body["messages"] for block in turn["content"])])
    return body


def _sampling(request: ChatRequest) -> Json:
    options: Json = {}
    if request.temperature is not None:
        options["temperature"] = max(0.0, min(request.temperature, 1.0))  # OpenAI's scale goes to 2
    if request.top_p is not None and not (request.top_p == 1.0 and options):  # models refuse both; 1 changes nothing
        if not 0.0 <= request.top_p <= 1.0:
            raise UpstreamRefused("top_p: must be from 0 to 1")
        options["top_p"] = request.top_p
    given = [request.stop] if isinstance(request.stop, str) else request.stop or []
    if stops := [stop for stop in given if stop]:
        if not all(stop.strip() for stop in stops):
            raise UpstreamRefused("stop: this model cannot stop at white space")
        options["stop_sequences"] = stops
    return options


def _turns(messages: Sequence[tuple[str, ChatMessage]]) -> list[Json]:
    """Merge consecutive messages of one role, so that all tool results of a turn are in one message."""
    turns: list[Json] = []
    for place, message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        if not (blocks := _content(message, place)):
            continue
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    if not turns:
        raise UpstreamRefused("messages: none has content that this model accepts")
    if turns[0]["role"] == "assistant":
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": _BEGINNING}]})
    _pair_results(turns)
    last = turns[-1]["content"][-1]
    if turns[-1]["role"] == "assistant" and last["type"] == "text":
        last["text"] = last["text"].rstrip()  # the answer would continue it, and white space at its end is refused
    return turns


def _pair_results(turns: list[Json]) -> None:
    """Begin each turn after tool calls with exactly their results; turn other results into text."""
    index = 0
    while index < len(turns):
        calls = [block["id"] for block in turns[index]["content"] if block["type"] == "tool_use"]
        following = index + 1
        if calls and following == len(turns):
            turns.append({"role": "user", "content": []})
        if following < len(turns) and turns[following]["role"] == "user":
            turns[following]["content"] = _ordered_results(calls, turns[following]["content"])
        index = following
    if turns[0]["role"] == "user":
        turns[0]["content"] = _ordered_results([], turns[0]["content"])


def _ordered_results(calls: Sequence[str], blocks: Sequence[Json]) -> list[Json]:
    results: dict[str, Json] = {}
    others: list[Json] = []
    for block in blocks:
        if block["type"] != "tool_result":
            others.append(block)
        elif block["tool_use_id"] in calls and block["tool_use_id"] not in results:
            results[block["tool_use_id"]] = block
        else:  # of a call that the history lost
            others += block.get("content") or [{"type": "text", "text": _NO_RESULT}]
    missing = {"type": "tool_result", "content": _NO_RESULT, "is_error": True}
    return [results.get(call) or {**missing, "tool_use_id": call} for call in calls] + others


def _content(message: ChatMessage, place: str) -> list[Json]:
    blocks = _blocks(message.parts, place)
    if message.role == "tool":
        result: Json = {"type": "tool_result", "tool_use_id": message.tool_call_id or ""}
        return [{**result, "content": blocks} if blocks else result]
    if message.role == "assistant":
        return blocks + [_tool_use(call) for call in message.tool_calls or [] if call.function is not None]
    return blocks


def _tool_use(call: ToolCall) -> Json:
    assert call.function is not None
    given = call.function.arguments or "{}"
    value = parse_json(given)
    try:
        json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
    except ValueError:  # NaN, infinity or half a character: no request can carry it
        value = None
    # A model's malformed JSON is sent back unchanged, because it is part of its history.
    arguments: Json = as_object(value) if isinstance(value, dict) else {"arguments": given}
    name = _NAME_CHARACTER.sub("_", call.function.name)[:128] or "_"  # of a tool that another model called
    return {"type": "tool_use", "id": call.id, "name": name, "input": arguments}


def _texts(message: ChatMessage, place: str) -> list[Json]:
    blocks = _blocks(message.parts, place)
    if any(block["type"] != "text" for block in blocks):
        raise UpstreamRefused(f"{place}.content: a system message of this model has text only")
    return blocks


def _blocks(parts: Sequence[ContentPart], place: str) -> list[Json]:
    """Translate parts to content blocks, without text of white space alone, which the Messages API rejects."""
    named = ((part, f"{place}.content[{index}]") for index, part in enumerate(parts))
    return [_block(*one) for one in named if one[0].type not in _TEXTS or (one[0].text or one[0].refusal or "").strip()]


def _block(part: ContentPart, place: str) -> Json:
    block: Json
    if part.type in _TEXTS:
        block = {"type": "text", "text": part.text or part.refusal}
    elif part.image_url is not None:
        block = {"type": "image", "source": _image_source(part.image_url.url, f"{place}.image_url.url")}
    else:
        raise UpstreamRefused(f"{place}: this model does not accept content of type {part.type[:50]!r}")
    cache = as_object((part.model_extra or {}).get("cache_control"))
    if cache.get("type") == "ephemeral":  # clients that know the provider mark blocks to cache
        time = {"ttl": cache["ttl"]} if cache.get("ttl") in _CACHE_TIMES else {}
        block["cache_control"] = {"type": "ephemeral", **time}
    return block


def _limit_cache_marks(blocks: Sequence[Json]) -> None:
    """Keep the last marks: more are refused, and each covers all that comes before it."""
    nested = (one for block in blocks for one in (*as_list(block.get("content")), block))
    marked = [one for one in nested if "cache_control" in one]
    for block in marked[:-_CACHE_MARKS]:
        del block["cache_control"]
    for before, block in pairwise(marked[-_CACHE_MARKS:]):
        if before["cache_control"].get("ttl") != "1h":  # an hour after five minutes is refused
            block["cache_control"] = {"type": "ephemeral"}


def _list_tools(request: ChatRequest) -> list[Json]:
    """Return the tools. Raises UpstreamRefused, with the field, for a name or schema that is not accepted."""
    tools: dict[str, Json] = {}
    for index, tool in enumerate(request.tools or []):
        if (function := tool.function) is None:
            continue
        place = f"tools[{index}].function"
        if _TOOL_NAME.fullmatch(function.name) is None:
            raise UpstreamRefused(f"{place}.name: must be 1 to 128 letters, digits, _ or - for this model")
        schema = _input_schema(function.parameters or {}, f"{place}.parameters")
        described = {"description": function.description} if function.description else {}
        made = {"name": function.name, "input_schema": schema, **described}
        if tools.setdefault(function.name, made) != made:
            raise UpstreamRefused(f"{place}.name: two tools are called {function.name}")
    return list(tools.values())


def _choose_tool(request: ChatRequest, tools: list[Json]) -> Json | None:
    """Translate the tool choice; None omits it, which is required without tools. Raises UpstreamRefused."""
    if not tools:
        return None
    one_at_a_time = request.parallel_tool_calls is False
    given = request.tool_choice
    choice: Json = {"type": "auto"}
    if given == "none":
        return {"type": "none"}
    if given == "required":
        choice = {"type": "any"}
    elif name := as_string(as_object(as_object(given).get("function")).get("name")):
        if name not in {tool["name"] for tool in tools}:
            raise UpstreamRefused("tool_choice.function.name: no tool of the request has this name")
        choice = {"type": "tool", "name": name}
    elif not one_at_a_time:
        return None
    return {**choice, "disable_parallel_tool_use": True} if one_at_a_time else choice


def _input_schema(given: Json, place: str) -> Json:
    """Return a schema of an object; alternatives at its top, which are refused, become one object that allows each."""
    given = {name: value for name, value in given.items() if value is not None}
    schema: Json = {"type": "object", "properties": {}, **given}
    if schema["type"] != "object":
        raise UpstreamRefused(f"{place}.type: must be object")
    properties = as_object(schema["properties"])
    required = _names(schema)
    for word in ("allOf", "anyOf", "oneOf"):
        parts = [_resolve(schema, as_object(part)) for part in as_list(schema.pop(word, None))]
        for part in parts:
            properties = {**as_object(part.get("properties")), **properties}
        needed = [name for part in parts for name in _names(part)]
        required += [name for name in needed if word == "allOf" or needed.count(name) == len(parts)]
    for name in properties:
        if _PROPERTY.fullmatch(name) is None:
            raise UpstreamRefused(f"{place}.properties: {name[:100]!r} must be 1 to 64 letters, digits, _, . or -")
    schema["properties"] = properties
    if required:
        schema["required"] = list(dict.fromkeys(required))
    return schema


def _resolve(schema: Json, part: Json) -> Json:
    """Return the part that a reference names (`#/$defs/A`), or the part itself."""
    found: Any = schema
    for key in as_string(part.get("$ref")).split("/")[1:]:
        found = as_object(found).get(key)
    return as_object(found) if "$ref" in part else part


def _names(schema: Json) -> list[str]:
    given = as_list(schema.get("required"))
    return [name for name in dict.fromkeys(map(as_string, given)) if name]


def _image_source(url: str, place: str) -> Json:
    """Return the source of a picture. Raises UpstreamRefused, with the field `place`."""
    if url.startswith("https://"):
        return {"type": "url", "url": url}
    found = _DATA_URL.match(url)
    if found is None:
        raise UpstreamRefused(f"{place}: an image must be a base64 data URL or an HTTPS URL")
    data = "".join(url[found.end() :].split()).translate(_OTHER_ALPHABET)
    if _BASE64.fullmatch(data) is None or len(data.rstrip("=")) % 4 == 1:
        raise UpstreamRefused(f"{place}: the image is not base64")
    label = (found[1] or "").lower()
    known = next((kind for beginning, kind in _BEGINNINGS.items() if data.startswith(beginning)), None)
    kind = known or _OTHER_NAMES.get(label, label)
    if kind not in _IMAGE_TYPES:
        raise UpstreamRefused(f"{place}: this model accepts images in JPEG, PNG, GIF and WebP, not {label or 'this'}")
    return {"type": "base64", "media_type": kind, "data": data + "=" * (-len(data) % 4)}
