"""OpenClaw's pairing requests: strangers who wrote to a bot and wait for approval."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from roost.core.sanitize import sanitize_line
from roost.drivers.engine.abilities.channels import (
    MAX_PAIRING_REQUESTS,
    NAME_LIMIT,
    PairingRequest,
    PairingRequestNotFound,
)
from roost.drivers.engine.openclaw.rpc import OpenClawRpc
from roost.drivers.model.json_access import as_list, as_object, as_string

Json = dict[str, Any]


async def list_requests(rpc: OpenClawRpc) -> Mapping[str, tuple[PairingRequest, ...]]:
    """Return the pending requests of each channel that has any."""
    return parse_requests(await rpc.call("channels.pairing.list", {}))


async def approve_request(rpc: OpenClawRpc, channel: str, request_id: str) -> None:
    """Approve a request, and have the bot tell its sender. Raises PairingRequestNotFound."""
    wanted = (channel, request_id)
    rows = _rows(await rpc.call("channels.pairing.list", {}))
    request = next((row for row in rows if (row.get("channel"), row.get("requestId")) == wanted), None)
    if request is None:
        raise PairingRequestNotFound
    params = {key: request.get(key) for key in ("channel", "accountId", "requestId")}
    await rpc.call("channels.pairing.approve", {**params, "notify": True})


def parse_requests(found: object) -> Mapping[str, tuple[PairingRequest, ...]]:
    """Parse the result of `channels.pairing.list`."""
    requests: dict[str, tuple[PairingRequest, ...]] = {}
    for row in _rows(found):
        name, request_id, sender = (as_string(row.get(key)) for key in ("channel", "requestId", "senderId"))
        others = requests.get(name, ())
        if name and request_id and sender and len(others) < MAX_PAIRING_REQUESTS:
            request = PairingRequest(_short(sender), _sender_name(row), _parse_time(row.get("createdAt")), request_id)
            requests[name] = (*others, request)
    return requests


def _rows(found: object) -> list[Json]:
    return [as_object(row) for row in as_list(as_object(found).get("requests"))]


def _sender_name(request: Json) -> str | None:
    """Return first and last name, and the user name after an @."""
    about = as_object(request.get("metadata"))
    first, last, user, name = (as_string(about.get(key)) for key in ("firstName", "lastName", "username", "name"))
    handle = f"@{user.removeprefix('@')}" if user else ""
    return _short(" ".join(filter(None, [first or name, last, handle]))) or None


def _short(text: str) -> str:
    return sanitize_line(text)[:NAME_LIMIT]


def _parse_time(value: object) -> datetime | None:
    """Return the time of an ISO 8601 text with an offset, None for anything else."""
    try:
        found = datetime.fromisoformat(as_string(value))
    except ValueError:
        return None
    return found if found.tzinfo else None
