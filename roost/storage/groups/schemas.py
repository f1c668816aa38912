"""Shapes of groups (contract, Group)."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from roost.storage.groups.model import NAME_LIMIT, PAGE_DEFAULT, PAGE_LIMIT, Group
from roost.storage.unixfs.cid import Cid
from roost.web.schemas import ApiSchema, Moment, StorageSchema, Text

_CIDS_LIMIT = 1000
_Name = Annotated[Text, Field(min_length=1, max_length=NAME_LIMIT)]


class CreateGroupRequest(StorageSchema):
    name: _Name
    is_public: bool = False


class UpdateGroupRequest(StorageSchema):
    name: _Name | None = None
    is_public: bool | None = None


class GroupRecord(StorageSchema):
    id: str
    name: str
    is_public: bool
    created_at: Moment


class GroupList(StorageSchema):
    """`next_page_token` is empty on the last page."""

    groups: Sequence[GroupRecord]
    next_page_token: str = ""


class GroupNameRequest(StorageSchema):
    name: _Name


class LegacyGroupParameters(ApiSchema):
    """How older clients choose."""

    name_contains: Annotated[Text | None, Field(max_length=NAME_LIMIT)] = None
    limit: Annotated[int, Field(ge=1, le=PAGE_LIMIT)] = PAGE_DEFAULT
    offset: Annotated[int, Field(ge=0, le=10**9)] = 0


class LegacyGroupRecord(ApiSchema):
    """A group in the words of older clients."""

    id: str
    user_id: Annotated[str, Field(serialization_alias="user_id")]
    name: str
    created_at: Moment
    updated_at: Moment


class CidListRequest(StorageSchema):
    cids: Annotated[Sequence[Annotated[str, Field(max_length=512)]], Field(min_length=1, max_length=_CIDS_LIMIT)]

    def parsed(self) -> Sequence[Cid]:
        """Raises InvalidCid."""
        return [Cid.parse(cid) for cid in self.cids]


def record(group: Group) -> GroupRecord:
    return GroupRecord(id=group.id, name=group.name, is_public=group.is_public, created_at=group.created_at)


def listed(groups: Sequence[Group], token: str | None) -> GroupList:
    return GroupList(groups=[record(group) for group in groups], next_page_token=token or "")


def old_record(group: Group) -> LegacyGroupRecord:
    return LegacyGroupRecord(
        id=group.id,
        user_id=group.tenant_id,
        name=group.name,
        created_at=group.created_at,
        updated_at=group.updated_at,
    )
