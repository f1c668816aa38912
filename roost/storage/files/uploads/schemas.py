"""Shapes of uploads."""

from collections.abc import Mapping
from typing import Any

from roost.storage.files.schemas import FileFields
from roost.web.schemas import BINARY, StorageSchema, describe_body

_TEXT = {"type": "string"}


def describe_form(fields: Mapping[str, Any], **example: str) -> dict[str, Any]:
    """Return the OpenAPI description of a form with a file and these fields, and an example of some."""
    properties = {"file": {**BINARY, "description": "Several make a folder; their names are its paths."}, **fields}
    schema = {
        "type": "object",
        "required": ["file"],
        "properties": properties,
        "examples": [{"file": "...", **example}],
    }
    return describe_body("multipart/form-data", schema)


UPLOAD_FORM = describe_form(
    {
        "network": {"enum": ["public", "private"], "default": "private"},
        "name": _TEXT,
        "group_id": _TEXT,
        "keyvalues": {**_TEXT, "description": "A JSON object."},
        "expires_at": {**_TEXT, "description": "Unix seconds."},
        "cid_version": {"enum": ["v0", "v1", "unixfs-v1-2025"], "default": "v1"},
        "car": {"enum": ["true", "false"], "default": "false", "description": "The file is a CAR to import."},
    },
    network="public",
    keyvalues='{"project": "roost"}',
)


class UploadedFileRecord(FileFields):
    """`is_duplicate`: the tenant already had this content on this network; the response is the existing file.

    `vectorized` is false, because vectors are made on request; clients set it themselves after they requested them.
    """

    is_duplicate: bool
    vectorized: bool = False


class UploadLimitsRecord(StorageSchema):
    """Bytes of one upload, files of one folder, stored bytes and their limit, which is absent if there is none."""

    max_size: int
    max_files: int
    stored: int
    max_stored: int | None = None
