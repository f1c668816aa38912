"""Uploads of the storage API as forms."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from roost.identity.door import FilesReader, FilesWriter
from roost.storage.files import said
from roost.storage.links.door import UploadGrant
from roost.storage.uploads import form, wire
from roost.storage.uploads.label import label_of
from roost.storage.uploads.model import FILES_LIMIT, Order
from roost.storage.uploads.service import Uploads
from roost.web.provide import provide
from roost.web.wire import Data

Service = Annotated[Uploads, Depends(provide(Uploads))]
CidVersion = Annotated[str | None, Query(alias="X-Upload-Option-Cid-Version", max_length=32)]
router = APIRouter(tags=["files"])


@router.post("/v3/files")
async def upload_file(
    request: Request, caller: FilesWriter, uploads: Service, cid_version: CidVersion = None
) -> Data[wire.Uploaded]:
    """Keep a file, or with many `file` parts a folder, from a form."""
    order = Order(caller.tenant_id, said.profile(cid_version))
    async with uploads.begin(order) as upload:
        fields = await form.receive(request.stream(), request.headers.get("content-type", ""), upload)
        file = await upload.finish(label_of(fields))
    return Data(data=wire.uploaded(file))


@router.post("/v3/files/{file_id:uuid}")
async def upload_signed(request: Request, grant: UploadGrant, uploads: Service) -> Data[wire.Uploaded]:
    """Keep a file, or a folder, from a form at a signed address."""
    profile = said.profile(grant.fields.get("cid_version"))
    order = Order(grant.tenant_id, profile, grant.file_id, grant.max_size, grant.mime_types)
    async with uploads.begin(order) as upload:
        fields = await form.receive(request.stream(), request.headers.get("content-type", ""), upload)
        file = await upload.finish(label_of(grant.over(fields)))
    return Data(data=wire.uploaded(file))


@router.get("/v3/files/limits")
async def get_limits(caller: FilesReader, uploads: Service) -> Data[wire.Limits]:
    """What one upload may have, and how much is kept and may be."""
    limit, (stored, most) = await uploads.limit(caller.tenant_id), await uploads.usage(caller.tenant_id)
    return Data(data=wire.Limits(max_size=limit, max_files=FILES_LIMIT, stored=stored, max_stored=most))
