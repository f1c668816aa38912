"""Groups over HTTP (contract, Storage API), also as older clients have them: under `/v3/files/groups` for private
files, under `/groups` in shapes of their own for public ones.
"""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from fastapi.responses import PlainTextResponse

from roost.identity.authenticator import GroupsReader, GroupsWriter
from roost.storage.content.model import ContentNetwork
from roost.storage.groups import schemas
from roost.storage.groups.model import PAGE_DEFAULT, PAGE_LIMIT, GroupFilter
from roost.storage.groups.service import GroupService
from roost.web.schemas import DataEnvelope, Text
from roost.web.service_registry import provide_service

Service = Annotated[GroupService, Depends(provide_service(GroupService))]
_Limit = Annotated[int, Query(ge=1, le=PAGE_LIMIT)]
_PageToken = Annotated[str | None, Query(alias="pageToken", max_length=200)]
_Public = Annotated[bool | None, Query(alias="isPublic")]
GroupId = Annotated[str, Path(alias="id")]
router = APIRouter(tags=["groups"])


@router.post("/v3/groups/{network}")
@router.post("/v3/files/groups")
async def create_group(
    caller: GroupsWriter,
    body: schemas.CreateGroupRequest,
    groups: Service,
    network: ContentNetwork = ContentNetwork.PRIVATE,
) -> DataEnvelope[schemas.GroupRecord]:
    """Create a group of files on one network."""
    made = await groups.create(caller.tenant_id, network, body.name, is_public=body.is_public)
    return DataEnvelope(data=schemas.record(made))


@router.get("/v3/groups/{network}")
@router.get("/v3/files/groups")
async def list_groups(
    caller: GroupsReader,
    groups: Service,
    network: ContentNetwork = ContentNetwork.PRIVATE,
    name: Text | None = None,
    public: _Public = None,
    token: _PageToken = None,
    limit: _Limit = PAGE_DEFAULT,
) -> DataEnvelope[schemas.GroupList]:
    """The tenant's groups on that network, the newest first; `name` is a part of the name."""
    page, following = await groups.list(caller.tenant_id, network, GroupFilter(name, public), token, limit)
    return DataEnvelope(data=schemas.listed(page, following))


@router.get("/v3/groups/{network}/{id}")
@router.get("/v3/files/groups/{id}")
async def get_group(
    caller: GroupsReader, group_id: GroupId, groups: Service, network: ContentNetwork = ContentNetwork.PRIVATE
) -> DataEnvelope[schemas.GroupRecord]:
    """One group."""
    return DataEnvelope(data=schemas.record(await groups.get(caller.tenant_id, network, group_id)))


@router.put("/v3/groups/{network}/{id}")
@router.put("/v3/files/groups/{id}")
async def update_group(
    caller: GroupsWriter,
    group_id: GroupId,
    body: schemas.UpdateGroupRequest,
    groups: Service,
    network: ContentNetwork = ContentNetwork.PRIVATE,
) -> DataEnvelope[schemas.GroupRecord]:
    """Give a group another name, or open or close it."""
    changed = await groups.update(caller.tenant_id, network, group_id, body.name, is_public=body.is_public)
    return DataEnvelope(data=schemas.record(changed))


@router.delete("/v3/groups/{network}/{id}")
@router.delete("/v3/files/groups/{id}")
async def delete_group(
    caller: GroupsWriter, group_id: GroupId, groups: Service, network: ContentNetwork = ContentNetwork.PRIVATE
) -> DataEnvelope[None]:
    """Delete a group. Its files stay."""
    await groups.delete(caller.tenant_id, network, group_id)
    return DataEnvelope(data=None)


@router.put("/v3/groups/{network}/{id}/ids/{file_id}")
@router.put("/v3/files/groups/{id}/ids/{file_id}")
async def add_to_group(
    caller: GroupsWriter,
    group_id: GroupId,
    file_id: str,
    groups: Service,
    network: ContentNetwork = ContentNetwork.PRIVATE,
) -> DataEnvelope[None]:
    """Move a file into a group, out of any other."""
    await groups.add_files(caller.tenant_id, network, group_id, [file_id])
    return DataEnvelope(data=None)


@router.delete("/v3/groups/{network}/{id}/ids/{file_id}")
@router.delete("/v3/files/groups/{id}/ids/{file_id}")
async def remove_from_group(
    caller: GroupsWriter,
    group_id: GroupId,
    file_id: str,
    groups: Service,
    network: ContentNetwork = ContentNetwork.PRIVATE,
) -> DataEnvelope[None]:
    """Take a file out of a group. The file stays."""
    await groups.remove_files(caller.tenant_id, network, group_id, [file_id])
    return DataEnvelope(data=None)


@router.post("/groups")
async def create_public_group(
    caller: GroupsWriter, body: schemas.GroupNameRequest, groups: Service
) -> schemas.LegacyGroupRecord:
    """Create a group of public files."""
    return schemas.old_record(await groups.create(caller.tenant_id, ContentNetwork.PUBLIC, body.name, is_public=False))


@router.get("/groups")
async def list_public_groups(
    caller: GroupsReader, chosen: Annotated[schemas.LegacyGroupParameters, Query()], groups: Service
) -> Sequence[schemas.LegacyGroupRecord]:
    """Groups of public files, the newest first; `nameContains` is a part of the name."""
    wanted = GroupFilter(chosen.name_contains)
    found = await groups.slice(caller.tenant_id, ContentNetwork.PUBLIC, wanted, chosen.limit, chosen.offset)
    return [schemas.old_record(group) for group in found]


@router.get("/groups/{id}")
async def get_public_group(caller: GroupsReader, group_id: GroupId, groups: Service) -> schemas.LegacyGroupRecord:
    """One group of public files."""
    return schemas.old_record(await groups.get(caller.tenant_id, ContentNetwork.PUBLIC, group_id))


@router.put("/groups/{id}")
async def rename_public_group(
    caller: GroupsWriter, group_id: GroupId, body: schemas.GroupNameRequest, groups: Service
) -> schemas.LegacyGroupRecord:
    """Give a group of public files another name."""
    changed = await groups.update(caller.tenant_id, ContentNetwork.PUBLIC, group_id, body.name, is_public=None)
    return schemas.old_record(changed)


@router.delete("/groups/{id}", response_class=PlainTextResponse)
async def delete_public_group(caller: GroupsWriter, group_id: GroupId, groups: Service) -> str:
    """Delete a group of public files. They stay."""
    await groups.delete(caller.tenant_id, ContentNetwork.PUBLIC, group_id)
    return "OK"


@router.put("/groups/{id}/cids", response_class=PlainTextResponse)
async def add_cids_to_group(
    caller: GroupsWriter, group_id: GroupId, body: schemas.CidListRequest, groups: Service
) -> str:
    """Move the public files of some CIDs into a group, all or none."""
    await groups.add_files(caller.tenant_id, ContentNetwork.PUBLIC, group_id, body.parsed())
    return "OK"


@router.delete("/groups/{id}/cids", response_class=PlainTextResponse)
async def remove_cids_from_group(
    caller: GroupsWriter, group_id: GroupId, body: schemas.CidListRequest, groups: Service
) -> str:
    """Take the public files of some CIDs out of a group, all or none. The files stay."""
    await groups.remove_files(caller.tenant_id, ContentNetwork.PUBLIC, group_id, body.parsed())
    return "OK"
