"""HTTP API of form uploads."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from roost.identity.authenticator import FilesReader, FilesWriter
from roost.storage.files import metadata_parsing
from roost.storage.files.signed_urls.authenticator import SignedUploadGrant
from roost.storage.files.uploads import schemas
from roost.storage.files.uploads.model import FILES_LIMIT, UploadRequestLimits, parse_upload_metadata
from roost.storage.files.uploads.service import UploadService
from roost.web.multipart import receive_form
from roost.web.schemas import DataEnvelope
from roost.web.service_registry import provide_service

Service = Annotated[UploadService, Depends(provide_service(UploadService))]
CidVersion = Annotated[str | None, Query(alias="X-Upload-Option-Cid-Version", max_length=32)]
router = APIRouter(tags=["files"])


@router.post("/v3/files", openapi_extra=schemas.UPLOAD_FORM)
async def upload_file(
    request: Request, caller: FilesWriter, uploads: Service, cid_version: CidVersion = None
) -> DataEnvelope[schemas.UploadedFileRecord]:
    """Upload a file, or with several `file` parts a folder, as a form."""
    limits = UploadRequestLimits(caller.tenant_id, metadata_parsing.parse_profile(cid_version))
    async with uploads.begin(limits) as upload:
        fields = await receive_form(request.stream(), request.headers.get("content-type", ""), upload, FILES_LIMIT)
        file = await upload.finish(parse_upload_metadata(fields))
    return DataEnvelope(data=schemas.UploadedFileRecord.from_file(file))


@router.post("/v3/files/{file_id:uuid}", responses={401: {}, 403: {}, 405: {}}, openapi_extra=schemas.UPLOAD_FORM)
async def upload_signed(
    request: Request, grant: SignedUploadGrant, uploads: Service
) -> DataEnvelope[schemas.UploadedFileRecord]:
    """Upload a file or folder as a form to a signed URL."""
    profile = metadata_parsing.parse_profile(grant.fields.get("cid_version"))
    limits = UploadRequestLimits(grant.tenant_id, profile, grant.file_id, grant.max_size, grant.mime_types)
    async with uploads.begin(limits) as upload:
        fields = await receive_form(request.stream(), request.headers.get("content-type", ""), upload, FILES_LIMIT)
        file = await upload.finish(parse_upload_metadata(grant.merge_fields(fields)))
    return DataEnvelope(data=schemas.UploadedFileRecord.from_file(file))


@router.get("/v3/files/limits")
async def get_limits(caller: FilesReader, uploads: Service) -> DataEnvelope[schemas.UploadLimitsRecord]:
    """Return the limits of one upload, the stored bytes and the quota."""
    limit, (stored, most) = await uploads.size_limit(caller.tenant_id), await uploads.quota.usage(caller.tenant_id)
    return DataEnvelope(
        data=schemas.UploadLimitsRecord(max_size=limit, max_files=FILES_LIMIT, stored=stored, max_stored=most)
    )
