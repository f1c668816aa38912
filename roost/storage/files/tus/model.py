"""Resumable uploads, their metadata and limits."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from roost.core.problem import InvalidInput, NotFound, ResourceConflict, ServiceUnavailable, TooManyRequests
from roost.storage.content.unixfs.profile import ImportProfile
from roost.storage.files.uploads.model import UploadTooLarge


class TusUploadNotFound(NotFound):
    """The upload does not exist, was terminated, has expired, or has another token."""

    message = "Upload not found"


class InvalidTusUpload(InvalidInput):
    message = "Invalid upload"


class UploadOffsetMismatch(ResourceConflict):
    """The part begins at another offset than `offset`, or another part is being received."""

    message = "Upload-Offset is not where the upload is"

    def __init__(self, offset: int, cid: str | None = None) -> None:
        super().__init__()
        self.offset = offset
        self.cid = cid


class TooManyTusUploads(TooManyRequests):
    message = "Too many unfinished uploads"


class UploadNotHere(ServiceUnavailable):
    """Unfinished bytes are on the disk of the server that received them; others pass parts on while that runs."""

    message = "The bytes of this upload are on another server or lost; try again later, or begin the upload again"


VERSION = "1.0.0"
PROTOCOL_HEADERS: Mapping[str, str] = {
    "Tus-Resumable": VERSION,
    "Tus-Version": VERSION,
    "Tus-Extension": "creation,creation-with-upload,creation-defer-length,expiration,termination",
    "Cache-Control": "no-store",
}
"""Headers of every response at the URLs of uploads."""
LIFETIME = timedelta(hours=24)
UNFINISHED_LIMIT = 100
"""Maximum unfinished uploads of one tenant."""
SAVE_EVERY = 64 * 1024**2
"""Bytes between saves of progress; a crash loses at most these."""
IDLE_SECONDS = 60.0
"""Seconds without data after which a part ends."""
_METADATA_LIMIT = 64 * 1024
_MAX_FIELDS = 32


@dataclass(frozen=True)
class NewTusUpload:
    """Creation of an upload. length: bytes, None if deferred. fields: named like the fields of upload forms.

    metadata: `Upload-Metadata` as it was sent, with fields of the URL left out.
    """

    tenant_id: str
    file_id: str
    length: int | None
    fields: Mapping[str, str]
    max_size: int | None = None
    mime_types: Sequence[str] = ()
    metadata: str = ""


@dataclass(frozen=True)
class TusUpload:
    """A resumable upload; sizes are in bytes.

    offset: acknowledged bytes. hashed: bytes whose leaf digests are stored. cid: set when the upload became a file.
    host_id: the server with the acknowledged bytes.
    """

    id: str
    file_id: str
    tenant_id: str
    length: int | None
    limit: int
    fields: Mapping[str, str]
    mime_types: Sequence[str]
    profile: ImportProfile
    created_at: datetime
    expires_at: datetime
    metadata: str = ""
    offset: int = 0
    hashed: int = 0
    cid: str | None = None
    host_id: str | None = None

    @property
    def is_whole(self) -> bool:
        return self.offset == self.length

    def check_end(self, end: int) -> None:
        """Check that bytes up to `end` fit. Raises UploadTooLarge, InvalidTusUpload."""
        if end > (self.limit if self.length is None else self.length):
            raise UploadTooLarge if self.length is None else InvalidTusUpload("More came than Upload-Length")


def parse_metadata_header(header: str) -> Mapping[str, str]:
    """Parse `Upload-Metadata`: comma-separated keys with optional base64 values. Raises InvalidTusUpload."""
    if len(header) > _METADATA_LIMIT:
        raise InvalidTusUpload("Upload-Metadata is too long")
    found: dict[str, str] = {}
    for pair in filter(None, map(str.strip, header.split(","))):
        key, _, value = pair.partition(" ")
        if key in found or len(found) == _MAX_FIELDS:
            raise InvalidTusUpload("Invalid Upload-Metadata")
        try:
            found[key] = base64.b64decode(value.strip(), validate=True).decode()
        except (ValueError, binascii.Error):
            raise InvalidTusUpload("Invalid Upload-Metadata") from None
    return found


def parse_byte_count(text: str | None, name: str) -> int:
    """Parse a header with a number of bytes. Raises InvalidTusUpload."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise InvalidTusUpload(f"{name} must be a number of bytes")
    return int(text)
