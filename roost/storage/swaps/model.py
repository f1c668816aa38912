"""A line in the history of a CID: what is served in its place from then on."""

from dataclasses import dataclass
from datetime import datetime

from roost.storage.content.model import ContentNetwork

HISTORY_LIMIT = 100
"""Lines that are kept of a CID, the newest."""


@dataclass(frozen=True)
class HotSwap:
    """A swap; `cid` is the requested CID in version 1, for all spellings. mapped_cid: None ends the swap."""

    id: str
    tenant_id: str
    network: ContentNetwork
    cid: str
    mapped_cid: str | None
    created_at: datetime
