"""What a message says and how it is signed (Standard Webhooks 1.0, symmetric signatures). Pure."""

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from roost.core import clock
from roost.core.sensitive import Sensitive
from roost.storage.files.model import File, FileEvent
from roost.storage.webhooks.model import SECRET_PREFIX, TEST

JSON = Any


def event_type(change: FileEvent, file: File) -> str:
    return f"ipfs.{file.network}.{change}"


def of_file(change: FileEvent, file: File, before: File | None, at: datetime) -> str:
    """The body of a message about a file; of an update, with the attributes that were others before it."""
    data: dict[str, JSON] = {"object": (now := _attributes(file))}
    if before is not None:
        data["previous_attributes"] = {name: value for name, value in _attributes(before).items() if value != now[name]}
    return _body(event_type(change, file), file.tenant_id, data, at)


def of_test(tenant_id: str, webhook_id: str, at: datetime) -> str:
    return _body(TEST, tenant_id, {"object": {"id": webhook_id}}, at)


def headers(event_id: str, body: bytes, secrets: Sequence[Sensitive[bytes]], at: datetime) -> Mapping[str, str]:
    """The headers of a message that is sent at a moment, with a signature by each secret."""
    timestamp = str(int(at.timestamp()))
    signed = b".".join((event_id.encode(), timestamp.encode(), body))
    return {
        "Content-Type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": " ".join(f"v1,{_signature(secret, signed)}" for secret in secrets),
    }


def written(secret: Sensitive[bytes]) -> Sensitive[str]:
    """A secret as its owner gets it."""
    return Sensitive(SECRET_PREFIX + base64.b64encode(secret.reveal()).decode())


def _signature(secret: Sensitive[bytes], signed: bytes) -> str:
    return base64.b64encode(hmac.digest(secret.reveal(), signed, hashlib.sha256)).decode()


def _body(kind: str, tenant_id: str, data: JSON, at: datetime) -> str:
    message = {"event_type": kind, "timestamp": clock.format_iso(at), "workspace_id": tenant_id, "data": data}
    return json.dumps(message, separators=(",", ":"), allow_nan=False)


def _attributes(file: File) -> dict[str, JSON]:
    return {
        "id": file.id,
        "cid": file.cid,
        "name": file.note.name,
        "size": file.size,
        "mime_type": file.mime_type,
        "number_of_files": file.number_of_files,
        "group_id": file.note.group_id,
        "keyvalues": dict(file.note.keyvalues),
        "created_at": clock.format_iso(file.created_at),
    }
