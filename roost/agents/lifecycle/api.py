"""The agents' table of the contract, and the gateway token."""

from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import JSONResponse

from roost.agents.lifecycle import wire
from roost.agents.lifecycle.detail import Details
from roost.agents.lifecycle.errors import StartFailed
from roost.agents.lifecycle.launch import Launch
from roost.agents.lifecycle.restart import Restart
from roost.agents.lifecycle.teardown import Teardown
from roost.agents.lifecycle.update import Update
from roost.agents.roster.reach import Reach
from roost.identity.door import AgentCaller, AgentId, OwnerCaller, ReaderCaller, ServiceCaller
from roost.identity.gateways import Gateways
from roost.web.provide import provide

Detailing = Annotated[Details, Depends(provide(Details))]
Launching = Annotated[Launch, Depends(provide(Launch))]
Restarting = Annotated[Restart, Depends(provide(Restart))]
Updating = Annotated[Update, Depends(provide(Update))]
Deleting = Annotated[Teardown, Depends(provide(Teardown))]
Engines = Annotated[Reach, Depends(provide(Reach))]
Tokens = Annotated[Gateways, Depends(provide(Gateways))]
router = APIRouter(prefix="/v0/agents", tags=["agents"])


@router.get("")
async def list_agents(caller: ServiceCaller, details: Detailing) -> wire.AgentList:
    """The tenant's agents, newest first."""
    return await details.list(caller)


@router.post("", status_code=201, responses={500: {"model": wire.StartFailure}}, response_model=wire.AgentCreated)
async def create_agent(
    caller: ServiceCaller, body: wire.CreateAgent, launch: Launching, details: Detailing
) -> wire.AgentCreated | JSONResponse:
    """Create an agent. Answers when its gateway answers; one that does not start is listed and can be restarted."""
    try:
        agent = await launch.create(caller, body.order())
    except StartFailed as failure:
        answer = wire.StartFailure(error=failure.message, agent=await details.record(caller, failure.agent))
        return JSONResponse(answer.model_dump(mode="json", by_alias=True), 500)
    return wire.AgentCreated(agent=await details.record(caller, agent))


@router.get("/engines")
async def list_engines(_: ServiceCaller, reach: Engines) -> wire.EngineList:
    """The engines that are installed here, the default first."""
    return wire.EngineList(engines=[wire.EngineRecord(id=engine.id, label=engine.label) for engine in reach.engines()])


@router.get("/{agentId}")
async def show_agent(caller: ReaderCaller, agent_id: AgentId, details: Detailing) -> wire.AgentDetail:
    """One agent, with what is true of its gateway process now."""
    return await details.show(caller, agent_id)


@router.delete("/{agentId}")
async def delete_agent(_: OwnerCaller, agent_id: AgentId, teardown: Deleting) -> wire.Done:
    """Delete an agent with its container and files."""
    await teardown.delete(agent_id)
    return wire.Done(message="Agent deleted")


@router.post("/{agentId}/restart")
async def restart_agent(
    _: AgentCaller, agent_id: AgentId, restart: Restarting, body: wire.RestartAgent | None = None
) -> wire.Restarted:
    """Restart the gateway, at another engine version if one is named."""
    previous = await restart(agent_id, body.wanted if body else None)
    return wire.Restarted(message="Agent restarted", previous_process_id=previous)


@router.post("/{agentId}/update")
async def update_agent(
    _: AgentCaller, agent_id: AgentId, update: Updating, body: wire.UpdateAgent | None = None
) -> wire.AgentUpdated:
    """Update the agent's engine. Without success the agent runs on as it was, and `output` says why."""
    return wire.updated(await update(agent_id, body.tag if body else None))


@router.get("/{agentId}/gateway-token")
async def read_token(_: OwnerCaller, agent_id: AgentId, gateways: Tokens) -> wire.GatewayToken:
    """The current gateway token."""
    return wire.token(await gateways.read(agent_id))


@router.post("/{agentId}/gateway-token/rotate")
async def rotate_token(_: OwnerCaller, agent_id: AgentId, gateways: Tokens) -> wire.GatewayToken:
    """A new gateway token; the old one is refused at once and what it held open is closed."""
    return wire.token(await gateways.rotate(agent_id))
