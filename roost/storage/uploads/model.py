"""An upload: what is known before its first byte, what may be said as late as after its last, and its parts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from roost.identity.caller import Plan
from roost.storage.content.model import ContentNetwork
from roost.storage.files.model import FileMetadata
from roost.storage.unixfs.importer import DagTree
from roost.storage.unixfs.profile import V1, ImportProfile

FILES_LIMIT = 30_000
DEPTH_LIMIT = 32
DIRECTORY = "directory"
"""The type of a folder, in answers and where a signed address lists types."""

SizeLimits = Mapping[Plan, int]
"""Bytes of one upload."""


@dataclass(frozen=True)
class UploadRequestLimits:
    """Whose upload it is, and what bounds it further than the tenant's plan.

    file_id: the file's id where it was promised before; whether the content was there is not told then. mime_types:
    those that may come (`image/*`), all when empty; a folder needs `directory` among them.
    """

    tenant_id: str
    profile: ImportProfile = V1
    file_id: str | None = None
    max_size: int | None = None
    mime_types: Sequence[str] = ()


@dataclass(frozen=True)
class UploadMetadata:
    """What the file is to be. A form may say it after the bytes.

    profile: another than ordered. car: the one file is a CAR, and what it holds is meant. The bytes are then read once
    more. wrap: put a single file into a folder. Without a name in the note, the file's own or its folder's is taken.
    """

    network: ContentNetwork = ContentNetwork.PRIVATE
    note: FileMetadata = field(default_factory=FileMetadata)
    profile: ImportProfile | None = None
    wrap: bool = False
    car: bool = False


@dataclass(frozen=True)
class UploadedPart:
    """One file of an upload. path: the folders that it is in, and its name. head: how the content of the first one
    begins, from which the type of a single file is read.
    """

    path: Sequence[str]
    tree: DagTree
    head: bytes = b""
