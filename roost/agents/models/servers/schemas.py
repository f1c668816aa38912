"""API shapes of model servers and of the models that an agent is offered."""

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field

from roost.agents.models.gateway.model import ModelOffer
from roost.agents.models.servers.model import MODEL_ID, ModelServer
from roost.web.schemas import ApiSchema, Text

_Provider = Annotated[Text, Field(max_length=32, examples=["ollama"])]


class ModelServerRecord(ApiSchema):
    provider: str = Field(examples=["ollama"])
    label: str = Field(examples=["Ollama"])
    base_url: str = Field(examples=["http://127.0.0.1:11434/v1"])
    models: Sequence[str] = Field(examples=[["qwen3:8b"]])


class ModelServerList(ApiSchema):
    """The servers that answer; `available` tells whether they were looked for, which is for the operator only."""

    available: bool = True
    servers: Sequence[ModelServerRecord]

    @classmethod
    def from_servers(cls, servers: Sequence[ModelServer] | None) -> Self:
        records = [
            ModelServerRecord(
                provider=one.address.provider,
                label=one.address.label,
                base_url=one.address.base_url,
                models=one.models,
            )
            for one in servers or ()
        ]
        return cls(available=servers is not None, servers=records)


class UseModelServerRequest(ApiSchema):
    provider: _Provider
    model: Annotated[Text, Field(pattern=f"^{MODEL_ID}$", examples=["qwen3:8b"])]


class UseModelServerResponse(ApiSchema):
    success: bool = True
    model: str = Field(examples=["ollama/qwen3:8b"])


class AgentModelRecord(ApiSchema):
    id: str = Field(examples=["ollama/qwen3:8b"])
    provider: str = Field(examples=["ollama"])


class AgentModelList(ApiSchema):
    """The agent's models, its provider's first; not `complete` while a provider does not list its own.

    `problems` says why: the provider refuses the key, is not reached, or answers nonsense.
    """

    models: Sequence[AgentModelRecord]
    complete: bool = True
    problems: Sequence[str] = Field(
        default=(), examples=[["The model provider openai does not list its models: it refuses connections"]]
    )

    @classmethod
    def from_offer(cls, offer: ModelOffer) -> Self:
        models = [AgentModelRecord(id=one.id, provider=one.upstream) for one in offer.models]
        return cls(models=models, complete=offer.complete, problems=offer.problems)
