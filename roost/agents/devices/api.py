"""Devices of an agent (contract: Console, devices, config)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from roost.agents.devices import wire
from roost.agents.devices.service import Devices
from roost.identity.door import AgentCaller, AgentId
from roost.web.provide import provide

Service = Annotated[Devices, Depends(provide(Devices))]
RequestId = Annotated[str, Path(alias="requestId")]
router = APIRouter(prefix="/v0/agents/{agentId}/devices", tags=["devices"])


@router.get("")
async def list_devices(_: AgentCaller, agent_id: AgentId, devices: Service) -> wire.DeviceList:
    """Devices that wait for approval, and those that have it."""
    return wire.listed(await devices.list(agent_id))


@router.post("/approve-all")
async def approve_all(_: AgentCaller, agent_id: AgentId, devices: Service) -> wire.AllApproved:
    """Approve every device that is pending now."""
    return wire.approved_all(await devices.approve_all(agent_id))


@router.post("/{requestId}/approve")
async def approve(_: AgentCaller, agent_id: AgentId, request_id: RequestId, devices: Service) -> wire.Approved:
    """Approve one device: it is paired from now on."""
    await devices.approve(agent_id, request_id)
    return wire.Approved(request_id=request_id)
