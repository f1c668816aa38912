"""Entries in the history of a CID, which name the CID served in its place."""

from dataclasses import dataclass
from datetime import datetime

from roost.core.problem import InvalidInput, NotFound
from roost.storage.content.model import ContentNetwork

HISTORY_LIMIT = 100
"""Maximum entries of a CID; the oldest are deleted."""


@dataclass(frozen=True)
class HotSwap:
    """A swap; `cid` is the requested CID in version 1, for all spellings. mapped_cid: None ends the swap."""

    id: str
    tenant_id: str
    network: ContentNetwork
    cid: str
    mapped_cid: str | None
    created_at: datetime


class InvalidSwap(InvalidInput):
    message = "Invalid swap"


class SwapNotFound(NotFound):
    message = "CID does not have history"
