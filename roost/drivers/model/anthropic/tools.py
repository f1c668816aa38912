"""Tools of a request for the Messages API. Pure."""

import re
from typing import Any

from roost.drivers.model import json_access
from roost.drivers.model.chat import ChatRequest
from roost.drivers.model.contract import Json, UpstreamRefused

_NAME = re.compile(r"[A-Za-z0-9_-]{1,128}")
_PROPERTY = re.compile(r"[A-Za-z0-9_.-]{1,64}")


def list_tools(request: ChatRequest) -> list[Json]:
    """Return the tools. Raises UpstreamRefused, with the field, for a name or schema that is not accepted."""
    tools: dict[str, Json] = {}
    for index, tool in enumerate(request.tools or []):
        if (function := tool.function) is None:
            continue
        place = f"tools[{index}].function"
        if _NAME.fullmatch(function.name) is None:
            raise UpstreamRefused(f"{place}.name: must be 1 to 128 letters, digits, _ or - for this model")
        schema = _input_schema(function.parameters or {}, f"{place}.parameters")
        described = {"description": function.description} if function.description else {}
        made = {"name": function.name, "input_schema": schema, **described}
        if tools.setdefault(function.name, made) != made:
            raise UpstreamRefused(f"{place}.name: two tools are called {function.name}")
    return list(tools.values())


def choose_tool(request: ChatRequest, tools: list[Json]) -> Json | None:
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
    elif name := json_access.as_string(json_access.as_object(json_access.as_object(given).get("function")).get("name")):
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
    properties = json_access.as_object(schema["properties"])
    required = _names(schema)
    for word in ("allOf", "anyOf", "oneOf"):
        parts = [_resolve(schema, json_access.as_object(part)) for part in json_access.as_list(schema.pop(word, None))]
        for part in parts:
            properties = {**json_access.as_object(part.get("properties")), **properties}
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
    for key in json_access.as_string(part.get("$ref")).split("/")[1:]:
        found = json_access.as_object(found).get(key)
    return json_access.as_object(found) if "$ref" in part else part


def _names(schema: Json) -> list[str]:
    given = json_access.as_list(schema.get("required"))
    return [name for name in dict.fromkeys(map(json_access.as_string, given)) if name]
