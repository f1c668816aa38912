"""The shapes of OpenAI's API, as far as they are ours to give: lists of models, events, the error in a stream."""

import json
from collections.abc import Sequence
from typing import Any, Literal

from pydantic import BaseModel

from roost.agents.models.model import ModelInfo
from roost.core.problem import Problem
from roost.web import errors

PREFIX = "/v0/llm/v1"
DONE = b"data: [DONE]\n\n"


class ModelBody(BaseModel):
    """A model. When it was made is not known to us."""

    id: str
    object: Literal["model"] = "model"
    created: int = 0
    owned_by: str

    @classmethod
    def of(cls, model: ModelInfo) -> "ModelBody":
        return cls(id=model.id, owned_by=model.upstream)


class ModelsBody(BaseModel):
    object: Literal["list"] = "list"
    data: list[ModelBody]

    @classmethod
    def of(cls, models: Sequence[ModelInfo]) -> "ModelsBody":
        return cls(data=[ModelBody.of(model) for model in models])


def encoded(value: dict[str, Any]) -> bytes:
    """JSON in ASCII: what an upstream sends may hold half of a surrogate pair, which UTF-8 cannot."""
    return json.dumps(value, separators=(",", ":")).encode()


def event(value: dict[str, Any]) -> bytes:
    """One server-sent event."""
    return b"data: " + encoded(value) + b"\n\n"


def failure(problem: Problem) -> dict[str, Any]:
    """The error object with which a stream ends that cannot be finished."""
    return errors.body(PREFIX, errors.STATUS[problem.kind], problem.message, problem.extra)
