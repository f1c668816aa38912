"""A group: a named container of files on one network."""

from dataclasses import dataclass
from datetime import datetime

from roost.storage.content.model import Network

NAME_LIMIT = 100


@dataclass(frozen=True)
class Group:
    id: str
    tenant_id: str
    network: Network
    name: str
    is_public: bool
    created_at: datetime
    updated_at: datetime
