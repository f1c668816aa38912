"""Shapes of devices (contract: Console, devices, config). The fields of a device are those that engines tell."""

from collections.abc import Sequence
from typing import Any

from roost.agents.devices.model import DeviceApprovals
from roost.drivers.engine.abilities.devices import Device, DeviceList, PairedDevice, PendingDevice
from roost.web.schemas import ApiSchema, Moment

_UNSUPPORTED = "This agent's engine has no device pairing: whoever has the gateway token may talk to it"


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
    message: str | None = None


class ApprovalRecord(ApiSchema):
    success: bool = True
    request_id: str
    message: str = "Device approved"


class FailedApprovalRecord(ApiSchema):
    request_id: str
    success: bool = False
    error: str


class ApprovalListRecord(ApiSchema):
    approved: Sequence[str]
    failed: Sequence[FailedApprovalRecord]
    message: str


def device_list_record(book: DeviceList | None) -> DeviceListRecord:
    if book is None:
        return DeviceListRecord(supported=False, message=_UNSUPPORTED)
    return DeviceListRecord(
        pending=[_pending(one) for one in book.pending], paired=[_paired(one) for one in book.paired]
    )


def approval_list_record(done: DeviceApprovals) -> ApprovalListRecord:
    failed = [FailedApprovalRecord(request_id=one.request_id, error=one.error) for one in done.failed]
    message = f"{len(done.approved)} approved, {len(failed)} failed" if failed else f"{len(done.approved)} approved"
    return ApprovalListRecord(approved=done.approved, failed=failed, message=message)


def _pending(one: PendingDevice) -> PendingDeviceRecord:
    return PendingDeviceRecord(
        **_fields(one.device), request_id=one.request_id, requested_at=one.asked_at, is_repair=one.repair
    )


def _paired(one: PairedDevice) -> PairedDeviceRecord:
    return PairedDeviceRecord(
        **_fields(one.device), paired_at=one.paired_at, last_seen_at=one.seen_at, connected=one.connected
    )


def _fields(device: Device) -> dict[str, Any]:
    return {
        "device_id": device.device_id,
        "display_name": device.name,
        "platform": device.platform,
        "client_id": device.client,
        "client_mode": device.mode,
        "role": device.role,
        "scopes": device.scopes,
        "remote_ip": device.address,
    }
