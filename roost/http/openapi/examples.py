"""Add an example of each request and response to the OpenAPI description. Pure.

A schema's own `examples` come first. Otherwise an example is composed of the values of its fields: their defaults, and
the values here by name, so that all examples tell of the same agent, file and group. Other text is its field's name.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

Json = Mapping[str, Any]

_AGENT, _VERSION, _NEXT = "jhe6vnjj2z84gp4k", "2026.9.6", "2026.10.1"
_UUID, _TENANT = "3f2a8c1e-5b7d-4e6f-9a0b-1c2d3e4f5a6b", "7c9e6679-7425-40de-944b-e07fc1f90ae7"
_CID = "bafkreih5aznjvttude6c3wbvqeebb6rlx5wkbzyppv7garjiubll2ceym4"
_OTHER = "bafkreidgwf6kcnlf3dvfawh3mej6kp7qrnlcuggs3atabps6ibiztui2ui"
_TIME = "2026-11-23T06:47:33.839235Z"
_DOWNLOAD = f"http://ada-files.gateways.localhost:8642/files/{_CID}"
_KEY = "0f1e2d3c4b5a69788796"

VALUES: Json = {
    "id": _UUID,
    "user_id": _TENANT,
    "userId": _TENANT,
    "agentId": _AGENT,
    "name": "Ada",
    "emoji": "🦉",
    "description": "Answers questions about our docs",
    "vibe": "brief and friendly",
    "engine": "openclaw",
    "agentVersion": _VERSION,
    "version": _VERSION,
    "tag": "latest",
    "status": "running",
    "processStatus": "running",
    "url": f"http://{_AGENT}.agents.localhost:8642",
    "lifecycleJson": "{}",
    "agentLimit": 20,
    "secretLimit": 100,
    "currentVersion": _VERSION,
    "previousVersion": _VERSION,
    "latestVersion": _NEXT,
    "newVersion": _NEXT,
    "availableVersions": [_NEXT, _VERSION],
    "availableVersionsPerEngine": {"openclaw": [_NEXT, _VERSION]},
    "processId": 42,
    "previousProcessId": 41,
    "output": "ok",
    "message": "Done",
    "warning": None,
    "exitCode": 0,
    "token": f"rst_gw_{'0f' * 32}",
    "gatewayToken": f"rst_gw_{'0f' * 32}",
    "expiresIn": 3600,
    "command": "ls uploads",
    "cwd": ".",
    "timeoutSeconds": 60,
    "stdout": "report.pdf\n",
    "stderr": "",
    "filename": "report.pdf",
    "contentBase64": "SGVsbG8=",
    "path": "uploads/report.pdf",
    "size": 5,
    "logs": f"{_TIME} INFO gateway ready",
    "source": "gateway",
    "secretIds": [_UUID],
    "snapshotCid": "bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi",
    "config": '{"agents": {}}',
    "botTokenHint": "1234",
    "appTokenHint": None,
    "botUsername": "ada_bot",
    "allowFrom": ["4711"],
    "deviceId": "d41d8cd98f00",
    "displayName": "Phone",
    "platform": "ios",
    "clientId": "app",
    "clientMode": "ui",
    "role": "operator",
    "scopes": ["operator.read"],
    "remoteIp": "192.0.2.7",
    "requestId": _UUID,
    "approved": [_UUID],
    "jobId": _UUID,
    "kind": "cron",
    "at": None,
    "everyMs": None,
    "expr": "0 8 * * 1-5",
    "tz": "UTC",
    "staggerMs": None,
    "text": None,
    "model": None,
    "thinking": None,
    "mode": "none",
    "channel": None,
    "to": None,
    "summary": "Sent",
    "sessionTarget": "isolated",
    "wakeMode": "now",
    "lastStatus": "ok",
    "durationMs": 900,
    "owned_by": "scripted",
    "skills": [],
    "snapshots": [],
    "portForwarding": [],
    "isRepair": False,
    "appTokenSet": False,
    "error": None,
    "reason": None,
    "statusReason": None,
    "lastError": None,
}
"""Values of fields by name, None where the field may be null. Times are `_TIME`, other numbers 1 or their minimum."""
STORAGE_VALUES: Json = {
    **VALUES,
    "name": "report.pdf",
    "description": "Our documents",
    "url": _DOWNLOAD,
    "data": _DOWNLOAD,
    "status": "pinned",
    "cid": _CID,
    "cids": [_CID],
    "swap_cid": _OTHER,
    "mapped_cid": _OTHER,
    "hashToPin": _CID,
    "IpfsHash": _CID,
    "ipfsHash": _CID,
    "ipfsPinHash": _CID,
    "ipfs_pin_hash": _CID,
    "requestid": _UUID,
    "ID": _UUID,
    "Name": "report.pdf",
    "mime_type": "application/pdf",
    "MimeType": "application/pdf",
    "PinSize": 5,
    "date_unpinned": None,
    "keyvalues": {"project": "roost"},
    "Keyvalues": {"project": "roost"},
    "expires_at": None,
    "gateway_id": _UUID,
    "group_id": None,
    "groupId": None,
    "GroupId": None,
    "is_duplicate": False,
    "isDuplicate": False,
    "date": 1795416453,
    "expires": 3600,
    "max_file_size": 10_000_000,
    "allow_mime_types": ["image/png"],
    "max_size": 26_843_545_600,
    "max_stored": None,
    "max_files": 30_000,
    "stored": 5,
    "method": "GET",
    "signature": f"0x{'1b' * 65}",
    "address": "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
    "tags": ["files"],
    "domain": "ada-files",
    "host": "app.example",
    "ip": "192.0.2.0/24",
    "value": "192.0.2.0/24",
    "next_page_token": None,
    "host_nodes": [],
    "hostNodes": [],
    "origins": [],
    "info": {},
    "meta": {},
    "delegates": [],
    "regions": [],
    "key": _KEY,
    "pinata_api_key": _KEY,
    "pinata_api_secret": "0f" * 32,
    "JWT": "eyJhbGciOiJIUzI1NiJ9.e30.example",
    "max_uses": None,
    "uses": 0,
    "revoked": False,
    "admin": False,
    "resources": ["org:files:write"],
    "events": ["ipfs.private.file_added"],
    "event_type": "ipfs.private.file_added",
    "event_id": "evt_1",
    "secret": "whsec_ZXhhbXBsZQ==",
    "disabled_reason": None,
    "failing_since": None,
    "period_start_time": "2026-11-23",
}
"""The same for the storage API, whose objects are mostly files."""
_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "array": list,
    "object": dict,
    "null": type(None),
    "any": object,
}


def add_examples(described: dict[str, Any], schemas: Json, *, storage: bool) -> None:
    """Give the bodies of an operation an example, except errors."""
    composer = _Composer(schemas, STORAGE_VALUES if storage else VALUES)
    for content in _contents(described):
        for kind, media in content.items():
            if kind in {"application/json", "multipart/form-data"}:
                media["example"] = composer.compose(media["schema"])


def _contents(operation: Json) -> Iterator[Json]:
    yield operation.get("requestBody", {}).get("content", {})
    yield from (response.get("content", {}) for status, response in operation["responses"].items() if status < "400")


@dataclass(frozen=True)
class _Composer:
    schemas: Json
    values: Json

    def compose(self, schema: Json, name: str = "") -> Any:
        """Return a value of a schema; `name` is that of the field."""
        if "examples" in schema:
            return schema["examples"][0]
        if "$ref" in schema:
            return self.compose(self.schemas[schema["$ref"].rsplit("/", 1)[1]], name)
        if branches := schema.get("anyOf") or schema.get("oneOf"):
            is_null = {"type": "null"} in branches and self.values.get(name, "") is None
            return None if is_null else self.compose(branches[0], name)
        for key in ("const", "default"):
            if schema.get(key) not in (None, "", []):
                return schema[key]
        if name in self.values and _fits(self.values[name], schema):
            return self.values[name]
        return schema["enum"][0] if "enum" in schema else self._of_type(schema, name)

    def _of_type(self, schema: Json, name: str) -> Any:
        match schema.get("type"), schema.get("format"):
            case "object", _:
                fields: Json = schema.get("properties", {})
                value = {field: self.compose(one, field) for field, one in fields.items()}
            case "array", _:
                value = [self.compose(schema["items"], name)]
            case "integer" | "number", _:
                value = schema.get("minimum", 1)
            case "boolean", _:
                value = True
            case "string", "date-time":
                value = _TIME
            case "string", _:
                value = schema.get("default", name)
            case _:
                value = None
        return value


def _fits(value: object, schema: Json) -> bool:
    return value in schema["enum"] if "enum" in schema else isinstance(value, _TYPES[schema.get("type", "any")])
