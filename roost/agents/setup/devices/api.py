"""Devices of an agent (contract: Console, devices, config)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from roost.agents.setup.devices import schemas
from roost.agents.setup.devices.service import DeviceService
from roost.identity.authenticator import AgentCaller, AgentId
from roost.web.service_registry import provide_service

Service = Annotated[DeviceService, Depends(provide_service(DeviceService))]
RequestId = Annotated[str, Path(alias="requestId")]
router = APIRouter(prefix="/v0/agents/{agentId}/devices", tags=["devices"])


@router.get("")
async def list_devices(_: AgentCaller, agent_id: AgentId, devices: Service) -> schemas.DeviceListRecord:
    """List the pending and the paired devices."""
    return schemas.device_list_record(await devices.list(agent_id))


@router.post("/approve-all")
async def approve_all_devices(_: AgentCaller, agent_id: AgentId, devices: Service) -> schemas.ApprovalListRecord:
    """Approve all devices that are pending now."""
    return schemas.approval_list_record(await devices.approve_all(agent_id))


@router.post("/{requestId}/approve")
async def approve_device(
    _: AgentCaller, agent_id: AgentId, request_id: RequestId, devices: Service
) -> schemas.ApprovalRecord:
    """Approve one pending device, which pairs it."""
    await devices.approve(agent_id, request_id)
    return schemas.ApprovalRecord(request_id=request_id)
