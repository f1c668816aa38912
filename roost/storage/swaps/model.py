"""A line in the history of a CID: what is served in its place from then on."""

from dataclasses import dataclass
from datetime import datetime

from roost.storage.content.model import ContentNetwork

HISTORY_LIMIT = 100
"""Lines that are kept of a CID, the newest."""


@dataclass(frozen=True)
class HotSwap:
    """`cid` is the version 1 of what is asked for, so that every spelling finds it; `mapped_cid` None: itself again."""

    id: str
    tenant_id: str
    network: ContentNetwork
    cid: str
    mapped_cid: str | None
    created_at: datetime
