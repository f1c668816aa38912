"""Shapes of the older API, as its clients know them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field

from roost.storage.content.model import ContentNetwork
from roost.storage.files import metadata_parsing
from roost.storage.files.model import (
    KEYVALUES_LIMIT,
    File,
    FileMetadata,
    KeyvalueCondition,
    Keyvalues,
    PinFilter,
    written,
)
from roost.storage.legacy.errors import InvalidLegacyRequest
from roost.storage.unixfs.cid import Cid
from roost.storage.uploads.model import UploadMetadata
from roost.web.schemas import Moment, StorageSchema, Text

_TEXTUAL = {
    "eq": ("eq", False),
    "ne": ("eq", True),
    "like": ("like", False),
    "notLike": ("like", True),
    "iLike": ("ilike", False),
    "notILike": ("ilike", True),
}
_ORDERING = {
    **{op: (op, False) for op in ("gt", "gte", "lt", "lte", "between")},
    "notBetween": ("between", True),
}
_OPERATORS = {**_TEXTUAL, **_ORDERING}
"""By the clients' words for them: ours, and whether it is negated."""
JSON_PIN = ("pinataContent", "pinataMetadata", "pinataOptions")
"""Members of a body that pins JSON: the content, and what `label` takes."""
_When = Annotated[datetime, AfterValidator(lambda moment: moment if moment.tzinfo else moment.replace(tzinfo=UTC))]
"""A day, or a time; without a zone it is UTC."""
_Size = Annotated[int | None, Field(ge=0, le=2**60)]


class LegacyGreeting(StorageSchema):
    message: str = "Congratulations! You are communicating with the Pinata API!"


class PinFileResponse(StorageSchema):
    ipfs_hash: str = Field(serialization_alias="IpfsHash")
    pin_size: int = Field(serialization_alias="PinSize")
    timestamp: Moment = Field(serialization_alias="Timestamp")
    id: str = Field(serialization_alias="ID")
    name: str | None = Field(serialization_alias="Name")
    number_of_files: int = Field(serialization_alias="NumberOfFiles")
    mime_type: str = Field(serialization_alias="MimeType")
    group_id: str | None = Field(serialization_alias="GroupId")
    keyvalues: Keyvalues = Field(serialization_alias="Keyvalues")
    is_duplicate: bool = Field(serialization_alias="isDuplicate")


class PinListParameters(StorageSchema):
    status: Literal["all", "pinned", "unpinned"] = "all"
    cid: str | None = None
    hash_contains: Annotated[Text | None, Field(alias="hashContains", max_length=128)] = None
    group_id: Annotated[Text | None, Field(alias="groupId", max_length=64)] = None
    pin_start: Annotated[_When | None, Field(alias="pinStart")] = None
    pin_end: Annotated[_When | None, Field(alias="pinEnd")] = None
    unpin_start: Annotated[_When | None, Field(alias="unpinStart")] = None
    unpin_end: Annotated[_When | None, Field(alias="unpinEnd")] = None
    pin_size_min: _Size = Field(None, alias="pinSizeMin")
    pin_size_max: _Size = Field(None, alias="pinSizeMax")
    page_limit: Annotated[int, Field(alias="pageLimit", ge=1, le=1000)] = 10
    page_offset: Annotated[int, Field(alias="pageOffset", ge=0, le=10**9)] = 0
    name: Annotated[Text | None, Field(alias="metadata[name]", max_length=255)] = None
    keyvalues: Annotated[str | None, Field(alias="metadata[keyvalues]", max_length=20_000)] = None
    include_count: Annotated[bool, Field(alias="includeCount")] = True
    includes_count: Annotated[bool, Field(alias="includesCount")] = True

    def filter(self) -> PinFilter:
        """Raises InvalidCid, InvalidRequest, InvalidMetadata."""
        return PinFilter(
            status=self.status,
            cid=Cid.spelled(self.cid) if self.cid else None,
            hash_contains=self.hash_contains,
            group_id=self.group_id,
            pinned=(self.pin_start, self.pin_end),
            unpinned=(self.unpin_start, self.unpin_end),
            size=(self.pin_size_min, self.pin_size_max),
            name=self.name,
            conditions=conditions(self.keyvalues),
        )


class PinMetadata(StorageSchema):
    name: str | None
    keyvalues: Keyvalues


class PinListRow(StorageSchema):
    id: str
    ipfs_pin_hash: str
    size: int
    user_id: str
    date_pinned: Moment
    date_unpinned: Moment | None
    metadata: PinMetadata
    regions: Sequence[Mapping[str, str]] = ()
    mime_type: str
    number_of_files: int


class PinList(StorageSchema):
    count: int | None
    rows: Sequence[PinListRow]


class UserPinnedDataTotal(StorageSchema):
    pin_count: int
    pin_size_total: int
    pin_size_with_replications_total: int


