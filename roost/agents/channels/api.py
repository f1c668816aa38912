"""The channels' table of the contract."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.agents.channels import wire
from roost.agents.channels.service import Channels
from roost.agents.channels.shape import ChannelConfiguration
from roost.identity.door import AgentCaller, AgentId
from roost.web.provide import provide

Service = Annotated[Channels, Depends(provide(Channels))]
router = APIRouter(prefix="/v0/agents/{agentId}/channels", tags=["channels"])


@router.get("")
async def show(_: AgentCaller, agent_id: AgentId, channels: Service) -> wire.ChannelList:
    """The agent's channels, tokens masked, and what its running gateway says of them."""
    return wire.listed(await channels.overview(agent_id))


@router.post("/{channel}")
async def configure(
    _: AgentCaller, agent_id: AgentId, channel: str, body: ChannelConfiguration, channels: Service
) -> wire.ChannelDone:
    """Configure a channel, or change what is said of it; a token that is not given stays."""
    return wire.done(await channels.configure(agent_id, channel, body.order()))


@router.delete("/{channel}")
async def remove(_: AgentCaller, agent_id: AgentId, channel: str, channels: Service) -> wire.ChannelDone:
    """Remove a channel with its tokens."""
    return wire.done(await channels.remove(agent_id, channel))
