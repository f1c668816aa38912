"""Schemas of groups (contract, Group)."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, StrictBool

from roost.storage.files.groups.model import NAME_LIMIT, Group
from roost.web.schemas import Moment, StorageSchema, Text

GroupName = Annotated[Text, Field(min_length=1, max_length=NAME_LIMIT, examples=["Reports"])]


class CreateGroupRequest(StorageSchema):
    name: GroupName
    is_public: StrictBool = False


class UpdateGroupRequest(StorageSchema):
    name: GroupName | None = None
    is_public: StrictBool | None = None


class GroupRecord(StorageSchema):
    id: str
    name: str = Field(examples=["Reports"])
    is_public: bool
    created_at: Moment


class GroupList(StorageSchema):
    """`next_page_token` is empty on the last page."""

    groups: Sequence[GroupRecord]
    next_page_token: str = ""


def group_record(group: Group) -> GroupRecord:
    return GroupRecord(**vars(group))


def group_list(groups: Sequence[Group], token: str | None) -> GroupList:
    return GroupList(groups=[group_record(group) for group in groups], next_page_token=token or "")
