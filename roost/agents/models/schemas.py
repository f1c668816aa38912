"""Shapes of OpenAI's API that the gateway produces itself: model lists, events, the error in a stream."""

import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel

from roost.agents.models.model import ModelInfo
from roost.core.problem import Problem
from roost.web import errors
from roost.web.url_rule import ErrorForm

DONE = b"data: [DONE]\n\n"


class OpenAIModel(BaseModel):
    """A model; its creation time is unknown and therefore 0."""

    id: str
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


CHAT_OPENAPI: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {
                    "type": "object",
                    "description": "OpenAI's chat completion request; fields that are not listed are passed on.",
                    "required": ["model", "messages"],
                    "properties": {
                        "model": {"type": "string"},
                        "messages": {"type": "array", "minItems": 1, "items": {"type": "object"}},
                        "stream": {"type": "boolean", "default": False},
                    },
                }
            }
        },
    },
    "responses": {
        "200": {
            "description": "The completion, or with `stream` its chunks.",
            "content": {
                "application/json": {"schema": {"type": "object"}},
                "text/event-stream": {"schema": {"type": "string"}},
            },
        }
    },
}
"""OpenAPI description of chat completions, whose body is read by hand because of its size."""


def encode_json(value: dict[str, Any]) -> bytes:
    """Encode JSON in ASCII, because upstreams may send lone surrogates, which UTF-8 cannot represent."""
    return json.dumps(value, separators=(",", ":")).encode()


def format_event(value: dict[str, Any]) -> bytes:
    """Format one server-sent event."""
    return b"data: " + encode_json(value) + b"\n\n"


def error_object(problem: Problem) -> dict[str, Any]:
    """Return the error object that ends an interrupted stream."""
    return errors.error_body(ErrorForm.OPENAI, errors.STATUS[problem.kind], problem.message, problem.extra)
