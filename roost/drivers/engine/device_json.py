"""Parsing of OpenClaw's JSON form of devices, which the fake engine uses too.

The rows are untrusted: values of an unexpected type are ignored, texts are sanitized and cut.
"""

from typing import Any

from roost.core.sanitize import sanitize_line
from roost.drivers.engine.abilities.devices import Device, DeviceList, PairedDevice, PendingDevice
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.engine.task_json import parse_milliseconds
from roost.drivers.model.json_access import as_list, as_object

Json = dict[str, Any]

_MAX_ITEMS = 200
_MAX_CHARACTERS = 200


def parse_device_list(found: object) -> DeviceList:
    """Parse the pending and paired devices. Raises EngineFailed unless `found` is an object."""
    if not isinstance(found, dict):
        raise EngineFailed("The gateway's list of devices is not an object")
    pending, paired = (
        [as_object(row) for row in as_list(as_object(found).get(name))[:_MAX_ITEMS]] for name in ("pending", "paired")
    )
    return DeviceList(
        [_pending(row, request_id) for row in pending if (request_id := _text(row.get("requestId")))],
        [_paired(row) for row in paired],
    )


def _pending(row: Json, request_id: str) -> PendingDevice:
    return PendingDevice(
        request_id=request_id,
        device=_device(row),
        requested_at=parse_milliseconds(row.get("ts")),
        is_repair=row.get("isRepair") is True,
    )


def _paired(row: Json) -> PairedDevice:
    connected = row.get("connected")
    return PairedDevice(
        device=_device(row),
        paired_at=parse_milliseconds(row.get("approvedAtMs")),
        last_seen_at=parse_milliseconds(row.get("lastSeenAtMs")),
        connected=connected if isinstance(connected, bool) else None,
    )


def _device(row: Json) -> Device:
    return Device(
        device_id=_text(row.get("deviceId")) or "",
        display_name=_text(row.get("displayName")),
        platform=_text(row.get("platform")),
        client_id=_text(row.get("clientId")),
        client_mode=_text(row.get("clientMode")),
        role=_text(row.get("role")),
        scopes=[scope for scope in map(_text, as_list(row.get("scopes"))[:_MAX_ITEMS]) if scope],
        remote_ip=_text(row.get("remoteIp")),
    )


def _text(value: object) -> str | None:
    return sanitize_line(value[:_MAX_CHARACTERS]) if isinstance(value, str) and value else None
