"""A pin: the wish to have what a CID names, and how far it has come."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from roost.storage.files.model import Keyvalues

RETRIEVE = "pins.retrieve"
"""The operation that looks for one pin's content and takes it in."""
LIFE = timedelta(days=1)
"""How long content is looked for."""
KEPT = timedelta(days=30)
"""How long a pin that came to nothing can be seen."""
QUEUE_LIMIT = 250
"""Pins of a tenant that are looked for; those beyond wait, backfilled."""
WAITING_LIMIT = 10_000
"""Pins of a tenant that are not content, together."""
HOSTS_LIMIT = 20
PAGE_DEFAULT, PAGE_LIMIT = 10, 250


class PinState(StrEnum):
    PRECHECKING = "prechecking"
    SEARCHING = "searching"
    RETRIEVING = "retrieving"
    BACKFILLED = "backfilled"
    PINNED = "pinned"  # it is a file; no more in the queue
    EXPIRED = "expired"
    OVER_FREE_LIMIT = "over_free_limit"
    OVER_MAX_SIZE = "over_max_size"
    INVALID_OBJECT = "invalid_object"
    BAD_HOST_NODE = "bad_host_node"


ACTIVE = (PinState.PRECHECKING, PinState.SEARCHING, PinState.RETRIEVING)
WAITING = (*ACTIVE, PinState.BACKFILLED)
FAILED = (
    *(PinState.EXPIRED, PinState.OVER_FREE_LIMIT, PinState.OVER_MAX_SIZE),
    *(PinState.INVALID_OBJECT, PinState.BAD_HOST_NODE),
)
QUEUED = (*WAITING, *FAILED)
"""What the queue shows."""


@dataclass(frozen=True)
class PinRequest:
    """What is wanted. cid: canonical. hosts: multiaddrs of nodes that have it. meta: the Pinning Service API's own."""

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
    ask: PinRequest
    status: PinState
    file_id: str | None
    created_at: datetime
    updated_at: datetime


class NameMatch(StrEnum):
    """How a name is compared: all of it or a part, minding capitals or not."""

    EXACT = "exact"
    IEXACT = "iexact"
    PARTIAL = "partial"
    IPARTIAL = "ipartial"


@dataclass(frozen=True)
class PinQuery:
    """Which pins a list has. cid: those that may be, each in all its spellings. meta: pairs that a pin's has."""

    statuses: Sequence[PinState] = QUEUED
    cid: Sequence[str] | None = None
    ascending: bool = False
    name: str | None = None
    match: NameMatch = NameMatch.EXACT
    before: datetime | None = None
    after: datetime | None = None
    meta: Mapping[str, str] = field(default_factory=dict[str, str])
