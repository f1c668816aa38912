"""Signed addresses of the storage API: made here, used at storage gateways and at the upload address."""

from typing import Annotated

from fastapi import APIRouter, Depends

from roost.core import ids
from roost.identity.door import FilesWriter
from roost.storage.links import wire
from roost.storage.links.service import Links
from roost.web.provide import provide
from roost.web.wire import Data

Service = Annotated[Links, Depends(provide(Links))]
router = APIRouter(tags=["files"])


@router.post("/v3/files/sign")
async def sign(body: wire.Signing, caller: FilesWriter, links: Service) -> Data[str]:
    """A signed address to upload one file to, or, with a `url`, to fetch a private file from."""
    if isinstance(body, wire.Download):
        return Data(data=await links.download(caller.tenant_id, body.url, body.window(), body.method))
    return Data(data=await links.upload(body.grant(caller.tenant_id, ids.new_id()), body.window()))


@router.post("/v3/files/private/download_link")
async def create_download_link(body: wire.Download, caller: FilesWriter, links: Service) -> Data[str]:
    """A signed address to fetch a private file from."""
    return Data(data=await links.download(caller.tenant_id, body.url, body.window(), body.method))
