"""Uploads of the storage API as forms."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from roost.identity.authenticator import FilesReader, FilesWriter
from roost.storage.files import metadata_parsing
from roost.storage.signed_urls.authenticator import SignedUploadGrant
from roost.storage.uploads import multipart, schemas
from roost.storage.uploads.metadata import label_of
from roost.storage.uploads.model import FILES_LIMIT, UploadRequestLimits
from roost.storage.uploads.service import UploadService
from roost.web.schemas import DataEnvelope
from roost.web.service_registry import provide_service

Service = Annotated[UploadService, Depends(provide_service(UploadService))]
CidVersion = Annotated[str | None, Query(alias="X-Upload-Option-Cid-Version", max_length=32)]
router = APIRouter(tags=["files"])


@router.post("/v3/files")
async def upload_file(
    request: Request, caller: FilesWriter, uploads: Service, cid_version: CidVersion = None
) -> DataEnvelope[schemas.UploadedFileRecord]:
    """Keep a file, or with many `file` parts a folder, from a form."""
    order = UploadRequestLimits(caller.tenant_id, metadata_parsing.profile(cid_version))
    async with uploads.begin(order) as upload:
        fields = await multipart.receive(request.stream(), request.headers.get("content-type", ""), upload)
        file = await upload.finish(label_of(fields))
    return DataEnvelope(data=schemas.uploaded(file))


@router.post("/v3/files/{file_id:uuid}")
async def upload_signed(
    request: Request, grant: SignedUploadGrant, uploads: Service
) -> DataEnvelope[schemas.UploadedFileRecord]:
    """Keep a file, or a folder, from a form at a signed address."""
    profile = metadata_parsing.profile(grant.fields.get("cid_version"))
    order = UploadRequestLimits(grant.tenant_id, profile, grant.file_id, grant.max_size, grant.mime_types)
    async with uploads.begin(order) as upload:
        fields = await multipart.receive(request.stream(), request.headers.get("content-type", ""), upload)
        file = await upload.finish(label_of(grant.over(fields)))
    return DataEnvelope(data=schemas.uploaded(file))


@router.get("/v3/files/limits")
async def get_limits(caller: FilesReader, uploads: Service) -> DataEnvelope[schemas.UploadLimitsRecord]:
    """What one upload may have, and how much is kept and may be."""
    limit, (stored, most) = await uploads.limit(caller.tenant_id), await uploads.usage(caller.tenant_id)
    return DataEnvelope(
        data=schemas.UploadLimitsRecord(max_size=limit, max_files=FILES_LIMIT, stored=stored, max_stored=most)
    )
