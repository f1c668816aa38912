"""Shapes of the Pinning Service API (ipfs/pinning-services-api-spec 1.0.0)."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any, cast

from pydantic import AfterValidator, Field

from roost.storage.files import said
from roost.storage.files.model import NAME_LIMIT, Keyvalues
from roost.storage.pins.model import FAILED, HOSTS_LIMIT, Ask, Match, Pin, Wanted
from roost.storage.pins.model import Status as Progress
from roost.storage.psa.errors import InvalidQuery
from roost.storage.unixfs.cid import Cid
from roost.web.wire import V3, Moment, Text

LIMIT_DEFAULT, LIMIT_MOST = 10, 1000
_CIDS = 10
_META = 100
_Name = Annotated[Text, Field(max_length=NAME_LIMIT)]


class Status(StrEnum):
    QUEUED = "queued"
    PINNING = "pinning"
    PINNED = "pinned"
    FAILED = "failed"


_PROGRESS = {
    Status.QUEUED: (Progress.PRECHECKING, Progress.SEARCHING, Progress.BACKFILLED),
    Status.PINNING: (Progress.RETRIEVING,),
    Status.PINNED: (Progress.PINNED,),
    Status.FAILED: FAILED,
}
_STATUS = {progress: status for status, all_of_it in _PROGRESS.items() for progress in all_of_it}


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_Time = Annotated[datetime, AfterValidator(_aware)]


class PinObject(V3):
    cid: str
    name: _Name | None = None
    origins: Annotated[Sequence[Annotated[Text, Field(max_length=512)]], Field(max_length=HOSTS_LIMIT)] = ()
    meta: Annotated[dict[Text, Text], Field(max_length=_META)] = Field(default_factory=dict[str, str])

    def ask(self) -> Ask:
        """Raises InvalidCid, InvalidMetadata."""
        cid = str(Cid.parse(self.cid))
        return Ask(cid, said.name(self.name), hosts=self.origins, meta=cast("Keyvalues", self.meta))


class PinStatus(V3):
    """`delegates` is empty where content is fetched by HTTP alone: nobody has to connect to us."""

    requestid: str
    status: Status
    created: Moment
    pin: PinObject
    delegates: Sequence[str]
    info: dict[str, str]


class PinResults(V3):
    count: int
    results: Sequence[PinStatus]


class Chosen(V3):
    """Which pins; without `status`, those that are pinned."""

    cid: str | None = None
    name: _Name | None = None
    match: Match = Match.EXACT
    status: str = Status.PINNED
    before: _Time | None = None
    after: _Time | None = None
    limit: Annotated[int, Field(ge=1, le=LIMIT_MOST)] = LIMIT_DEFAULT
    meta: str | None = None

    def wanted(self) -> Wanted:
        """Raises InvalidCid, InvalidQuery."""
        cids = self.cid.split(",") if self.cid else []
        if len(cids) > _CIDS:
            raise InvalidQuery(f"cid: at most {_CIDS}")
        return Wanted(
            statuses=[one for status in self.status.split(",") for one in _progress(status)],
            cid=[one for cid in cids for one in Cid.spelled(cid)] if cids else None,
            name=self.name,
            match=self.match,
            before=self.before,
            after=self.after,
            meta=_meta(self.meta) if self.meta else {},
        )


def _progress(status: str) -> Sequence[Progress]:
    try:
        return _PROGRESS[Status(status)]
    except ValueError:
        raise InvalidQuery("status: queued, pinning, pinned or failed, by commas") from None


def _meta(text: str) -> dict[str, str]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    pairs = cast("dict[str, Any]", found) if isinstance(found, dict) else None
    if pairs is None or len(pairs) > _META or not all(isinstance(value, str) for value in pairs.values()):
        raise InvalidQuery("meta: a JSON object of strings")
    return pairs


def status(pin: Pin, delegates: Sequence[str]) -> PinStatus:
    ask = pin.ask
    return PinStatus(
        requestid=pin.id,
        status=_STATUS[pin.status],
        created=pin.created_at,
        pin=PinObject(
            cid=ask.cid, name=ask.name, origins=ask.hosts, meta={key: str(value) for key, value in ask.meta.items()}
        ),
        delegates=delegates,
        info={"status_details": pin.status.value} if pin.status in FAILED else {},
    )


def results(pins: Sequence[Pin], count: int, delegates: Sequence[str]) -> PinResults:
    return PinResults(count=count, results=[status(pin, delegates) for pin in pins])
