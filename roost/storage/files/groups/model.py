"""A group: a named container of files on one network."""

from dataclasses import dataclass
from datetime import datetime

from roost.core.problem import InvalidInput, NotFound
from roost.storage.content.model import ContentNetwork


class GroupNotFound(NotFound):
    """The group does not exist or belongs to another tenant; the response does not say which."""

    message = "Group not found"


class InvalidGroup(InvalidInput):
    message = "Invalid group"


NAME_LIMIT = 100
PAGE_DEFAULT, PAGE_LIMIT = 10, 1000


@dataclass(frozen=True)
class Group:
    id: str
    tenant_id: str
    network: ContentNetwork
    name: str
    is_public: bool
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class GroupFilter:
    """Filter of a list of groups; `name` is a part of the name."""

    name: str | None = None
    is_public: bool | None = None


def normalize_group_name(name: str) -> str:
    """Strip a group name and check its length. Raises InvalidGroup."""
    name = name.strip()
    if not 0 < len(name) <= NAME_LIMIT:
        raise InvalidGroup(f"name must have 1 to {NAME_LIMIT} characters")
    return name
