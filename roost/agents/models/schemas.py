"""The shapes of OpenAI's API, as far as they are ours to give: lists of models, events, the error in a stream."""

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
    """A model. When it was made is not known to us."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str

    @classmethod
    def of(cls, model: ModelInfo) -> "OpenAIModel":
        return cls(id=model.id, owned_by=model.upstream)


class OpenAIModelList(BaseModel):
    object: Literal["list"] = "list"
    data: list[OpenAIModel]

    @classmethod
    def of(cls, models: Sequence[ModelInfo]) -> "OpenAIModelList":
        return cls(data=[OpenAIModel.of(model) for model in models])


class OpenAIErrorDetail(BaseModel):
    message: str
    type: str
    param: str | None = None
    code: str | None = None


class OpenAIErrorBody(BaseModel):
    """How the gateway says no, in the form that OpenAI's clients read."""

    error: OpenAIErrorDetail


CHAT: dict[str, Any] = {
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
            "description": "The answer, or with `stream` its chunks.",
            "content": {
                "application/json": {"schema": {"type": "object"}},
                "text/event-stream": {"schema": {"type": "string"}},
            },
        }
    },
}
"""What the description of the API says of a chat, whose body is read by hand because of its size."""


def encoded(value: dict[str, Any]) -> bytes:
    """JSON in ASCII: what an upstream sends may hold half of a surrogate pair, which UTF-8 cannot."""
    return json.dumps(value, separators=(",", ":")).encode()


def event(value: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + encoded(value) + b"\n\n"


def failure(problem: Problem) -> dict[str, Any]:
    """The error object with which a stream ends that cannot be finished."""
    return errors.error_body(ErrorForm.OPENAI, errors.STATUS[problem.kind], problem.message, problem.extra)
