"""Files into groups and out of them. A file is in one group at most."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path
from fastapi.responses import PlainTextResponse

from roost.identity.authenticator import GroupsWriter
from roost.storage.content.model import ContentNetwork
from roost.storage.files.service import FileService
from roost.storage.members import schemas
from roost.web.schemas import DataEnvelope
from roost.web.service_registry import provide_service

Service = Annotated[FileService, Depends(provide_service(FileService))]
GroupId = Annotated[str, Path(alias="id")]
router = APIRouter(tags=["groups"])


@router.put("/v3/groups/{network}/{id}/ids/{file_id}")
@router.put("/v3/files/groups/{id}/ids/{file_id}")
async def add_to_group(
    caller: GroupsWriter,
    group_id: GroupId,
    file_id: str,
    files: Service,
    network: ContentNetwork = ContentNetwork.PRIVATE,
) -> DataEnvelope[None]:
    """Put a file into a group."""
    await files.regroup(caller.tenant_id, network, [file_id], group_id, member=True)
    return DataEnvelope(data=None)


@router.delete("/v3/groups/{network}/{id}/ids/{file_id}")
@router.delete("/v3/files/groups/{id}/ids/{file_id}")
async def remove_from_group(
    caller: GroupsWriter,
    group_id: GroupId,
    file_id: str,
    files: Service,
    network: ContentNetwork = ContentNetwork.PRIVATE,
) -> DataEnvelope[None]:
    """Take a file out of a group. The file stays."""
    await files.regroup(caller.tenant_id, network, [file_id], group_id, member=False)
    return DataEnvelope(data=None)


@router.put("/groups/{id}/cids", response_class=PlainTextResponse)
async def add_cids_to_group(
    caller: GroupsWriter, group_id: GroupId, body: schemas.CidListRequest, files: Service
) -> str:
    """Put the public files of some CIDs into a group, all or none."""
    await files.regroup(caller.tenant_id, ContentNetwork.PUBLIC, body.parsed(), group_id, member=True)
    return "OK"


@router.delete("/groups/{id}/cids", response_class=PlainTextResponse)
async def remove_cids_from_group(
    caller: GroupsWriter, group_id: GroupId, body: schemas.CidListRequest, files: Service
) -> str:
    """Take the public files of some CIDs out of a group, all or none. They stay."""
    await files.regroup(caller.tenant_id, ContentNetwork.PUBLIC, body.parsed(), group_id, member=False)
    return "OK"
