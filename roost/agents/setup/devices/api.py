"""Devices of an agent, with the fields that engines report (contract: Console, devices, config)."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path
from pydantic import Field

from roost.agents.setup.devices.service import DeviceService
from roost.drivers.engine.abilities.devices import DeviceList
from roost.identity.authenticator import AgentCaller, AgentId
from roost.web.schemas import ApiSchema, Moment
from roost.web.service_registry import provide_service

_UNSUPPORTED = "This agent's engine has no device pairing: any client with the gateway token can talk to it"


class DeviceRecord(ApiSchema):
    device_id: str
    display_name: str | None
    platform: str | None
    client_id: str | None
    client_mode: str | None
    role: str | None
    scopes: Sequence[str]
    remote_ip: str | None


class PendingDeviceRecord(DeviceRecord):
    request_id: str
    status: str = "pending"
    requested_at: Moment | None
    is_repair: bool


class PairedDeviceRecord(DeviceRecord):
    status: str = "paired"
    paired_at: Moment | None
    last_seen_at: Moment | None
    connected: bool | None


class DeviceListRecord(ApiSchema):
    pending: Sequence[PendingDeviceRecord] = ()
    paired: Sequence[PairedDeviceRecord] = ()
    supported: bool = True
    message: str | None = Field(default=None, examples=[None])


class ApprovalRecord(ApiSchema):
    success: bool = True
    request_id: str
    message: str = "Device approved"


class FailedApprovalRecord(ApiSchema):
    request_id: str
    success: bool = False
    error: str = Field(examples=["Unknown request"])


class ApprovalListRecord(ApiSchema):
    approved: Sequence[str]
    failed: Sequence[FailedApprovalRecord]
    message: str


def device_list_record(devices: DeviceList | None) -> DeviceListRecord:
    if devices is None:
        return DeviceListRecord(supported=False, message=_UNSUPPORTED)
    pending = [PendingDeviceRecord(**vars(one.device), **vars(one)) for one in devices.pending]
    paired = [PairedDeviceRecord(**vars(one.device), **vars(one)) for one in devices.paired]
    return DeviceListRecord(pending=pending, paired=paired)


Service = Annotated[DeviceService, Depends(provide_service(DeviceService))]
RequestId = Annotated[str, Path(alias="requestId")]
router = APIRouter(prefix="/v0/agents/{agentId}/devices", tags=["devices"])


@router.get("")
async def list_devices(_: AgentCaller, agent_id: AgentId, devices: Service) -> DeviceListRecord:
    """List the pending and the paired devices."""
    return device_list_record(await devices.list(agent_id))


@router.post("/approve-all")
async def approve_all_devices(_: AgentCaller, agent_id: AgentId, devices: Service) -> ApprovalListRecord:
    """Approve all devices that are pending now."""
    approved, failed = await devices.approve_all(agent_id)
    message = f"{len(approved)} approved" + (f", {len(failed)} failed" if failed else "")
    records = [FailedApprovalRecord(request_id=request_id, error=error) for request_id, error in failed]
    return ApprovalListRecord(approved=approved, failed=records, message=message)


@router.post("/{requestId}/approve")
async def approve_device(_: AgentCaller, agent_id: AgentId, request_id: RequestId, devices: Service) -> ApprovalRecord:
    """Approve one pending device, which pairs it."""
    await devices.approve(agent_id, request_id)
    return ApprovalRecord(request_id=request_id)
