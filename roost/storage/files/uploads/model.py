"""Limits, metadata and parts of an upload."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roost.identity.caller import Plan
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.importer import DagTree
from roost.storage.content.unixfs.profile import V1, ImportProfile
from roost.storage.files.model import FileMetadata

FILES_LIMIT = 30_000
DEPTH_LIMIT = 32
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
