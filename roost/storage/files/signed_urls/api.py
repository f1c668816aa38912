"""HTTP API that creates signed URLs for downloads from storage gateways and for uploads."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.core import ids
from roost.identity.authenticator import FilesWriter
from roost.storage.files.signed_urls import schemas
from roost.storage.files.signed_urls.service import SignedUrlService
from roost.web.schemas import DataEnvelope
from roost.web.service_registry import provide_service

Service = Annotated[SignedUrlService, Depends(provide_service(SignedUrlService))]
router = APIRouter(tags=["files"])


@router.post("/v3/files/sign")
async def create_upload_link(body: schemas.SignRequest, caller: FilesWriter, links: Service) -> DataEnvelope[str]:
    """Sign a URL for an upload, or with a `url` for the download of a private file."""
    if isinstance(body, schemas.SignDownloadRequest):
        return DataEnvelope(
            data=await links.sign_download(caller.tenant_id, body.url, body.validity_period(), body.method)
        )
    return DataEnvelope(
        data=await links.sign_upload(body.grant(caller.tenant_id, ids.new_id()), body.validity_period())
    )


@router.post("/v3/files/private/download_link")
async def create_download_link(
    body: schemas.SignDownloadRequest, caller: FilesWriter, links: Service
) -> DataEnvelope[str]:
    """Sign a URL for the download of a private file."""
    return DataEnvelope(data=await links.sign_download(caller.tenant_id, body.url, body.validity_period(), body.method))
