"""A file of a tenant's: a name for a CID on one network, with what the tenant noted about it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from roost.storage.content.model import ContentNetwork
from roost.storage.files.errors import InvalidFileMetadata

NAME_LIMIT = 255
KEYVALUES_LIMIT = 10
KEY_LIMIT = 255
VALUE_LIMIT = 1024
PAIR_BYTES = 2600
"""Of a key and its value together: no more has room in an index of PostgreSQL."""
PAGE_DEFAULT, PAGE_LIMIT = 10, 1000
UNGROUPED = "null"
"""The group of files that are in none, as list filters write it."""

Keyvalues = Mapping[str, str | int | float | bool]


class FileEvent(StrEnum):
    """What happens to a file."""

    ADDED = "file_added"
    UPDATED = "file_updated"
    DELETED = "file_deleted"


@dataclass(frozen=True)
class FileMetadata:
    """What a tenant may say and change about a file."""

    name: str | None = None
    keyvalues: Keyvalues = field(default_factory=dict[str, str | int | float | bool])
    group_id: str | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True)
class File:
    """`size` is the content's, in bytes; `number_of_files` is 1 but for folders, whose `mime_type` is `directory`.

    created_at: when this tenant first had this CID on this network. Signatures speak of it: it never changes.
    is_duplicate: whether the tenant had it already when it came this time.
    """

    id: str
    tenant_id: str
    network: ContentNetwork
    cid: str
    size: int
    number_of_files: int
    mime_type: str
    note: FileMetadata
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None = None
    is_duplicate: bool = False


@dataclass(frozen=True)
class FileFilter:
    """`name` is a part of the name; `group_id` may be UNGROUPED; `cid` are the spellings of one CID. `nothing`: files
    that have no CID yet were asked for, and each has one.
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
        """Whether many files may have to be looked at for a few."""
        return bool(self.name or self.group_id or self.mime_type or self.keyvalues)


@dataclass(frozen=True)
class KeyvalueCondition:
    """What a value has to be, or with `negated` must not: `operator` is eq, like or ilike, `%` standing for anything in
    the last two; or gt, gte, lt, lte, or between (`until` is the other end), by number if `value` is one.
    """

    key: str
    operator: str
    value: str | float
    until: str | float | None = None
    negated: bool = False


@dataclass(frozen=True)
class PinFilter:
    """How the older API chooses public files, deleted ones too. Ranges include their ends; None leaves one open."""

    status: str = "all"
    cid: Sequence[str] | None = None
    hash_contains: str | None = None
    group_id: str | None = None
    pinned: tuple[datetime | None, datetime | None] = (None, None)
    unpinned: tuple[datetime | None, datetime | None] = (None, None)
    size: tuple[int | None, int | None] = (None, None)
    name: str | None = None
    conditions: Sequence[KeyvalueCondition] = ()


def written(value: str | float) -> str:
    """A value of a pair as filters compare it: truth is written as JSON and addresses write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


_HOLDER = "file/"


def holder_of(file_id: str) -> str:
    """By what name a file holds its content."""
    return f"{_HOLDER}{file_id}"


def held_by(holders: Sequence[str]) -> Sequence[str]:
    """The ids of the files among holders of content."""
    return [holder.removeprefix(_HOLDER) for holder in holders if holder.startswith(_HOLDER)]


def checked_keyvalues(given: Mapping[str, object]) -> Keyvalues:
    """At most 10 pairs of a key and a text, number or truth value. Raises InvalidMetadata."""
    if len(given) > KEYVALUES_LIMIT:
        raise InvalidFileMetadata(f"At most {KEYVALUES_LIMIT} keyvalues are allowed")
    checked: dict[str, str | int | float | bool] = {}
    for key, value in given.items():
        if not 0 < len(key) <= KEY_LIMIT:
            raise InvalidFileMetadata(f"keys of keyvalues have 1 to {KEY_LIMIT} characters")
        if not isinstance(value, str | int | float) or len(str(value)) > VALUE_LIMIT:
            raise InvalidFileMetadata(f"keyvalues are texts or numbers of at most {VALUE_LIMIT} characters")
        if isinstance(value, float) and not math.isfinite(value):
            raise InvalidFileMetadata("keyvalues are finite numbers")
        if len(f"{key}{value}".encode()) > PAIR_BYTES:
            raise InvalidFileMetadata(f"A key and its value may have {PAIR_BYTES} bytes")
        checked[key] = value
    return checked
