"""Files over HTTP: list, read, change, delete."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request, Response

from roost.identity.authenticator import FilesReader, FilesWriter
from roost.storage.content.model import ContentNetwork
from roost.storage.files import schemas
from roost.storage.files.service import FileService
from roost.web.responses import render_list
from roost.web.schemas import DataEnvelope
from roost.web.service_registry import provide_service

Service = Annotated[FileService, Depends(provide_service(FileService))]
FileId = Annotated[UUID, Path(alias="id")]
_NETWORKS = (ContentNetwork.PUBLIC, ContentNetwork.PRIVATE)
router = APIRouter(prefix="/v3/files", tags=["files"])


@router.get("/{network}/{id:uuid}")
async def get_file(
    caller: FilesReader, file_id: FileId, files: Service, network: ContentNetwork
) -> DataEnvelope[schemas.FileItem]:
    """Return a file."""
    return DataEnvelope(data=schemas.FileItem.from_file(await files.get(caller.tenant_id, network, str(file_id))))


@router.put("/{network}/{id:uuid}")
async def update_file(
    caller: FilesWriter, file_id: FileId, body: schemas.UpdateFileRequest, files: Service, network: ContentNetwork
) -> DataEnvelope[schemas.FileItem]:
    """Change name, keyvalues and expiry of a file."""
    changed = await files.change(caller.tenant_id, network, str(file_id), body.apply)
    return DataEnvelope(data=schemas.FileItem.from_file(changed))


@router.delete("/{network}/{id:uuid}")
async def delete_file(
    caller: FilesWriter, file_id: FileId, files: Service, network: ContentNetwork
) -> DataEnvelope[None]:
    """Delete a file; its content is swept later unless something else holds it."""
    await files.delete(caller.tenant_id, network, str(file_id))
    return DataEnvelope(data=None)


@router.get("/totals")
async def get_totals(caller: FilesReader, files: Service) -> DataEnvelope[schemas.FileTotals]:
    """Return the number of files and their bytes on each network."""
    counts = [await files.count_files(caller.tenant_id, network) for network in _NETWORKS]
    public, private = [schemas.FileTotal(files=count, bytes=size) for count, size in counts]
    return DataEnvelope(data=schemas.FileTotals(public=public, private=private))


@router.get("/{network}", response_model=DataEnvelope[schemas.FileList])
async def list_files(
    request: Request,
    caller: FilesReader,
    network: ContentNetwork,
    chosen: Annotated[schemas.FileListParameters, Query()],
    files: Service,
) -> Response:
    """List files, newest first; `keyvalues[key]=value` filters by a keyvalue."""
    wanted = chosen.filter(request.query_params)
    page, token = await files.list(caller.tenant_id, network, wanted, chosen.page_token, chosen.limit)
    return await render_list(page, lambda: DataEnvelope(data=schemas.file_list(page, token)))
