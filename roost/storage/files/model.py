"""A file: a CID on one network of a tenant, with metadata."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from roost.core.problem import InvalidInput, NotFound, PayloadTooLarge, ResourceConflict
from roost.storage.content.model import ContentNetwork


class FileNotFound(NotFound):
    message = "File not found"


class FileIdTaken(ResourceConflict):
    """A reserved file id can be used once."""

    message = "The file was uploaded already"


class StorageQuotaExceeded(PayloadTooLarge):
    message = "The storage of your plan is full"


class InvalidFileMetadata(InvalidInput):
    message = "Invalid metadata"


class EmptyFileUpdate(InvalidInput):
    message = "name, keyvalues or expires_at is required"


NAME_LIMIT = 255
KEYVALUES_LIMIT = 10
KEY_LIMIT = 255
VALUE_LIMIT = 1024
PAIR_BYTES = 2600
"""Bytes of a key and its value together; an index row of PostgreSQL cannot be larger."""
PAGE_DEFAULT, PAGE_LIMIT = 10, 1000
HOLDER_PREFIX = "file/"
UNGROUPED = "null"
"""Value of the list filter for files without a group."""

Keyvalues = Mapping[str, str | int | float | bool]


class FileEvent(StrEnum):
    """Change of a file."""

    ADDED = "file_added"
    UPDATED = "file_updated"
    DELETED = "file_deleted"


@dataclass(frozen=True)
class FileMetadata:
    """Editable attributes of a file."""

    name: str | None = None
    keyvalues: Keyvalues = field(default_factory=dict[str, str | int | float | bool])
    group_id: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True)
class File:
    """A file or folder of a tenant; `size` is in bytes. A folder has the `mime_type` `directory`.

    created_at: time at which the tenant first had this CID on this network; signatures contain it, so it never changes.
    is_duplicate: whether the tenant already had the content before this upload.
    """

    id: str
    tenant_id: str
    network: ContentNetwork
    cid: str
    size: int
    number_of_files: int
    mime_type: str
    metadata: FileMetadata
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None = None
    is_duplicate: bool = False


@dataclass(frozen=True)
class FileFilter:
    """Filter of a file list. name: substring. group_id: may be UNGROUPED. cid: spellings of one CID.

    nothing: match no file, for the filter `cidPending`, because every file has a CID.
    """

    name: str | None = None
    group_id: str | None = None
    mime_type: str | None = None
    cid: Sequence[str] | None = None
    keyvalues: Keyvalues = field(default_factory=dict[str, str | int | float | bool])
    ascending: bool = False
    nothing: bool = False

    @property
    def is_search(self) -> bool:
        """Return whether the query may scan many files."""
        return bool(self.name or self.group_id or self.mime_type or self.keyvalues)


@dataclass(frozen=True)
class KeyvalueCondition:
    """Condition on a value. operator: eq, like, ilike (with `%` wildcards), gt, gte, lt, lte, between (up to `until`).

    Comparisons are numeric if `value` is a number.
    """

    key: str
    operator: str
    value: str | float
    until: str | float | None = None
    negated: bool = False


@dataclass(frozen=True)
class PinFilter:
    """Filter of the pinning API over public and deleted files; ranges are inclusive, and None is an open end."""

    status: str = "all"
    cid: Sequence[str] | None = None
    hash_contains: str | None = None
    group_id: str | None = None
    pinned: tuple[datetime | None, datetime | None] = (None, None)
    unpinned: tuple[datetime | None, datetime | None] = (None, None)
    size: tuple[int | None, int | None] = (None, None)
    name: str | None = None
    conditions: Sequence[KeyvalueCondition] = ()


def format_value(value: str | float) -> str:
    """Format a value as filters compare it: booleans as in JSON and URLs."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def holder_of(file_id: str) -> str:
    """Return the holder name of a file."""
    return f"{HOLDER_PREFIX}{file_id}"


def check_keyvalues(given: Mapping[str, object]) -> Keyvalues:
    """Validate at most 10 pairs with text, number or boolean values. Raises InvalidFileMetadata."""
    if len(given) > KEYVALUES_LIMIT:
        raise InvalidFileMetadata(f"At most {KEYVALUES_LIMIT} keyvalues are allowed")
    checked: dict[str, str | int | float | bool] = {}
    for key, value in given.items():
        if not 0 < len(key) <= KEY_LIMIT:
            raise InvalidFileMetadata(f"keys of keyvalues must have 1 to {KEY_LIMIT} characters")
        if not isinstance(value, str | int | float) or len(str(value)) > VALUE_LIMIT:
            raise InvalidFileMetadata(f"keyvalues must be texts or numbers of at most {VALUE_LIMIT} characters")
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidFileMetadata("keyvalues must be finite numbers")
        if len(f"{key}{value}".encode()) > PAIR_BYTES:
            raise InvalidFileMetadata(f"A key and its value must have at most {PAIR_BYTES} bytes together")
        checked[key] = value
    return checked
