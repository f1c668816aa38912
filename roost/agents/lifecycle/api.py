"""The agents' table of the contract, and the gateway token."""

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from roost.agents.lifecycle import schemas
from roost.agents.lifecycle.delete import DeleteWorkflow
from roost.agents.lifecycle.details import AgentDetails
from roost.agents.lifecycle.errors import AgentStartFailed
from roost.agents.lifecycle.launch import LaunchWorkflow
from roost.agents.lifecycle.restart import RestartWorkflow
from roost.agents.lifecycle.update import UpdateWorkflow
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.identity.authenticator import AgentCaller, AgentId, OwnerCaller, ReaderCaller, ServiceCaller
from roost.identity.gateway_tokens import GatewayTokens
from roost.web.service_registry import provide_service

Detailing = Annotated[AgentDetails, Depends(provide_service(AgentDetails))]
Launching = Annotated[LaunchWorkflow, Depends(provide_service(LaunchWorkflow))]
Restarting = Annotated[RestartWorkflow, Depends(provide_service(RestartWorkflow))]
Updating = Annotated[UpdateWorkflow, Depends(provide_service(UpdateWorkflow))]
Deleting = Annotated[DeleteWorkflow, Depends(provide_service(DeleteWorkflow))]
Engines = Annotated[AgentRuntimes, Depends(provide_service(AgentRuntimes))]
Tokens = Annotated[GatewayTokens, Depends(provide_service(GatewayTokens))]
router = APIRouter(prefix="/v0/agents", tags=["agents"])


@router.get("")
async def list_agents(caller: ServiceCaller, details: Detailing) -> schemas.AgentList:
    """The tenant's agents, newest first."""
    return await details.list(caller)


@router.post(
    "",
    status_code=201,
    responses={500: {"model": schemas.StartFailureResponse}},
    response_model=schemas.CreateAgentResponse,
)
async def create_agent(
    caller: ServiceCaller, body: schemas.CreateAgentRequest, launch: Launching, details: Detailing
) -> schemas.CreateAgentResponse | JSONResponse:
    """Create an agent. Answers when its gateway answers; one that does not start is listed and can be restarted."""
    try:
        agent = await launch.create(caller, body.order())
    except AgentStartFailed as failure:
        answer = schemas.StartFailureResponse(error=failure.message, agent=await details.record(caller, failure.agent))
        return JSONResponse(answer.model_dump(mode="json", by_alias=True), 500)
    return schemas.CreateAgentResponse(agent=await details.record(caller, agent))


@router.get("/engines")
async def list_engines(_: ServiceCaller, reach: Engines) -> schemas.EngineList:
    """The engines that are installed here, the default first."""
    return schemas.EngineList(
        engines=[schemas.EngineRecord(id=engine.id, label=engine.label) for engine in reach.list_engines()]
    )


@router.get("/{agentId}")
async def show_agent(caller: ReaderCaller, agent_id: AgentId, details: Detailing) -> schemas.AgentDetail:
    """One agent, with what is true of its gateway process now."""
    return await details.show(caller, agent_id)


@router.delete("/{agentId}")
async def delete_agent(_: OwnerCaller, agent_id: AgentId, teardown: Deleting) -> schemas.ActionResponse:
    """Delete an agent with its container and files."""
    await teardown.delete(agent_id)
    return schemas.ActionResponse(message="Agent deleted")


@router.post("/{agentId}/restart")
async def restart_agent(
    _: AgentCaller, agent_id: AgentId, restart: Restarting, body: schemas.RestartAgentRequest | None = None
) -> schemas.RestartAgentResponse:
    """Restart the gateway, at another engine version if one is named."""
    previous = await restart(agent_id, body.wanted if body else None)
    return schemas.RestartAgentResponse(message="Agent restarted", previous_process_id=previous)


@router.post("/{agentId}/update")
async def update_agent(
    _: AgentCaller, agent_id: AgentId, update: Updating, body: schemas.UpdateAgentRequest | None = None
) -> schemas.UpdateAgentResponse:
    """Update the agent's engine. Without success the agent runs on as it was, and `output` says why."""
    return schemas.updated(await update(agent_id, body.tag if body else None))


@router.get("/{agentId}/gateway-token")
async def read_token(_: OwnerCaller, agent_id: AgentId, gateways: Tokens) -> schemas.GatewayTokenRecord:
    """The current gateway token."""
    return schemas.token(await gateways.read(agent_id))


@router.post("/{agentId}/gateway-token/rotate")
async def rotate_token(_: OwnerCaller, agent_id: AgentId, gateways: Tokens) -> schemas.GatewayTokenRecord:
    """A new gateway token; the old one is refused at once and what it held open is closed."""
    return schemas.token(await gateways.rotate(agent_id))
