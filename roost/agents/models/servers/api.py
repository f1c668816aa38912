"""Model servers on this machine over HTTP, and the models of an agent; both are beyond the contract."""

from collections.abc import Sequence
from typing import Annotated, Self

from fastapi import APIRouter, Depends
from pydantic import Field

from roost.agents.models.gateway.model import ModelOffer
from roost.agents.models.gateway.service import ModelGateway
from roost.agents.models.servers.service import MODEL_ID, ModelServer, ModelServerService
from roost.identity.authenticator import AgentCaller, AgentId, OwnerCaller, ServiceCaller
from roost.web.schemas import ApiSchema, Text
from roost.web.service_registry import provide_service

Service = Annotated[ModelServerService, Depends(provide_service(ModelServerService))]
Gateway = Annotated[ModelGateway, Depends(provide_service(ModelGateway))]
router = APIRouter(prefix="/v0", tags=["models"])


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
                provider=one.address.provider, label=one.address.label, base_url=one.address.base_url, models=one.models
            )
            for one in servers or ()
        ]
        return cls(available=servers is not None, servers=records)


class UseModelServerRequest(ApiSchema):
    provider: Annotated[Text, Field(max_length=32, examples=["ollama"])]
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


@router.get("/model-servers")
async def list_model_servers(caller: ServiceCaller, servers: Service) -> ModelServerList:
    """Look for model servers on this machine: Ollama, LM Studio and llama.cpp on their usual ports."""
    return ModelServerList.from_servers(await servers.find(caller))


@router.put("/agents/{agentId}/model-server")
async def use_model_server(
    caller: OwnerCaller, agent_id: AgentId, body: UseModelServerRequest, servers: Service
) -> UseModelServerResponse:
    """Let the agent use a model of a server on this machine; this restarts a gateway that runs."""
    name = await servers.use(caller, agent_id, body.provider, body.model)
    return UseModelServerResponse(model=name)


@router.get("/agents/{agentId}/models")
async def list_agent_models(_: AgentCaller, agent_id: AgentId, gateway: Gateway) -> AgentModelList:
    """List the models that the agent may use, the default first; its own providers come before the server's."""
    return AgentModelList.from_offer(await gateway.get_offer(agent_id))
