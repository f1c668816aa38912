"""Schemas of pins by CID."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from roost.storage.content.unixfs.cid import Cid
from roost.storage.files import metadata_parsing
from roost.storage.files.model import NAME_LIMIT, Keyvalues
from roost.storage.pins.model import HOSTS_LIMIT, PAGE_DEFAULT, PAGE_LIMIT, QUEUED, Pin, PinQuery, PinRequest, PinState
from roost.web.schemas import Moment, StorageSchema, Text, Uppercase

PinName = Annotated[Text, Field(max_length=NAME_LIMIT)]
_Host = Annotated[Text, Field(max_length=512)]
HostNodes = Annotated[Sequence[_Host], Field(max_length=HOSTS_LIMIT)]
SortOrder = Annotated[Literal["ASC", "DESC", "DSC"], Uppercase]
QueuedState = Literal[
    "prechecking",
    "searching",
    "retrieving",
    "backfilled",
    "expired",
    "over_max_size",
    "invalid_object",
    "bad_host_node",
    "over_free_limit",
]


def parse_pin_query(cid: str | None, status: str | None, order: str | None) -> PinQuery:
    """Create a query of the queue. Raises InvalidCid."""
    return PinQuery(
        statuses=QUEUED if status is None else [one for one in QUEUED if one == status],
        cid=Cid.parse_spellings(cid) if cid else None,
        ascending=order == "ASC",
    )


class PinByCidRequest(StorageSchema):
    cid: str
    name: PinName | None = None
    keyvalues: dict[str, Any] | None = None
    group_id: Text | None = None
    host_nodes: HostNodes | None = None

    def to_pin_request(self) -> PinRequest:
        """Validate the request. Raises InvalidCid, InvalidFileMetadata."""
        return PinRequest(
            str(Cid.parse(self.cid)),
            metadata_parsing.parse_name(self.name),
            metadata_parsing.parse_keyvalues(self.keyvalues or {}),
            self.group_id or None,
            self.host_nodes or (),
        )


class PinJobParameters(StorageSchema):
    """Filter, order and page of the queue."""

    cid: str | None = None
    status: QueuedState | None = None
    sort: SortOrder | None = None
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_DEFAULT
    page_token: Annotated[str | None, Field(alias="pageToken", max_length=200)] = None

    def to_pin_query(self) -> PinQuery:
        """Validate the filters. Raises InvalidCid."""
        return parse_pin_query(self.cid, self.status, self.sort)


class PinJobRecord(StorageSchema):
    id: str
    cid: str
    name: str | None
    status: PinState
    keyvalues: Keyvalues | None
    host_nodes: Sequence[str] | None
    group_id: str | None
    date_queued: Moment


class PinJobList(StorageSchema):
    """`next_page_token` is empty on the last page."""

    jobs: Sequence[PinJobRecord]
    next_page_token: str = ""


def pin_job_record(pin: Pin) -> PinJobRecord:
    fields: dict[str, Any] = {**vars(pin), **vars(pin.request), "keyvalues": pin.request.keyvalues or None}
    return PinJobRecord(**fields, host_nodes=pin.request.hosts or None, date_queued=pin.created_at)
