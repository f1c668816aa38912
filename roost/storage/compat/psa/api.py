"""The Pinning Service API (ipfs/pinning-services-api-spec 1.0.0), for `ipfs pin remote` and other clients."""

import json
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, Path, Query, Response, status
from pydantic import Field

from roost.core.problem import InvalidInput
from roost.identity.authenticator import FilesReader, FilesWriter
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files import metadata_parsing
from roost.storage.files.model import NAME_LIMIT, Keyvalues
from roost.storage.pins.model import FAILED, HOSTS_LIMIT, NameMatch, Pin, PinQuery, PinRequest, PinState
from roost.storage.pins.service import PinService
from roost.web.responses import render_list
from roost.web.schemas import Moment, StorageSchema, Text, ZonedTime
from roost.web.service_registry import provide_service


class InvalidPinQuery(InvalidInput):
    message = "Invalid query"


LIMIT_DEFAULT, LIMIT_MAX = 10, 1000
_CIDS_LIMIT = 10
_META_LIMIT = 1000
_Name = Annotated[Text, Field(max_length=NAME_LIMIT)]


class PinStatusName(StrEnum):
    QUEUED = "queued"
    PINNING = "pinning"
    PINNED = "pinned"
    FAILED = "failed"


_STATES = {
    PinStatusName.QUEUED: (PinState.PRECHECKING, PinState.SEARCHING, PinState.BACKFILLED),
    PinStatusName.PINNING: (PinState.RETRIEVING,),
    PinStatusName.PINNED: (PinState.PINNED,),
    PinStatusName.FAILED: FAILED,
}
_STATUS = {state: status for status, states in _STATES.items() for state in states}


class PinObject(StorageSchema):
    cid: str
    name: _Name | None = None
    origins: Annotated[Sequence[Annotated[Text, Field(max_length=512)]], Field(max_length=HOSTS_LIMIT)] = ()
    meta: Annotated[dict[Text, Text], Field(max_length=_META_LIMIT)] = Field(default_factory=dict[str, str])

    def to_pin_request(self) -> PinRequest:
        """Validate the pin. Raises InvalidCid, InvalidFileMetadata."""
        cid, name = str(Cid.parse(self.cid)), metadata_parsing.parse_name(self.name)
        return PinRequest(cid, name, hosts=self.origins, meta=cast("Keyvalues", self.meta))


class PinStatus(StorageSchema):
    """State of a pin; `delegates` is empty if content is fetched by HTTP only."""

    requestid: str
    status: PinStatusName
    created: Moment
    pin: PinObject
    delegates: Sequence[str]
    info: dict[str, str]


class PinResults(StorageSchema):
    count: int
    results: Sequence[PinStatus]


class PinListQuery(StorageSchema):
    """Filter of a list; without `status`, it matches pinned ones."""

    cid: str | None = None
    name: _Name | None = None
    match: NameMatch = NameMatch.EXACT
    status: str = PinStatusName.PINNED
    before: ZonedTime | None = None
    after: ZonedTime | None = None
    limit: Annotated[int, Field(ge=1, le=LIMIT_MAX)] = LIMIT_DEFAULT
    meta: str | None = None

    def to_query(self) -> PinQuery:
        """Validate the query. Raises InvalidCid, InvalidPinQuery."""
        cids = self.cid.split(",") if self.cid else []
        if len(cids) > _CIDS_LIMIT:
            raise InvalidPinQuery(f"cid must have at most {_CIDS_LIMIT} CIDs, got {len(cids)}")
        return PinQuery(
            statuses=[state for status in self.status.split(",") for state in _parse_states(status)],
            cid=[one for cid in cids for one in Cid.parse_spellings(cid)] if cids else None,
            name=self.name,
            match=self.match,
            before=self.before,
            after=self.after,
            meta=_parse_meta(self.meta) if self.meta else {},
        )


def _parse_states(status: str) -> Sequence[PinState]:
    try:
        return _STATES[PinStatusName(status)]
    except ValueError:
        raise InvalidPinQuery(
            f"status must be queued, pinning, pinned or failed, separated by commas, got {status!r}"
        ) from None


def _parse_meta(text: str) -> dict[str, str]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    pairs = cast("dict[str, Any]", value) if isinstance(value, dict) else None
    if pairs is None or len(pairs) > _META_LIMIT or not all(isinstance(value, str) for value in pairs.values()):
        raise InvalidPinQuery(f"meta must be a JSON object of at most {_META_LIMIT} strings")
    return pairs


def pin_status(pin: Pin, delegates: Sequence[str]) -> PinStatus:
    request, meta = pin.request, {key: str(value) for key, value in pin.request.meta.items()}
    return PinStatus(
        requestid=pin.id,
        status=_STATUS[pin.status],
        created=pin.created_at,
        pin=PinObject(cid=request.cid, name=request.name, origins=request.hosts, meta=meta),
        delegates=delegates,
        info={"status_details": pin.status.value} if pin.status in FAILED else {},
    )


Service = Annotated[PinService, Depends(provide_service(PinService))]
RequestId = Annotated[Text, Path(alias="requestid")]
router = APIRouter(prefix="/psa/pins", tags=["pins"])


@router.get("", response_model=PinResults)
async def list_remote_pins(
    caller: FilesReader, parameters: Annotated[PinListQuery, Query()], pins: Service
) -> Response:
    """List pins by CID, newest first."""
    page, count = await pins.list_slice(caller.tenant_id, parameters.to_query(), parameters.limit)
    delegates = await pins.list_delegates()
    return await render_list(
        page, lambda: PinResults(count=count, results=[pin_status(pin, delegates) for pin in page])
    )


@router.post("", status_code=status.HTTP_202_ACCEPTED)
async def add_remote_pin(caller: FilesWriter, body: PinObject, pins: Service) -> PinStatus:
    """Pin by CID."""
    return pin_status(await pins.add(caller.tenant_id, body.to_pin_request()), await pins.list_delegates())


@router.get("/{requestid}")
async def get_remote_pin(caller: FilesReader, request_id: RequestId, pins: Service) -> PinStatus:
    """Return a pin."""
    return pin_status(await pins.get(caller.tenant_id, request_id), await pins.list_delegates())


@router.post("/{requestid}", status_code=status.HTTP_202_ACCEPTED)
async def replace_remote_pin(caller: FilesWriter, request_id: RequestId, body: PinObject, pins: Service) -> PinStatus:
    """Replace a pin."""
    new = await pins.replace(caller.tenant_id, request_id, body.to_pin_request())
    return pin_status(new, await pins.list_delegates())


@router.delete("/{requestid}", status_code=status.HTTP_202_ACCEPTED, response_class=Response)
async def remove_remote_pin(caller: FilesWriter, request_id: RequestId, pins: Service) -> None:
    """Remove a pin and its file."""
    await pins.unpin(caller.tenant_id, request_id)
