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
from roost.storage.webhooks.model import SECRET_PREFIX, TEST_EVENT

JSON = Any


def event_type(change: FileEvent, file: File) -> str:
    return f"ipfs.{file.network}.{change}"


def file_event_body(change: FileEvent, file: File, previous: File | None, at: datetime) -> str:
    """Return the body of a message about a file, with the previous values of attributes that an update changed."""
    attributes = _attributes(file)
    data: dict[str, JSON] = {"object": attributes}
    if previous is not None:
        changed = {name: value for name, value in _attributes(previous).items() if value != attributes[name]}
        data["previous_attributes"] = changed
    return _body(event_type(change, file), file.tenant_id, data, at)


def test_event_body(tenant_id: str, webhook_id: str, at: datetime) -> str:
    return _body(TEST_EVENT, tenant_id, {"object": {"id": webhook_id}}, at)


def message_headers(event_id: str, body: bytes, secrets: Sequence[Sensitive[bytes]], at: datetime) -> Mapping[str, str]:
    """Return the headers of a message sent at a time, with one signature per secret."""
    signatures = [WebhookSigner(secret.reveal()).sign(event_id, at, body.decode()) for secret in secrets]
    return {
        "Content-Type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": " ".join(signatures),
    }


def format_secret(secret: Sensitive[bytes]) -> Sensitive[str]:
    """Format a secret as its owner receives it."""
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
