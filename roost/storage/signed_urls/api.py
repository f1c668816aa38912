"""Signed addresses of the storage API: made here, used at storage gateways and at the upload address."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.core import ids
from roost.identity.authenticator import FilesWriter
from roost.storage.signed_urls import schemas
from roost.storage.signed_urls.service import SignedUrlService
from roost.web.schemas import DataEnvelope
from roost.web.service_registry import provide_service

Service = Annotated[SignedUrlService, Depends(provide_service(SignedUrlService))]
router = APIRouter(tags=["files"])


@router.post("/v3/files/sign")
async def sign(body: schemas.Signing, caller: FilesWriter, links: Service) -> DataEnvelope[str]:
    """A signed address to upload one file to, or, with a `url`, to fetch a private file from."""
    if isinstance(body, schemas.SignDownloadRequest):
        return DataEnvelope(data=await links.download(caller.tenant_id, body.url, body.window(), body.method))
    return DataEnvelope(data=await links.upload(body.grant(caller.tenant_id, ids.new_id()), body.window()))


@router.post("/v3/files/private/download_link")
async def create_download_link(
    body: schemas.SignDownloadRequest, caller: FilesWriter, links: Service
) -> DataEnvelope[str]:
    """A signed address to fetch a private file from."""
    return DataEnvelope(data=await links.download(caller.tenant_id, body.url, body.window(), body.method))
