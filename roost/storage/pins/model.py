"""Pins: requests to store the content of a CID, and their progress."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from roost.core.problem import InvalidInput, NotFound, ServiceUnavailable, TooManyRequests
from roost.storage.files.model import Keyvalues

RETRIEVE = "pins.retrieve"
"""Kind of the operation that retrieves the content of a pin."""
SEARCH_DURATION = timedelta(days=1)
"""How long content is searched."""
FAILURE_RETENTION = timedelta(days=30)
"""How long failed pins are kept."""
QUEUE_LIMIT = 250
"""Maximum active pins of a tenant; further ones wait in the state `backfilled`."""
WAITING_LIMIT = 10_000
"""Maximum waiting and failed pins of a tenant."""
HOSTS_LIMIT = 20
PAGE_DEFAULT, PAGE_LIMIT = 10, 250


class PinState(StrEnum):
    PRECHECKING = "prechecking"
    SEARCHING = "searching"
    RETRIEVING = "retrieving"
    BACKFILLED = "backfilled"
    PINNED = "pinned"  # stored as a file, and no longer in the queue
    EXPIRED = "expired"
    OVER_FREE_LIMIT = "over_free_limit"
    OVER_MAX_SIZE = "over_max_size"
    INVALID_OBJECT = "invalid_object"
    BAD_HOST_NODE = "bad_host_node"


ACTIVE = (PinState.PRECHECKING, PinState.SEARCHING, PinState.RETRIEVING)
WAITING = (*ACTIVE, PinState.BACKFILLED)
FAILED = (
    PinState.EXPIRED,
    PinState.OVER_FREE_LIMIT,
    PinState.OVER_MAX_SIZE,
    PinState.INVALID_OBJECT,
    PinState.BAD_HOST_NODE,
)
QUEUED = (*WAITING, *FAILED)
"""States that the queue shows."""


@dataclass(frozen=True)
class PinRequest:
    """A request; `cid` is canonical, `hosts` are multiaddrs of nodes, `meta` belongs to the Pinning Service API."""

    cid: str
    name: str | None = None
    keyvalues: Keyvalues = field(default_factory=dict[str, str | int | float | bool])
    group_id: str | None = None
    hosts: Sequence[str] = ()
    meta: Keyvalues = field(default_factory=dict[str, str | int | float | bool])


@dataclass(frozen=True)
class Pin:
    id: str
    tenant_id: str
    request: PinRequest
    status: PinState
    file_id: str | None
    created_at: datetime
    updated_at: datetime


class NameMatch(StrEnum):
    """How names are compared: whole or in part, case-sensitive or not."""

    EXACT = "exact"
    IEXACT = "iexact"
    PARTIAL = "partial"
    IPARTIAL = "ipartial"


@dataclass(frozen=True)
class PinQuery:
    """Filters of a list. cid: all spellings of the accepted CIDs. meta: pairs that a pin must have."""

    statuses: Sequence[PinState] = QUEUED
    cid: Sequence[str] | None = None
    ascending: bool = False
    name: str | None = None
    match: NameMatch = NameMatch.EXACT
    before: datetime | None = None
    after: datetime | None = None
    meta: Mapping[str, str] = field(default_factory=dict[str, str])


class PinNotFound(NotFound):
    message = "Pin request not found"


class TooManyPins(TooManyRequests):
    message = "Too many pin requests are waiting"


class TooManyHostNodes(InvalidInput):
    message = "Too many host nodes"


class ContentNotFoundYet(ServiceUnavailable):
    """No source has the content; the retrieval is retried."""

    message = "The content was not found yet"
