"""Limits, metadata and parts of an upload."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roost.core.problem import InvalidInput, PayloadTooLarge
from roost.identity.caller import Plan
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.importer import DagTree
from roost.storage.content.unixfs.profile import V1, ImportProfile
from roost.storage.files import metadata_parsing
from roost.storage.files.model import FileMetadata

FILES_LIMIT = 30_000
DEPTH_LIMIT = 32
_NAME_BYTES = 255
DIRECTORY = "directory"
"""Type of a folder, in responses and in the type list of a signed URL."""

SizeLimits = Mapping[Plan, int]
"""Bytes of one upload."""


@dataclass(frozen=True)
class UploadRequestLimits:
    """Tenant of an upload and its limits beyond the plan.

    file_id: reserved id; responses then hide whether the content is a duplicate. mime_types: allowed types
    (`image/*`), all if empty; a folder needs `directory`. max_size: bytes.
    """

    tenant_id: str
    profile: ImportProfile = V1
    file_id: str | None = None
    max_size: int | None = None
    mime_types: Sequence[str] = ()


@dataclass(frozen=True)
class UploadMetadata:
    """Metadata of the file, which a form may send after the bytes.

    profile: replaces the profile of the limits. car: import the content of the CAR. Both read the bytes again.
    wrap: put a single file into a folder. The default name is that of the file or its folder.
    """

    network: ContentNetwork = ContentNetwork.PRIVATE
    file_metadata: FileMetadata = field(default_factory=FileMetadata)
    profile: ImportProfile | None = None
    wrap: bool = False
    car: bool = False


@dataclass(frozen=True)
class UploadedPart:
    """One file of an upload. path: its folders and name. head: first bytes of the first file, for its MIME type."""

    path: Sequence[str]
    tree: DagTree
    head: bytes = b""


class InvalidUpload(InvalidInput):
    message = "Invalid upload"


class UploadTooLarge(PayloadTooLarge):
    message = "The upload is too large"


class TooManyFiles(PayloadTooLarge):
    message = "Too many files"


class MimeTypeRefused(InvalidUpload):
    """The signed URL does not allow the detected type."""

    message = "Presigned URL does not grant permissions to upload detected MIME type"


def parse_upload_path(filename: str) -> Sequence[str]:
    """Split `folder/a.txt` into folders and name. Raises InvalidUpload, also for names that are unsafe to unpack."""
    path = filename.split("/")
    if len(path) > DEPTH_LIMIT:
        raise InvalidUpload(f"The path has {len(path)} segments; at most {DEPTH_LIMIT} are allowed")
    if not all(map(_is_name, path)):
        raise InvalidUpload("Invalid file name")
    return path


def _is_name(name: str) -> bool:
    if name in {"", ".", ".."} or "\\" in name or any(ord(sign) < 32 or ord(sign) == 127 for sign in name):
        return False
    try:
        return len(name.encode()) <= _NAME_BYTES
    except UnicodeEncodeError:
        return False


def parse_upload_metadata(fields: Mapping[str, str]) -> UploadMetadata:
    """Parse `network`, `name`, `group_id` (or `group`), `keyvalues`, `expires_at`, `cid_version`, `car`.

    The fields of forms and of `Upload-Metadata` have the same names. Raises InvalidFileMetadata.
    """
    version = fields.get("cid_version")
    return UploadMetadata(
        network=metadata_parsing.parse_network(fields.get("network") or ContentNetwork.PRIVATE),
        file_metadata=FileMetadata(
            name=metadata_parsing.parse_name(fields.get("name")),
            keyvalues=metadata_parsing.parse_keyvalues(fields.get("keyvalues", "")),
            group_id=metadata_parsing.parse_group_id(fields.get("group_id") or fields.get("group")),
            expires_at=metadata_parsing.parse_expiry(fields.get("expires_at")),
        ),
        profile=metadata_parsing.parse_profile(version) if version else None,
        car=metadata_parsing.parse_flag(fields.get("car")),
    )
