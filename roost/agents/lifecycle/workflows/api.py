"""Agents and their gateway tokens over HTTP (contract, Agents)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Response

from roost.agents.lifecycle.versions.model import InvalidEngineVersion
from roost.agents.lifecycle.workflows import schemas
from roost.agents.lifecycle.workflows.delete import DeleteWorkflow
from roost.agents.lifecycle.workflows.details import AgentDetails
from roost.agents.lifecycle.workflows.launch import LaunchWorkflow
from roost.agents.lifecycle.workflows.launch_sources import LaunchSources
from roost.agents.lifecycle.workflows.move import MoveWorkflow
from roost.agents.lifecycle.workflows.restart import RestartWorkflow
from roost.agents.lifecycle.workflows.update import UpdateWorkflow
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.identity.authenticator import AgentCaller, AgentId, OwnerCaller, ReaderCaller, ServiceCaller
from roost.identity.gateway_tokens import TokenReads
from roost.web.errors import refuse_body_with
from roost.web.service_registry import provide_service

Details = Annotated[AgentDetails, Depends(provide_service(AgentDetails))]
Launch = Annotated[LaunchWorkflow, Depends(provide_service(LaunchWorkflow))]
Sources = Annotated[LaunchSources, Depends(provide_service(LaunchSources))]
Restart = Annotated[RestartWorkflow, Depends(provide_service(RestartWorkflow))]
Update = Annotated[UpdateWorkflow, Depends(provide_service(UpdateWorkflow))]
Move = Annotated[MoveWorkflow, Depends(provide_service(MoveWorkflow))]
Delete = Annotated[DeleteWorkflow, Depends(provide_service(DeleteWorkflow))]
Engines = Annotated[AgentRuntimes, Depends(provide_service(AgentRuntimes))]
Tokens = Annotated[TokenReads, Depends(provide_service(TokenReads))]
router = APIRouter(prefix="/v0/agents", tags=["agents"])


@router.get("", response_model=schemas.AgentList)
async def list_agents(caller: ServiceCaller, details: Details) -> Response:
    """List the tenant's agents, newest first."""
    return Response(await details.encode_list(caller), media_type="application/json")


@router.post("", status_code=201, responses={500: {"model": schemas.StartFailureResponse}})
async def create_agent(
    caller: ServiceCaller, body: schemas.CreateAgentRequest, sources: Sources, launch: Launch, details: Details
) -> schemas.CreateAgentResponse:
    """Create an agent, of a template if one is named, and wait until its gateway answers.

    A failed agent is listed and can be restarted. One that lacks a required item of `missing` starts once it has it.
    """
    async with details.describe_failure(caller), sources.open(caller, body.to_create_agent()) as source:
        agent = await launch.create(caller, source)
    return await details.get_created(caller, agent)


@router.get("/engines")
async def list_engines(_: ServiceCaller, runtimes: Engines) -> schemas.EngineList:
    """List the installed engines and what they can do, the default first."""
    return schemas.EngineList(engines=[schemas.engine_record(engine) for engine in runtimes.list_engines()])


@router.get("/memory")
async def list_memory(caller: ServiceCaller, details: Details) -> schemas.AgentMemoryList:
    """List the memory that the tenant's agents use now, as far as it is known."""
    return await details.list_memory(caller)


@router.get("/{agentId}")
async def show_agent(caller: ReaderCaller, agent_id: AgentId, details: Details) -> schemas.AgentDetail:
    """Return an agent and the current state of its gateway process."""
    return await details.get_detail(caller, agent_id)


@router.delete("/{agentId}")
async def delete_agent(_: OwnerCaller, agent_id: AgentId, delete: Delete) -> schemas.ActionResponse:
    """Delete an agent with its container and files."""
    await delete.delete(agent_id)
    return schemas.ActionResponse(message="Agent deleted")


@router.post("/{agentId}/restart")
@refuse_body_with(InvalidEngineVersion, "version", "agentVersion")
async def restart_agent(
    _: AgentCaller, agent_id: AgentId, restart: Restart, body: schemas.RestartAgentRequest | None = None
) -> schemas.RestartAgentResponse:
    """Restart the gateway, optionally at another engine version."""
    previous = await restart(agent_id, body.requested_version if body else None)
    return schemas.RestartAgentResponse(message="Agent restarted", previous_process_id=previous)


@router.post("/{agentId}/update")
@refuse_body_with(InvalidEngineVersion, "tag")
async def update_agent(
    _: AgentCaller, agent_id: AgentId, update: Update, body: schemas.UpdateAgentRequest | None = None
) -> schemas.UpdateAgentResponse:
    """Update the agent's engine. If that fails, the agent keeps its version and state, and `output` says why."""
    return schemas.UpdateAgentResponse(**vars(await update(agent_id, body.tag if body else None)))


@router.post("/{agentId}/move")
async def move_agent(
    _: OwnerCaller, agent_id: AgentId, move: Move, body: schemas.MoveAgentRequest
) -> schemas.MoveAgentResponse:
    """Move the agent to another runtime, or server. If that fails, it runs where it was, and `output` says why."""
    return schemas.MoveAgentResponse(**vars(await move(agent_id, body.to)))


@router.get("/{agentId}/gateway-token")
async def read_token(caller: OwnerCaller, agent_id: AgentId, tokens: Tokens) -> schemas.GatewayTokenRecord:
    """Return the current gateway token."""
    return schemas.token_record(await tokens.read(caller, agent_id))


@router.post("/{agentId}/gateway-token/rotate")
async def rotate_token(caller: OwnerCaller, agent_id: AgentId, tokens: Tokens) -> schemas.GatewayTokenRecord:
    """Replace the gateway token; the old one is rejected at once, and its open connections are closed."""
    return schemas.token_record(await tokens.rotate(caller, agent_id))
