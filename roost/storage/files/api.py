"""The files of a tenant: list, read, change, delete what is known of them.

Paths without a network are of clients from when all files were private.
"""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request

from roost.identity.authenticator import FilesReader, FilesWriter
from roost.storage.content.model import ContentNetwork
from roost.storage.files import schemas
from roost.storage.files.service import FileService
from roost.web.schemas import DataEnvelope
from roost.web.service_registry import provide_service

Service = Annotated[FileService, Depends(provide_service(FileService))]
FileId = Annotated[UUID, Path(alias="id")]
router = APIRouter(prefix="/v3/files", tags=["files"])


@router.get("/{network}/{id:uuid}")
@router.get("/{id:uuid}")
async def get_file(
    caller: FilesReader, file_id: FileId, files: Service, network: ContentNetwork = ContentNetwork.PRIVATE
) -> DataEnvelope[schemas.FileItem]:
    """What is known of a file."""
    return DataEnvelope(data=schemas.item(await files.get(caller.tenant_id, network, str(file_id))))


@router.put("/{network}/{id:uuid}")
@router.put("/{id:uuid}")
async def update_file(
    caller: FilesWriter,
    file_id: FileId,
    body: schemas.UpdateFileRequest,
    files: Service,
    network: ContentNetwork = ContentNetwork.PRIVATE,
) -> DataEnvelope[schemas.FileItem]:
    """Give a file another name, keyvalues, or time to go."""
    return DataEnvelope(data=schemas.item(await files.change(caller.tenant_id, network, str(file_id), body.apply)))


@router.delete("/{network}/{id:uuid}")
@router.delete("/{id:uuid}")
async def delete_file(
    caller: FilesWriter, file_id: FileId, files: Service, network: ContentNetwork = ContentNetwork.PRIVATE
) -> DataEnvelope[None]:
    """Delete a file; its content goes with a sweep unless something else holds it."""
    await files.delete(caller.tenant_id, network, str(file_id))
    return DataEnvelope(data=None)


@router.get("/{network}")  # behind the others: an id is no network
async def list_files(
    request: Request,
    caller: FilesReader,
    network: ContentNetwork,
    chosen: Annotated[schemas.FileListParameters, Query()],
    files: Service,
) -> DataEnvelope[schemas.FileList]:
    """A page of the tenant's files, newest first; `keyvalues[key]=value` chooses by key and value."""
    wanted = chosen.filter(request.query_params)
    page, token = await files.list(caller.tenant_id, network, wanted, chosen.page_token, chosen.limit)
    return DataEnvelope(data=schemas.listed(page, token))


@router.get("")
async def list_private_files(
    request: Request, caller: FilesReader, chosen: Annotated[schemas.FileListParameters, Query()], files: Service
) -> DataEnvelope[schemas.FileList]:
    """The same of private files."""
    return await list_files(request, caller, ContentNetwork.PRIVATE, chosen, files)
