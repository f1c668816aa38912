"""The form in which devices are listed: OpenClaw's own JSON, spoken by the fake engine too.

The rows are what devices said of themselves to a gateway that an agent may have replaced: of each only what has the
right type is taken, plain and short.
"""

from datetime import UTC, datetime
from typing import Any

from roost.core.sanitize import sanitize_line
from roost.drivers.engine.abilities.devices import Device, DeviceList, PairedDevice, PendingDevice
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.model.json_access import as_list, as_object

Json = dict[str, Any]

_MOST = 200
_LONGEST = 200


def book(found: object) -> DeviceList:
    """Raises EngineFailed for what is no list of devices at all."""
    if not isinstance(found, dict):
        raise EngineFailed("The gateway's list of devices is none")
    pending, paired = (_rows(as_object(found).get(name)) for name in ("pending", "paired"))
    return DeviceList(
        [_pending(row) for row in pending if _text(row.get("requestId"))], [_paired(row) for row in paired]
    )


def _rows(found: object) -> list[Json]:
    return [as_object(row) for row in as_list(found)[:_MOST]]


def _pending(row: Json) -> PendingDevice:
    return PendingDevice(
        request_id=str(_text(row.get("requestId"))),
        device=_device(row),
        asked_at=_time(row.get("ts")),
        repair=row.get("isRepair") is True,
    )


def _paired(row: Json) -> PairedDevice:
    connected = row.get("connected")
    return PairedDevice(
        device=_device(row),
        paired_at=_time(row.get("approvedAtMs")),
        seen_at=_time(row.get("lastSeenAtMs")),
        connected=connected if isinstance(connected, bool) else None,
    )


def _device(row: Json) -> Device:
    return Device(
        device_id=_text(row.get("deviceId")) or "",
        name=_text(row.get("displayName")),
        platform=_text(row.get("platform")),
        client=_text(row.get("clientId")),
        mode=_text(row.get("clientMode")),
        role=_text(row.get("role")),
        scopes=[scope for scope in map(_text, as_list(row.get("scopes"))[:_MOST]) if scope],
        address=_text(row.get("remoteIp")),
    )


def _text(value: object) -> str | None:
    return sanitize_line(value[:_LONGEST]) if isinstance(value, str) and value else None


def _time(value: object) -> datetime | None:
    """From milliseconds since 1970."""
    try:
        return datetime.fromtimestamp(value / 1000, UTC) if isinstance(value, int | float) else None
    except (OverflowError, ValueError, OSError):
        return None
