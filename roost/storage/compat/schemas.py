"""Schemas of the APIs from before `/v3`, as their clients read and write them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator, Field

from roost.storage.compat.json_extractor import reject_constant
from roost.storage.compat.service import InvalidLegacyRequest
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files import metadata_parsing
from roost.storage.files.groups.model import NAME_LIMIT as GROUP_NAME_LIMIT
from roost.storage.files.groups.model import PAGE_DEFAULT as GROUPS_DEFAULT
from roost.storage.files.groups.model import PAGE_LIMIT as GROUPS_LIMIT
from roost.storage.files.groups.model import Group
from roost.storage.files.model import (
    KEYVALUES_LIMIT,
    File,
    FileMetadata,
    KeyvalueCondition,
    Keyvalues,
    PinFilter,
    format_value,
)
from roost.storage.files.uploads.model import UploadMetadata
from roost.storage.files.uploads.schemas import describe_form
from roost.storage.pins.model import Pin, PinQuery, PinRequest, PinState
from roost.storage.pins.schemas import (
    HostNodes,
    PinByCidRequest,
    PinName,
    QueuedState,
    SortOrder,
    parse_pin_query,
    pin_job_record,
)
from roost.web.schemas import ApiSchema, Moment, StorageSchema, Text, ZonedTime, describe_body

_TEXT_OPERATORS = {
    "eq": ("eq", False),
    "ne": ("eq", True),
    "like": ("like", False),
    "notLike": ("like", True),
    "iLike": ("ilike", False),
    "notILike": ("ilike", True),
}
_ORDER_OPERATORS = {
    **{op: (op, False) for op in ("gt", "gte", "lt", "lte", "between")},
    "notBetween": ("between", True),
}
_OPERATORS = {**_TEXT_OPERATORS, **_ORDER_OPERATORS}
"""Operators of clients, with the kind of condition and whether it is negated."""
JSON_PIN_MEMBERS = ("pinataContent", "pinataMetadata", "pinataOptions")
"""Members of a body that pins JSON: the content, and the arguments of `upload_metadata`."""
PIN_JOBS_DEFAULT, PIN_JOBS_LIMIT = 5, 1000
PIN_FILE_FORM = describe_form(
    {name: {"type": "string", "description": "A JSON object."} for name in JSON_PIN_MEMBERS[1:]},
    pinataMetadata='{"name": "report.pdf"}',
)
PIN_JSON_BODY = describe_body(
    "application/json",
    {
        "type": "object",
        "description": "Without `pinataContent` the whole object is stored.",
        "properties": {
            key: {"anyOf": [{"type": kind} for kind in ("object", "string", "null")]} for key in JSON_PIN_MEMBERS[1:]
        }
        | {"pinataContent": {}},
        "examples": [{"pinataContent": {"hello": "world"}, "pinataMetadata": {"name": "hello.json"}}],
    },
)
_CIDS_LIMIT = 1000
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
    pin_start: Annotated[ZonedTime | None, Field(alias="pinStart")] = None
    pin_end: Annotated[ZonedTime | None, Field(alias="pinEnd")] = None
    unpin_start: Annotated[ZonedTime | None, Field(alias="unpinStart")] = None
    unpin_end: Annotated[ZonedTime | None, Field(alias="unpinEnd")] = None
    pin_size_min: _Size = Field(None, alias="pinSizeMin")
    pin_size_max: _Size = Field(None, alias="pinSizeMax")
    page_limit: Annotated[int, Field(alias="pageLimit", ge=1, le=1000)] = 10
    page_offset: Annotated[int, Field(alias="pageOffset", ge=0, le=10**9)] = 0
    name: Annotated[Text | None, Field(alias="metadata[name]", max_length=255)] = None
    keyvalues: Annotated[str | None, Field(alias="metadata[keyvalues]", max_length=20_000)] = None
    include_count: Annotated[bool, Field(alias="includeCount")] = True
    includes_count: Annotated[bool, Field(alias="includesCount")] = True

    def to_filter(self) -> PinFilter:
        """Validate the request. Raises InvalidCid, InvalidLegacyRequest, InvalidFileMetadata."""
        return PinFilter(
            status=self.status,
            cid=Cid.parse_spellings(self.cid) if self.cid else None,
            hash_contains=self.hash_contains,
            group_id=self.group_id,
            pinned=(self.pin_start, self.pin_end),
            unpinned=(self.unpin_start, self.unpin_end),
            size=(self.pin_size_min, self.pin_size_max),
            name=self.name,
            conditions=parse_conditions(self.keyvalues),
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
    regions: Sequence[Mapping[str, str]] = ()  # both clients expect the field; there are no regions
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
    """Changes of a file's metadata; a keyvalue of null is removed."""

    ipfs_pin_hash: Annotated[str, Field(alias="ipfsPinHash")]
    name: Text | None = None
    keyvalues: dict[str, str | int | float | bool | None] | None = None

    def apply(self, metadata: FileMetadata) -> FileMetadata:
        """Validate the metadata. Raises InvalidFileMetadata."""
        name = metadata.name if self.name is None else metadata_parsing.parse_name(self.name)
        keyvalues = metadata_parsing.parse_keyvalues({**metadata.keyvalues, **(self.keyvalues or {})})
        return replace(metadata, name=name, keyvalues=keyvalues)


