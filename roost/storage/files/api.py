"""The files of a tenant: list, read, change, delete what is known of them.

Paths without a network are of clients from when all files were private.
"""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Request

from roost.identity.door import FilesReader, FilesWriter
from roost.storage.content.model import Network
from roost.storage.files import wire
from roost.storage.files.service import Files
from roost.web.provide import provide
from roost.web.wire import Data

Service = Annotated[Files, Depends(provide(Files))]
FileId = Annotated[UUID, Path(alias="id")]
router = APIRouter(prefix="/v3/files", tags=["files"])


@router.get("/{network}/{id:uuid}")
@router.get("/{id:uuid}")
async def get_file(
    caller: FilesReader, file_id: FileId, files: Service, network: Network = Network.PRIVATE
) -> Data[wire.FileItem]:
    """What is known of a file."""
    return Data(data=wire.item(await files.get(caller.tenant_id, network, str(file_id))))


@router.put("/{network}/{id:uuid}")
@router.put("/{id:uuid}")
async def update_file(
    caller: FilesWriter, file_id: FileId, body: wire.Change, files: Service, network: Network = Network.PRIVATE
) -> Data[wire.FileItem]:
    """Give a file another name, keyvalues, or time to go."""
    return Data(data=wire.item(await files.change(caller.tenant_id, network, str(file_id), body.apply)))


@router.delete("/{network}/{id:uuid}")
@router.delete("/{id:uuid}")
async def delete_file(
    caller: FilesWriter, file_id: FileId, files: Service, network: Network = Network.PRIVATE
) -> Data[None]:
    """Delete a file; its content goes with a sweep unless something else holds it."""
    await files.delete(caller.tenant_id, network, str(file_id))
    return Data(data=None)


@router.get("/{network}")  # behind the others: an id is no network
async def list_files(
    request: Request, caller: FilesReader, network: Network, chosen: Annotated[wire.Chosen, Query()], files: Service
) -> Data[wire.FileList]:
    """A page of the tenant's files, newest first; `keyvalues[key]=value` chooses by key and value."""
    wanted = chosen.filter(request.query_params)
    page, token = await files.list(caller.tenant_id, network, wanted, chosen.page_token, chosen.limit)
    return Data(data=wire.listed(page, token))


@router.get("")
async def list_private_files(
    request: Request, caller: FilesReader, chosen: Annotated[wire.Chosen, Query()], files: Service
) -> Data[wire.FileList]:
    """The same of private files."""
    return await list_files(request, caller, Network.PRIVATE, chosen, files)
