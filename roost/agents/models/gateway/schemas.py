"""Shapes of OpenAI's API that the gateway produces itself: model lists, events, the error in a stream."""

import json
import re
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel, Field

from roost.agents.models.gateway.model import ModelInfo
from roost.core.problem import Problem
from roost.web import errors
from roost.web.url_rule import ErrorForm

DONE = b"data: [DONE]\n\n"
_EVENT_NAME = re.compile(r"[a-z_.]{1,100}", re.ASCII)


class OpenAIModel(BaseModel):
    """A model; its creation time is unknown and therefore 0."""

    id: str = Field(examples=["scripted"])
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str

    @classmethod
    def from_model(cls, model: ModelInfo) -> "OpenAIModel":
        return cls(id=model.id, owned_by=model.upstream)


class OpenAIModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[OpenAIModel]

    @classmethod
    def from_models(cls, models: Sequence[ModelInfo]) -> "OpenAIModelList":
        return cls(data=[OpenAIModel.from_model(model) for model in models])


_COMPLETION = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1795416453,
    "model": "scripted",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Good morning"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 2, "completion_tokens": 2, "total_tokens": 4},
}
_RESPONSE = {
    "id": "resp_1",
    "object": "response",
    "status": "completed",
    "model": "gpt-5",
    "output": [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Good morning"}]}],
    "usage": {"input_tokens": 2, "output_tokens": 2, "total_tokens": 4},
}
_EMBEDDINGS = {
    "object": "list",
    "model": "text-embedding-3-small",
    "data": [{"object": "embedding", "index": 0, "embedding": [0.1, -0.2]}],
    "usage": {"prompt_tokens": 2, "total_tokens": 2},
}


def _describe(name: str, fields: dict[str, Any], answer: dict[str, Any], example: dict[str, Any]) -> dict[str, Any]:
    """Describe an endpoint of OpenAI's API; `fields` are those that Roost reads, the first two required."""
    schema = {
        "type": "object",
        "description": f"OpenAI's {name} request; fields that are not listed are passed on.",
        "required": list(fields)[:2],
        "properties": fields,
        "examples": [example],
    }
    content: dict[str, Any] = {"application/json": {"schema": {"type": "object", "examples": [answer]}}}
    if "stream" in fields:
        content["text/event-stream"] = {"schema": {"description": "Server-sent events with JSON."}}
    description = "The answer, or with `stream` its events." if "stream" in fields else "The answer."
    return {
        "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}},
        "responses": {"200": {"description": description, "content": content}},
    }


_MODEL = {"type": "string"}
_STREAM = {"anyOf": [{"type": "boolean"}, {"type": "null"}], "default": False}
_INPUT: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {}}]}
CHAT_OPENAPI = _describe(
    "chat completion",
    {
        "model": _MODEL,
        "messages": {"type": "array", "minItems": 1, "items": {"type": "object"}},
        "stream": _STREAM,
    },
    _COMPLETION,
    {"model": "scripted", "messages": [{"role": "user", "content": "Good morning"}]},
)
RESPONSES_OPENAPI = _describe(
    "response",
    {"model": _MODEL, "input": _INPUT, "stream": _STREAM},
    _RESPONSE,
    {"model": "gpt-5", "input": "Good morning"},
)
EMBEDDINGS_OPENAPI = _describe(
    "embedding",
    {"model": _MODEL, "input": _INPUT},
    _EMBEDDINGS,
    {"model": "text-embedding-3-small", "input": "Good morning"},
)
"""OpenAPI descriptions of requests whose bodies are read by hand because of their size."""


def encode_json(value: dict[str, Any]) -> bytes:
    """Encode JSON in ASCII, because upstreams may send lone surrogates, which UTF-8 cannot represent."""
    return json.dumps(value, separators=(",", ":")).encode()


def format_event(value: dict[str, Any]) -> bytes:
    """Format one server-sent event."""
    return b"data: " + encode_json(value) + b"\n\n"


def format_typed_event(value: dict[str, Any]) -> bytes:
    """Format one server-sent event of the Responses API, which has its type as its name, too."""
    name = value.get("type")
    is_plain = isinstance(name, str) and _EVENT_NAME.fullmatch(name)
    return (f"event: {name}\n".encode() if is_plain else b"") + format_event(value)


def error_event(problem: Problem) -> dict[str, Any]:
    """Return the event that ends an interrupted stream of the Responses API; clients read one of its two forms."""
    body = error_object(problem)
    return {"type": "error", **{name: body["error"][name] for name in ("code", "message", "param")}, **body}


def error_object(problem: Problem) -> dict[str, Any]:
    """Return the error object that ends an interrupted stream."""
    return errors.error_body(ErrorForm.OPENAI, errors.STATUS[problem.kind], problem.message, problem.extra)