class PinByHashMetadata(StorageSchema):
    name: PinName | None = None
    keyvalues: dict[str, Any] | None = None


def _none_if_empty(hosts: object) -> object:
    """Read the empty string, which clients send for no hosts, as None."""
    return None if hosts == "" else hosts


class PinByHashOptions(StorageSchema):
    group_id: Annotated[Text | None, Field(alias="groupId")] = None
    host_nodes: Annotated[HostNodes | None, Field(alias="hostNodes"), BeforeValidator(_none_if_empty)] = None


class PinByHashRequest(StorageSchema):
    hash: Annotated[str, Field(alias="hashToPin")]
    metadata: Annotated[PinByHashMetadata | None, Field(alias="pinataMetadata")] = None
    options: Annotated[PinByHashOptions | None, Field(alias="pinataOptions")] = None

    def to_pin_request(self) -> PinRequest:
        """Validate the request. Raises InvalidCid, InvalidFileMetadata."""
        metadata, options = self.metadata or PinByHashMetadata(), self.options or PinByHashOptions()
        request = PinByCidRequest(cid=self.hash, name=metadata.name, keyvalues=metadata.keyvalues)
        chosen = {"group_id": options.group_id, "host_nodes": options.host_nodes}
        return request.model_copy(update=chosen).to_pin_request()


class LegacyPinJobParameters(StorageSchema):
    status: QueuedState | None = None
    ipfs_pin_hash: str | None = None
    sort: SortOrder = "ASC"
    limit: Annotated[int, Field(ge=1, le=PIN_JOBS_LIMIT)] = PIN_JOBS_DEFAULT
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0

    def to_pin_query(self) -> PinQuery:
        """Parse the query. Raises InvalidCid."""
        return parse_pin_query(self.ipfs_pin_hash, self.status, self.sort)


class PinByHashResponse(StorageSchema):
    id: str
    ipfs_hash: Annotated[str, Field(serialization_alias="ipfsHash")]
    status: PinState
    name: str | None


class LegacyPinJobRecord(StorageSchema):
    id: str
    ipfs_pin_hash: str
    date_queued: Moment
    name: str | None
    status: PinState
    keyvalues: Keyvalues | None
    host_nodes: Sequence[str] | None
    pin_policy: None = None  # both clients expect the field; pins have no policy


class LegacyPinJobList(StorageSchema):
    count: int
    rows: Sequence[LegacyPinJobRecord]


class GroupNameRequest(StorageSchema):
    name: Annotated[Text, Field(min_length=1, max_length=GROUP_NAME_LIMIT, examples=["Reports"])]


class LegacyGroupParameters(ApiSchema):
    name_contains: Annotated[Text | None, Field(max_length=GROUP_NAME_LIMIT)] = None
    limit: Annotated[int, Field(ge=1, le=GROUPS_LIMIT)] = GROUPS_DEFAULT
    offset: Annotated[int, Field(ge=0, le=10**9)] = 0


class LegacyGroupRecord(ApiSchema):
    id: str
    user_id: Annotated[str, Field(serialization_alias="user_id")]
    name: str = Field(examples=["Reports"])
    created_at: Moment
    updated_at: Moment


class LegacySwapRecord(ApiSchema):
    mapped_cid: str | None
    created_at: Moment


class CidListRequest(StorageSchema):
    cids: Annotated[Sequence[Annotated[str, Field(max_length=512)]], Field(min_length=1, max_length=_CIDS_LIMIT)]

    def to_cids(self) -> Sequence[Cid]:
        """Parse the CIDs. Raises InvalidCid."""
        return [Cid.parse(cid) for cid in self.cids]


