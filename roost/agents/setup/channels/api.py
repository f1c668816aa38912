"""Channels of an agent over HTTP (contract: Channels)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Response

from roost.agents.setup.channels import schemas
from roost.agents.setup.channels.schemas import ChannelConfiguration
from roost.agents.setup.channels.service import ChannelService
from roost.identity.authenticator import AgentCaller, AgentId, AgentVisit
from roost.web.responses import describe_events, event_response, format_event
from roost.web.service_registry import provide_service

RequestId = Annotated[str, Path(alias="requestId", max_length=200)]
Service = Annotated[ChannelService, Depends(provide_service(ChannelService))]
router = APIRouter(prefix="/v0/agents/{agentId}/channels", tags=["channels"])


@router.get("")
async def list_channels(_: AgentCaller, agent_id: AgentId, channels: Service) -> schemas.ChannelList:
    """List the agent's channels with masked tokens and their status in the running gateway."""
    return schemas.channel_list(await channels.get_overview(agent_id))


@router.get("/watch", response_class=Response, responses={200: {"content": describe_events()}})
async def watch_channels(visit: AgentVisit, agent_id: AgentId, channels: Service) -> Response:
    """Stream the list of channels as server-sent events: now, and when a status, message or request changes."""
    return event_response(visit, channels.watch(agent_id), lambda state: format_event(schemas.channel_list(state)))


@router.post("/{channel}")
async def configure_channel(
    _: AgentCaller, agent_id: AgentId, channel: str, body: ChannelConfiguration, channels: Service
) -> schemas.ChannelChangeRecord:
    """Configure a channel or change its settings; omitted fields keep their values."""
    return schemas.change_record(await channels.configure(agent_id, channel, body.to_request()))


@router.post("/{channel}/pairing/{requestId}/approve")
async def approve_pairing_request(
    _: AgentCaller, agent_id: AgentId, channel: str, request_id: RequestId, channels: Service
) -> schemas.ChannelChangeRecord:
    """Approve a pairing request by its id, or by the code that the bot sent: its sender may write to the bot."""
    await channels.approve_request(agent_id, channel, request_id)
    return schemas.ChannelChangeRecord(message="Approved")


@router.delete("/{channel}")
async def remove_channel(
    _: AgentCaller, agent_id: AgentId, channel: str, channels: Service
) -> schemas.ChannelChangeRecord:
    """Remove a channel with its tokens."""
    return schemas.change_record(await channels.remove(agent_id, channel))
