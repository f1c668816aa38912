"""Shapes of pins by CID; what the contract leaves open follows the reference service's clients."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from roost.storage.files import metadata_parsing
from roost.storage.files.model import NAME_LIMIT, Keyvalues
from roost.storage.pins.model import HOSTS_LIMIT, PAGE_DEFAULT, PAGE_LIMIT, QUEUED, Pin, PinQuery, PinRequest, PinState
from roost.storage.unixfs.cid import Cid
from roost.web.schemas import Moment, StorageSchema, Text

LEGACY_DEFAULT, LEGACY_LIMIT = 5, 1000
_Name = Annotated[Text, Field(max_length=NAME_LIMIT)]
_Host = Annotated[Text, Field(max_length=512)]
_Hosts = Annotated[Sequence[_Host], Field(max_length=HOSTS_LIMIT)]
_SPELLINGS = {"retreiving": PinState.RETRIEVING.value}


def _upper(text: object) -> object:
    return text.upper() if isinstance(text, str) else text


_Order = Annotated[Literal["ASC", "DESC", "DSC"], BeforeValidator(_upper)]
_Queued = Annotated[
    Literal[
        "prechecking",
        "searching",
        "retrieving",
        "backfilled",
        "expired",
        "over_max_size",
        "invalid_object",
        "bad_host_node",
        "over_free_limit",
    ],
    BeforeValidator(lambda text: _SPELLINGS.get(text, text)),
]


def _wanted(cid: str | None, status: str | None, order: str | None) -> PinQuery:
    """Raises InvalidCid."""
    return PinQuery(
        statuses=QUEUED if status is None else [one for one in QUEUED if one == status],
        cid=Cid.spelled(cid) if cid else None,
        ascending=order == "ASC",
    )


class PinByCidRequest(StorageSchema):
    cid: str
    name: _Name | None = None
    keyvalues: dict[str, Any] | None = None
    group_id: Text | None = None
    host_nodes: _Hosts | None = None

    def ask(self) -> PinRequest:
        """Raises InvalidCid, InvalidMetadata."""
        pairs = metadata_parsing.keyvalues(self.keyvalues or {})
        return PinRequest(
            str(Cid.parse(self.cid)),
            metadata_parsing.name(self.name),
            pairs,
            self.group_id or None,
            self.host_nodes or (),
        )


class PinJobParameters(StorageSchema):
    """Which jobs, how many, from where on. `sort` and `order` are the same; `sort` counts."""

    cid: str | None = None
    status: _Queued | None = None
    sort: _Order | None = None
    order: _Order | None = None
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_DEFAULT
    page_token: Annotated[str | None, Field(alias="pageToken", max_length=200)] = None

    def wanted(self) -> PinQuery:
        """Raises InvalidCid."""
        return _wanted(self.cid, self.status, self.sort or self.order)


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


def job(pin: Pin) -> PinJobRecord:
    ask = pin.ask
    return PinJobRecord(
        id=pin.id,
        cid=ask.cid,
        name=ask.name,
        status=pin.status,
        keyvalues=ask.keyvalues or None,
        host_nodes=ask.hosts or None,
        group_id=ask.group_id,
        date_queued=pin.created_at,
    )


def jobs(pins: Sequence[Pin], token: str | None) -> PinJobList:
    return PinJobList(jobs=[job(pin) for pin in pins], next_page_token=token or "")


class _PinByHashMetadata(StorageSchema):
    name: _Name | None = None
    keyvalues: dict[str, Any] | None = None


def _none_if_empty(hosts: object) -> object:
    """Clients send an empty text where they know no hosts."""
    return None if hosts == "" else hosts


class _PinByHashOptions(StorageSchema):
    group_id: Annotated[Text | None, Field(alias="groupId")] = None
    host_nodes: Annotated[_Hosts | None, Field(alias="hostNodes"), BeforeValidator(_none_if_empty)] = None


class PinByHashRequest(StorageSchema):
    """The legacy form of the same."""

    hash: Annotated[str, Field(alias="hashToPin")]
    metadata: Annotated[_PinByHashMetadata | None, Field(alias="pinataMetadata")] = None
    options: Annotated[_PinByHashOptions | None, Field(alias="pinataOptions")] = None

    def ask(self) -> PinRequest:
        """Raises InvalidCid, InvalidMetadata."""
        note, options = self.metadata or _PinByHashMetadata(), self.options or _PinByHashOptions()
        asked = PinByCidRequest(cid=self.hash, name=note.name, keyvalues=note.keyvalues)
        return asked.model_copy(update={"group_id": options.group_id, "host_nodes": options.host_nodes}).ask()


class LegacyPinJobParameters(StorageSchema):
    status: _Queued | None = None
    ipfs_pin_hash: str | None = None
    sort: _Order = "ASC"
    limit: Annotated[int, Field(ge=1, le=LEGACY_LIMIT)] = LEGACY_DEFAULT
    offset: Annotated[int, Field(ge=0, le=1_000_000)] = 0

    def wanted(self) -> PinQuery:
        """Raises InvalidCid."""
        return _wanted(self.ipfs_pin_hash, self.status, self.sort)


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
    pin_policy: None = None


class LegacyPinJobList(StorageSchema):
    count: int
    rows: Sequence[LegacyPinJobRecord]


def pinned(pin: Pin) -> PinByHashResponse:
    return PinByHashResponse(id=pin.id, ipfs_hash=pin.ask.cid, status=pin.status, name=pin.ask.name)


def legacy_jobs(pins: Sequence[Pin], total: int) -> LegacyPinJobList:
    return LegacyPinJobList(count=total, rows=[_legacy(job(pin)) for pin in pins])


def _legacy(one: PinJobRecord) -> LegacyPinJobRecord:
    return LegacyPinJobRecord(
        id=one.id,
        ipfs_pin_hash=one.cid,
        date_queued=one.date_queued,
        name=one.name,
        status=one.status,
        keyvalues=one.keyvalues,
        host_nodes=one.host_nodes,
    )
