"""Model servers on this machine over HTTP, and the models of an agent; both are beyond the contract."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.models.gateway.service import ModelGateway
from roost.agents.models.servers import schemas
from roost.agents.models.servers.service import ModelServerService
from roost.identity.authenticator import AgentCaller, AgentId, OwnerCaller, ServiceCaller
from roost.web.service_registry import provide_service

Service = Annotated[ModelServerService, Depends(provide_service(ModelServerService))]
Gateway = Annotated[ModelGateway, Depends(provide_service(ModelGateway))]
router = APIRouter(prefix="/v0", tags=["models"])


@router.get("/model-servers")
async def list_model_servers(caller: ServiceCaller, servers: Service) -> schemas.ModelServerList:
    """Look for model servers on this machine: Ollama, LM Studio and llama.cpp on their usual ports."""
    return schemas.ModelServerList.from_servers(await servers.find(caller))


@router.put("/agents/{agentId}/model-server")
async def use_model_server(
    caller: OwnerCaller, agent_id: AgentId, body: schemas.UseModelServerRequest, servers: Service
) -> schemas.UseModelServerResponse:
    """Let the agent use a model of a server on this machine; this restarts a gateway that runs."""
    name = await servers.use(caller, agent_id, body.provider, body.model)
    return schemas.UseModelServerResponse(model=name)


@router.get("/agents/{agentId}/models")
async def list_agent_models(_: AgentCaller, agent_id: AgentId, gateway: Gateway) -> schemas.AgentModelList:
    """List the models that the agent may use, the default first; its own providers come before the server's."""
    return schemas.AgentModelList.from_offer(await gateway.get_offer(agent_id))
