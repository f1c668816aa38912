"""Shapes of the older API, as its clients know them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, Field

from roost.storage.content.model import Network
from roost.storage.files import said
from roost.storage.files.model import KEYVALUES_LIMIT, Condition, File, Keyvalues, Note, PinFilter, written
from roost.storage.legacy.errors import InvalidRequest
from roost.storage.unixfs.cid import Cid
from roost.storage.uploads.model import Label
from roost.web.wire import V3, Moment, Text

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


class Greeting(V3):
    message: str = "Congratulations! You are communicating with the Pinata API!"


class Pinned(V3):
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


class Chosen(V3):
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


class Metadata(V3):
    name: str | None
    keyvalues: Keyvalues


class Row(V3):
    id: str
    ipfs_pin_hash: str
    size: int
    user_id: str
    date_pinned: Moment
    date_unpinned: Moment | None
    metadata: Metadata
    regions: Sequence[Mapping[str, str]] = ()
    mime_type: str
    number_of_files: int


class PinList(V3):
    count: int | None
    rows: Sequence[Row]


class Total(V3):
    pin_count: int
    pin_size_total: int
    pin_size_with_replications_total: int


class HashMetadata(V3):
    """A null among keyvalues takes that one away."""

    ipfs_pin_hash: Annotated[str, Field(alias="ipfsPinHash")]
    name: Text | None = None
    keyvalues: dict[str, str | int | float | bool | None] | None = None

    def apply(self, note: Note) -> Note:
        """Raises InvalidMetadata."""
        name = note.name if self.name is None else said.name(self.name)
        return replace(note, name=name, keyvalues=said.keyvalues({**note.keyvalues, **(self.keyvalues or {})}))


def pinned(file: File) -> Pinned:
    return Pinned(
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


def _row(file: File) -> Row:
    unpinned: datetime | None = file.deleted_at
    return Row(
        id=file.id,
        ipfs_pin_hash=file.cid,
        size=file.size,
        user_id=file.tenant_id,
        date_pinned=file.created_at,
        date_unpinned=unpinned,
        metadata=Metadata(name=file.note.name, keyvalues=file.note.keyvalues),
        mime_type=file.mime_type,
        number_of_files=file.number_of_files,
    )


def _decoded(text: str) -> Mapping[str, Any]:
    """A JSON object. Raises InvalidRequest."""
    try:
        found = json.loads(text, parse_constant=_refuse)
    except ValueError:
        raise InvalidRequest from None
    if not isinstance(found, dict):
        raise InvalidRequest
    return cast("Mapping[str, Any]", found)


def label(metadata: object, options: object) -> Label:
    """From `pinataMetadata` and `pinataOptions`, or their texts. Raises InvalidRequest, InvalidMetadata."""
    about, how = _object(metadata), _object(options)
    version, group = how.get("cidVersion"), how.get("groupId")
    name = about.get("name")
    return Label(
        network=Network.PUBLIC,
        note=Note(
            name=said.name(None if name is None else str(name)),
            keyvalues=said.keyvalues(about.get("keyvalues") or {}),
            group_id=said.group(str(group)) if group else None,
        ),
        profile=None if version is None else said.profile(str(version)),
        wrap=how.get("wrapWithDirectory") in (True, "true"),
    )


def conditions(text: str | None) -> list[Condition]:
    """From `{"key": {"value": v, "op": "eq"}}`. Raises InvalidRequest."""
    found: list[Condition] = []
    wanted_of = _object(text)
    if len(wanted_of) > KEYVALUES_LIMIT:
        raise InvalidRequest(f"At most {KEYVALUES_LIMIT} keyvalues are allowed")
    for key, wanted in wanted_of.items():
        one = _object(wanted)
        operator = str(one.get("op") or "eq")
        if operator not in _OPERATORS:
            raise InvalidRequest(f"op must be one of {', '.join(_OPERATORS)}")
        found.append(_condition(key, operator, one.get("value"), one.get("secondValue")))
    return found


def _condition(key: str, operator: str, value: object, until: object) -> Condition:
    ours, negated = _OPERATORS[operator]
    checked = said.keyvalues({key: value})
    if key not in checked:
        raise InvalidRequest(f"{operator} needs a value")
    if operator in _TEXTUAL:
        return Condition(key, ours, written(checked[key]), negated=negated)
    low = _bound(checked[key])
    high = _bound(said.keyvalues({key: until}).get(key, "")) if ours == "between" else low
    if high == "" or type(high) is not type(low):
        raise InvalidRequest(f"{operator} needs a value and a secondValue of one kind")
    return Condition(key, ours, low, high, negated)


def _bound(value: str | float) -> str | float:
    try:
        return written(value) if isinstance(value, str | bool) else float(value)
    except OverflowError:
        raise InvalidRequest from None


def _object(given: object) -> Mapping[str, Any]:
    if isinstance(given, str) and given:
        return _decoded(given)
    if given and not isinstance(given, dict):
        raise InvalidRequest
    return cast("Mapping[str, Any]", given or {})


def _refuse(_: str) -> None:
    raise ValueError
