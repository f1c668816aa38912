"""Build and sign webhook messages (Standard Webhooks 1.0, symmetric signatures). Pure."""

import base64
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from standardwebhooks import Webhook as WebhookSigner

from roost.core import clock
from roost.core.sensitive import Sensitive
from roost.storage.files.model import File, FileEvent
from roost.storage.webhooks.model import SECRET_PREFIX, TEST

JSON = Any


def event_type(change: FileEvent, file: File) -> str:
    return f"ipfs.{file.network}.{change}"


def of_file(change: FileEvent, file: File, before: File | None, at: datetime) -> str:
    """Return the body of a message about a file; that of an update has the previous values of changed attributes."""
    data: dict[str, JSON] = {"object": (now := _attributes(file))}
    if before is not None:
        data["previous_attributes"] = {name: value for name, value in _attributes(before).items() if value != now[name]}
    return _body(event_type(change, file), file.tenant_id, data, at)


def of_test(tenant_id: str, webhook_id: str, at: datetime) -> str:
    return _body(TEST, tenant_id, {"object": {"id": webhook_id}}, at)


def message_headers(event_id: str, body: bytes, secrets: Sequence[Sensitive[bytes]], at: datetime) -> Mapping[str, str]:
    """Return the headers of a message sent at a given time, with one signature for each secret."""
    return {
        "Content-Type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(WebhookSigner(one.reveal()).sign(event_id, at, body.decode()) for one in secrets),
    }


def format_secret(secret: Sensitive[bytes]) -> Sensitive[str]:
    """Return the secret in the form that its owner receives."""
    return Sensitive(SECRET_PREFIX + base64.b64encode(secret.reveal()).decode())


def _body(kind: str, tenant_id: str, data: JSON, at: datetime) -> str:
    message = {"event_type": kind, "timestamp": clock.format_iso(at), "workspace_id": tenant_id, "data": data}
    return json.dumps(message, separators=(",", ":"), allow_nan=False)


def _attributes(file: File) -> dict[str, JSON]:
    return {
        "id": file.id,
        "cid": file.cid,
        "name": file.metadata.name,
        "size": file.size,
        "mime_type": file.mime_type,
        "number_of_files": file.number_of_files,
        "group_id": file.metadata.group_id,
        "keyvalues": dict(file.metadata.keyvalues),
        "created_at": clock.format_iso(file.created_at),
    }
