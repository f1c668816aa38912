"""An upload in parts, the metadata that it begins with, and its bounds."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from roost.storage.tus.errors import InvalidTusUpload
from roost.storage.unixfs.profile import ImportProfile

LIFETIME = timedelta(hours=24)
UNFINISHED_LIMIT = 100
"""Uploads of one tenant's that are not whole."""
KEEP_EVERY = 64 * 1024**2
"""Bytes of one part after which what came is kept, so that a crash takes no more than these."""
IDLE = 60.0
"""Seconds for which a part may bring nothing."""
_METADATA_LIMIT = 64 * 1024
_FIELDS = 32


@dataclass(frozen=True)
class NewTusUpload:
    """What an upload begins with. length: None when it is told later. fields: in the words of upload forms."""

    tenant_id: str
    file_id: str
    length: int | None
    fields: Mapping[str, str]
    max_size: int | None = None
    mime_types: Sequence[str] = ()


@dataclass(frozen=True)
class TusUpload:
    """`offset` bytes were acknowledged; the digests of the leaves of the first `hashed` of them are kept, and the
    content is all there when it is `length`. `limit` is in bytes; `cid` is there when it has become a file.
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
    offset: int = 0
    hashed: int = 0
    cid: str | None = None

    @property
    def is_whole(self) -> bool:
        return self.offset == self.length


def metadata(header: str) -> Mapping[str, str]:
    """`Upload-Metadata`: keys, each with a base64 text or nothing, between commas. Raises InvalidTransfer."""
    if len(header) > _METADATA_LIMIT:
        raise InvalidTusUpload("Upload-Metadata is too long")
    found: dict[str, str] = {}
    for pair in filter(None, map(str.strip, header.split(","))):
        key, _, value = pair.partition(" ")
        if key in found or len(found) == _FIELDS:
            raise InvalidTusUpload("Invalid Upload-Metadata")
        try:
            found[key] = base64.b64decode(value.strip(), validate=True).decode()
        except (ValueError, binascii.Error):
            raise InvalidTusUpload("Invalid Upload-Metadata") from None
    return found


def number(text: str | None, name: str) -> int:
    """A header that is a number of bytes. Raises InvalidTransfer."""
    if text is None or not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise InvalidTusUpload(f"{name} must be a number of bytes")
    return int(text)