def pin_file_response(file: File) -> PinFileResponse:
    named: dict[str, Any] = {"ipfs_hash": file.cid, "pin_size": file.size, "timestamp": file.created_at}
    return PinFileResponse(**vars(file), **vars(file.metadata), **named)


def pin_job_row(pin: Pin) -> LegacyPinJobRecord:
    return LegacyPinJobRecord(**vars(pin_job_record(pin)), ipfs_pin_hash=pin.request.cid)


def legacy_group(group: Group) -> LegacyGroupRecord:
    return LegacyGroupRecord(**vars(group), user_id=group.tenant_id)


def pin_list_row(file: File) -> PinListRow:
    fields: dict[str, Any] = {**vars(file), "metadata": PinMetadata(**vars(file.metadata))}
    return PinListRow(
        **fields,
        ipfs_pin_hash=file.cid,
        user_id=file.tenant_id,
        date_pinned=file.created_at,
        date_unpinned=file.deleted_at,
    )


def upload_metadata(metadata: object, options: object) -> UploadMetadata:
    """Parse `pinataMetadata` and `pinataOptions`, objects or JSON. Raises InvalidLegacyRequest, InvalidFileMetadata."""
    fields = _as_object(metadata, "pinataMetadata")
    upload_options = _as_object(options, "pinataOptions")
    version, group = upload_options.get("cidVersion"), upload_options.get("groupId")
    name = fields.get("name")
    return UploadMetadata(
        network=ContentNetwork.PUBLIC,
        file_metadata=FileMetadata(
            name=metadata_parsing.parse_name(None if name is None else str(name)),
            keyvalues=metadata_parsing.parse_keyvalues(fields.get("keyvalues") or {}),
            group_id=metadata_parsing.parse_group_id(str(group)) if group else None,
        ),
        profile=None if version is None else metadata_parsing.parse_profile(str(version)),
        wrap=upload_options.get("wrapWithDirectory") in (True, "true"),
    )


def parse_conditions(text: str | None) -> list[KeyvalueCondition]:
    """Parse `{"key": {"value": v, "op": "eq"}}`. Raises InvalidLegacyRequest, InvalidFileMetadata."""
    conditions: list[KeyvalueCondition] = []
    conditions_by_key = _as_object(text, "metadata[keyvalues]")
    if len(conditions_by_key) > KEYVALUES_LIMIT:
        raise InvalidLegacyRequest(f"At most {KEYVALUES_LIMIT} keyvalues are allowed")
    for key, condition in conditions_by_key.items():
        fields = _as_object(condition, "metadata[keyvalues]")
        operator = str(fields.get("op") or "eq")
        if operator not in _OPERATORS:
            raise InvalidLegacyRequest(f"op must be one of {', '.join(_OPERATORS)}")
        conditions.append(_condition(key, operator, fields.get("value"), fields.get("secondValue")))
    return conditions


def _condition(key: str, operator: str, value: object, second_value: object) -> KeyvalueCondition:
    kind, negated = _OPERATORS[operator]
    values = metadata_parsing.parse_keyvalues({key: value})
    if key not in values:
        raise InvalidLegacyRequest(f"{operator} requires a value")
    if operator in _TEXT_OPERATORS:
        return KeyvalueCondition(key, kind, format_value(values[key]), negated=negated)
    low = _bound(values[key])
    high = _bound(metadata_parsing.parse_keyvalues({key: second_value}).get(key, "")) if kind == "between" else low
    if high == "" or type(high) is not type(low):
        raise InvalidLegacyRequest(f"{operator} requires a value and a secondValue of one type")
    return KeyvalueCondition(key, kind, low, high, negated)


def _bound(value: str | float) -> str | float:
    try:
        return format_value(value) if isinstance(value, str | bool) else float(value)
    except OverflowError:
        raise InvalidLegacyRequest from None


def _as_object(value: object, field: str) -> Mapping[str, Any]:
    """Return an object, given as such or as JSON. Raises InvalidLegacyRequest."""
    if value is None or value == "":
        return {}
    kind = "an object"
    if isinstance(value, str):
        kind = "a JSON object"
        try:
            value = json.loads(value, parse_constant=reject_constant)
        except ValueError:
            raise InvalidLegacyRequest(detail=f"{field}: must be JSON") from None
    if not isinstance(value, dict):
        raise InvalidLegacyRequest(detail=f"{field}: must be {kind}")
    return cast("Mapping[str, Any]", value)
