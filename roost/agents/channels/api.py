"""Channels of an agent over HTTP (contract: Channels)."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.channels import schemas
from roost.agents.channels.schemas import ChannelConfiguration
from roost.agents.channels.service import ChannelService
from roost.identity.authenticator import AgentCaller, AgentId
from roost.web.service_registry import provide_service

Service = Annotated[ChannelService, Depends(provide_service(ChannelService))]
router = APIRouter(prefix="/v0/agents/{agentId}/channels", tags=["channels"])


@router.get("")
async def list_channels(_: AgentCaller, agent_id: AgentId, channels: Service) -> schemas.ChannelList:
    """List the agent's channels with masked tokens and their status in the running gateway."""
    return schemas.channel_list(await channels.get_overview(agent_id))


@router.post("/{channel}")
async def configure_channel(
    _: AgentCaller, agent_id: AgentId, channel: str, body: ChannelConfiguration, channels: Service
) -> schemas.ChannelChangeRecord:
    """Configure a channel or change its settings; omitted fields keep their values."""
    return schemas.change_record(await channels.configure(agent_id, channel, body.to_request()))


@router.delete("/{channel}")
async def remove_channel(
    _: AgentCaller, agent_id: AgentId, channel: str, channels: Service
) -> schemas.ChannelChangeRecord:
    """Remove a channel with its tokens."""
    return schemas.change_record(await channels.remove(agent_id, channel))
