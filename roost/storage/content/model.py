"""What is kept: packs, where each block is in them, and who holds what."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum

from roost.storage.unixfs.cid import Cid

MAX_FILE_DEPTH = 64
"""Nodes from a file's root to its leaves; a file of the width 174 that deep is larger than anything."""
ABANDONED_AFTER = timedelta(hours=24)
"""After that long, what nobody holds, and what a crash left, is removed. An upload in parts may take that long."""


class ContentNetwork(StrEnum):
    PUBLIC = "public"
    PRIVATE = "private"


class BlockLocation(IntEnum):
    """Where the bytes of a block are."""

    SLICE = 0  # a range of the pack
    FRAMED = 1  # a range of the pack, inside a leaf node that is written around it
    INLINE = 2  # in the index itself


@dataclass(frozen=True)
class ContentScope:
    """Whose content is looked at: one network of one tenant's, or, without a tenant, all that is public."""

    network: ContentNetwork
    tenant_id: str | None = None


@dataclass(frozen=True, slots=True)
class BlockRow:
    """One block of a pack; `data` is there for INLINE, `offset` and `length` for the others."""

    cid: Cid
    location: BlockLocation
    offset: int = 0
    length: int = 0
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class TreeRow:
    """A file whose content is one range of its pack; `leaves` are the digests of its chunks."""

    cid: Cid
    profile: str
    offset: int
    size: int
    leaves: bytes


@dataclass(frozen=True)
class Pack:
    """One object of the blob store and what is in it. `size` is in bytes, zero where everything is inline."""

    id: str
    size: int
    created_at: datetime
    damaged: bool = False


@dataclass(frozen=True)
class StorageTotals:
    """size: bytes of all packs. unheld: of those that nobody holds any more, which go with a sweep."""

    size: int
    unheld: int


@dataclass(frozen=True)
class PackReference:
    """Why a pack is kept: somebody's file, snapshot, skill. `holder` names it (`file/<id>`)."""

    pack_id: str
    holder: str
    tenant_id: str
    network: ContentNetwork


@dataclass(frozen=True, slots=True)
class BlockMatch:
    """A block that may be read: its row and its pack."""

    pack_id: str
    row: BlockRow
