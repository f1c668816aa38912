"""Packs, the location of each block in them, and their holders."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum

from roost.storage.content.unixfs.cid import Cid

MAX_FILE_DEPTH = 64
"""Nodes from the root of a file to its leaves; profiles need far fewer."""
ABANDONED_AFTER = timedelta(hours=24)
"""Age after which packs without a holder and remains of a crash are removed; a resumable upload may last as long."""


class ContentNetwork(StrEnum):
    PUBLIC = "public"
    PRIVATE = "private"


class InternalNetwork(StrEnum):
    """Content that no address of the storage API serves."""

    STATE = "state"
    GIT = "git"


class BlockLocation(IntEnum):
    """Storage of the bytes of a block."""

    SLICE = 0  # a range of the pack
    FRAMED = 1  # a range of the pack; the leaf node around it is rebuilt on reading
    INLINE = 2  # in the index itself


@dataclass(frozen=True)
class ContentScope:
    """Visible content: one network of a tenant, or without a tenant all public content."""

    network: ContentNetwork | InternalNetwork
    tenant_id: str | None = None


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One block of a pack; INLINE blocks have `data`, others `offset` and `length` in bytes."""

    cid: Cid
    location: BlockLocation
    offset: int = 0
    length: int = 0
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A file whose content is one range of its pack; `leaves` are the digests of its chunks, concatenated."""

    cid: Cid
    profile: str
    offset: int
    size: int
    leaves: bytes


@dataclass(frozen=True)
class Pack:
    """One object of the blob store; `size` is in bytes, zero if all blocks are inline."""

    id: str
    size: int
    created_at: datetime
    damaged: bool = False
    checked_at: datetime | None = None


@dataclass(frozen=True)
class StorageTotals:
    """Bytes of all packs, and of the packs without a holder, which the next sweep removes."""

    size: int
    unheld: int


@dataclass(frozen=True)
class PackReference:
    """A holder of a pack, named by its kind and id (`file/<id>`)."""

    pack_id: str
    holder: str
    tenant_id: str
    network: ContentNetwork | InternalNetwork


@dataclass(frozen=True, slots=True)
class BlockMatch:
    """A readable block: its row and its pack."""

    pack_id: str
    row: BlockRow
