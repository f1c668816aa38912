"""Endpoints of groups (contract, Storage API)."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field, StrictBool

from roost.identity.authenticator import GroupsReader, GroupsWriter
from roost.storage.content.model import ContentNetwork
from roost.storage.files.groups.model import NAME_LIMIT, PAGE_DEFAULT, PAGE_LIMIT, GroupFilter
from roost.storage.files.groups.service import GroupService
from roost.web.schemas import DataEnvelope, Moment, StorageSchema, Text
from roost.web.service_registry import provide_service

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


Service = Annotated[GroupService, Depends(provide_service(GroupService))]
_Limit = Annotated[int, Query(ge=1, le=PAGE_LIMIT)]
_PageToken = Annotated[str | None, Query(alias="pageToken", max_length=200)]
_Public = Annotated[bool | None, Query(alias="isPublic")]
GroupId = Annotated[str, Path(alias="id")]
router = APIRouter(tags=["groups"])


@router.post("/v3/groups/{network}")
async def create_group(
    caller: GroupsWriter, body: CreateGroupRequest, groups: Service, network: ContentNetwork
) -> DataEnvelope[GroupRecord]:
    """Create a group of files on one network."""
    group = await groups.create(caller.tenant_id, network, body.name, is_public=body.is_public)
    return DataEnvelope(data=GroupRecord(**vars(group)))


@router.get("/v3/groups/{network}")
async def list_groups(
    caller: GroupsReader,
    groups: Service,
    network: ContentNetwork,
    name: Text | None = None,
    public: _Public = None,
    token: _PageToken = None,
    limit: _Limit = PAGE_DEFAULT,
) -> DataEnvelope[GroupList]:
    """List groups of one network, newest first; `name` is a part of the name."""
    page, next_token = await groups.list(caller.tenant_id, network, GroupFilter(name, public), token, limit)
    records = [GroupRecord(**vars(group)) for group in page]
    return DataEnvelope(data=GroupList(groups=records, next_page_token=next_token or ""))


@router.get("/v3/groups/{network}/{id}")
async def get_group(
    caller: GroupsReader, group_id: GroupId, groups: Service, network: ContentNetwork
) -> DataEnvelope[GroupRecord]:
    """Return a group."""
    return DataEnvelope(data=GroupRecord(**vars(await groups.get(caller.tenant_id, network, group_id))))


@router.put("/v3/groups/{network}/{id}")
async def update_group(
    caller: GroupsWriter, group_id: GroupId, body: UpdateGroupRequest, groups: Service, network: ContentNetwork
) -> DataEnvelope[GroupRecord]:
    """Change name and visibility of a group."""
    group = await groups.update(caller.tenant_id, network, group_id, body.name, is_public=body.is_public)
    return DataEnvelope(data=GroupRecord(**vars(group)))


@router.delete("/v3/groups/{network}/{id}")
async def delete_group(
    caller: GroupsWriter, group_id: GroupId, groups: Service, network: ContentNetwork
) -> DataEnvelope[None]:
    """Delete a group. Its files are kept."""
    await groups.delete(caller.tenant_id, network, group_id)
    return DataEnvelope(data=None)


@router.put("/v3/groups/{network}/{id}/ids/{file_id}")
async def add_to_group(
    caller: GroupsWriter, group_id: GroupId, file_id: str, groups: Service, network: ContentNetwork
) -> DataEnvelope[None]:
    """Move a file into a group; it leaves its previous group."""
    await groups.add_files(caller.tenant_id, network, group_id, [file_id])
    return DataEnvelope(data=None)


@router.delete("/v3/groups/{network}/{id}/ids/{file_id}")
async def remove_from_group(
    caller: GroupsWriter, group_id: GroupId, file_id: str, groups: Service, network: ContentNetwork
) -> DataEnvelope[None]:
    """Remove a file from a group. The file is kept."""
    await groups.remove_files(caller.tenant_id, network, group_id, [file_id])
    return DataEnvelope(data=None)