class HashMetadataRequest(StorageSchema):
    """A null among keyvalues takes that one away."""

    ipfs_pin_hash: Annotated[str, Field(alias="ipfsPinHash")]
    name: Text | None = None
    keyvalues: dict[str, str | int | float | bool | None] | None = None

    def apply(self, note: FileMetadata) -> FileMetadata:
        """Raises InvalidMetadata."""
        name = note.name if self.name is None else metadata_parsing.name(self.name)
        return replace(
            note, name=name, keyvalues=metadata_parsing.keyvalues({**note.keyvalues, **(self.keyvalues or {})})
        )


def pinned(file: File) -> PinFileResponse:
    return PinFileResponse(
        ipfs_hash=file.cid,
        pin_size=file.size,
        timestamp=file.created_at,
        id=file.id,
        name=file.note.name,
        number_of_files=file.number_of_files,
        mime_type=file.mime_type,
        group_id=file.note.group_id,
        keyvalues=file.note.keyvalues,
        is_duplicate=file.is_duplicate,
    )


def listed(found: Sequence[File], count: int | None) -> PinList:
    return PinList(count=count, rows=[_row(file) for file in found])


def _row(file: File) -> PinListRow:
    unpinned: datetime | None = file.deleted_at
    return PinListRow(
        id=file.id,
        ipfs_pin_hash=file.cid,
        size=file.size,
        user_id=file.tenant_id,
        date_pinned=file.created_at,
        date_unpinned=unpinned,
        metadata=PinMetadata(name=file.note.name, keyvalues=file.note.keyvalues),
        mime_type=file.mime_type,
        number_of_files=file.number_of_files,
    )


def _decoded(text: str) -> Mapping[str, Any]:
    """A JSON object. Raises InvalidRequest."""
    try:
        found = json.loads(text, parse_constant=_refuse)
    except ValueError:
        raise InvalidLegacyRequest from None
    if not isinstance(found, dict):
        raise InvalidLegacyRequest
    return cast("Mapping[str, Any]", found)


def label(metadata: object, options: object) -> UploadMetadata:
    """From `pinataMetadata` and `pinataOptions`, or their texts. Raises InvalidRequest, InvalidMetadata."""
    about, how = _object(metadata), _object(options)
    version, group = how.get("cidVersion"), how.get("groupId")
    name = about.get("name")
    return UploadMetadata(
        network=ContentNetwork.PUBLIC,
        note=FileMetadata(
            name=metadata_parsing.name(None if name is None else str(name)),
            keyvalues=metadata_parsing.keyvalues(about.get("keyvalues") or {}),
            group_id=metadata_parsing.group(str(group)) if group else None,
        ),
        profile=None if version is None else metadata_parsing.profile(str(version)),
        wrap=how.get("wrapWithDirectory") in (True, "true"),
    )


def conditions(text: str | None) -> list[KeyvalueCondition]:
    """From `{"key": {"value": v, "op": "eq"}}`. Raises InvalidRequest."""
    found: list[KeyvalueCondition] = []
    wanted_of = _object(text)
    if len(wanted_of) > KEYVALUES_LIMIT:
        raise InvalidLegacyRequest(f"At most {KEYVALUES_LIMIT} keyvalues are allowed")
    for key, wanted in wanted_of.items():
        one = _object(wanted)
        operator = str(one.get("op") or "eq")
        if operator not in _OPERATORS:
            raise InvalidLegacyRequest(f"op must be one of {', '.join(_OPERATORS)}")
        found.append(_condition(key, operator, one.get("value"), one.get("secondValue")))
    return found


def _condition(key: str, operator: str, value: object, until: object) -> KeyvalueCondition:
    ours, negated = _OPERATORS[operator]
    checked = metadata_parsing.keyvalues({key: value})
    if key not in checked:
        raise InvalidLegacyRequest(f"{operator} needs a value")
    if operator in _TEXTUAL:
        return KeyvalueCondition(key, ours, written(checked[key]), negated=negated)
    low = _bound(checked[key])
    high = _bound(metadata_parsing.keyvalues({key: until}).get(key, "")) if ours == "between" else low
    if high == "" or type(high) is not type(low):
        raise InvalidLegacyRequest(f"{operator} needs a value and a secondValue of one kind")
    return KeyvalueCondition(key, ours, low, high, negated)


def _bound(value: str | float) -> str | float:
    try:
        return written(value) if isinstance(value, str | bool) else float(value)
    except OverflowError:
        raise InvalidLegacyRequest from None


def _object(given: object) -> Mapping[str, Any]:
    if isinstance(given, str) and given:
        return _decoded(given)
    if given and not isinstance(given, dict):
        raise InvalidLegacyRequest
    return cast("Mapping[str, Any]", given or {})


def _refuse(_: str) -> None:
    raise ValueError
