"""Shapes of devices (contract: Console, devices, config). The fields of a device are those that engines tell."""

from collections.abc import Sequence
from typing import Any

from roost.agents.devices.model import Approvals
from roost.drivers.engine.abilities.devices import Book, Device, Paired, Pending
from roost.web.wire import Moment, Wire

_UNSUPPORTED = "This agent's engine has no device pairing: whoever has the gateway token may talk to it"


class DeviceRecord(Wire):
    device_id: str
    display_name: str | None
    platform: str | None
    client_id: str | None
    client_mode: str | None
    role: str | None
    scopes: Sequence[str]
    remote_ip: str | None


class PendingDevice(DeviceRecord):
    request_id: str
    status: str = "pending"
    requested_at: Moment | None
    is_repair: bool


class PairedDevice(DeviceRecord):
    status: str = "paired"
    paired_at: Moment | None
    last_seen_at: Moment | None
    connected: bool | None


class DeviceList(Wire):
    pending: Sequence[PendingDevice] = ()
    paired: Sequence[PairedDevice] = ()
    supported: bool = True
    message: str | None = None


class Approved(Wire):
    success: bool = True
    request_id: str
    message: str = "Device approved"


class FailedApproval(Wire):
    request_id: str
    success: bool = False
    error: str


class AllApproved(Wire):
    approved: Sequence[str]
    failed: Sequence[FailedApproval]
    message: str


def listed(book: Book | None) -> DeviceList:
    if book is None:
        return DeviceList(supported=False, message=_UNSUPPORTED)
    return DeviceList(pending=[_pending(one) for one in book.pending], paired=[_paired(one) for one in book.paired])


def approved_all(done: Approvals) -> AllApproved:
    failed = [FailedApproval(request_id=one.request_id, error=one.error) for one in done.failed]
    message = f"{len(done.approved)} approved, {len(failed)} failed" if failed else f"{len(done.approved)} approved"
    return AllApproved(approved=done.approved, failed=failed, message=message)


def _pending(one: Pending) -> PendingDevice:
    return PendingDevice(
        **_fields(one.device), request_id=one.request_id, requested_at=one.asked_at, is_repair=one.repair
    )


def _paired(one: Paired) -> PairedDevice:
    return PairedDevice(
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
