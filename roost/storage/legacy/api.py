"""The pinning API before `/v3`."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import PlainTextResponse

from roost.identity.authenticator import FilesReader, FilesWriter, StorageCaller
from roost.storage.legacy import schemas
from roost.storage.legacy.service import LegacyPinService
from roost.storage.uploads import multipart
from roost.storage.uploads.model import UploadRequestLimits
from roost.storage.uploads.service import UploadService
from roost.web.service_registry import provide_service

Service = Annotated[LegacyPinService, Depends(provide_service(LegacyPinService))]
UploadServiceDependency = Annotated[UploadService, Depends(provide_service(UploadService))]
router = APIRouter(tags=["legacy"])


@router.get("/data/testAuthentication")
@router.get("/v3/data/testAuthentication")
async def greet(_: StorageCaller) -> schemas.LegacyGreeting:
    """Whether the credential counts, whatever its scopes."""
    return schemas.LegacyGreeting()


@router.post("/pinning/pinFileToIPFS")
async def pin_file(request: Request, caller: FilesWriter, uploads: UploadServiceDependency) -> schemas.PinFileResponse:
    """Keep a file or a folder from a form, publicly."""
    async with uploads.begin(UploadRequestLimits(caller.tenant_id)) as upload:
        fields = await multipart.receive(request.stream(), request.headers.get("content-type", ""), upload)
        file = await upload.finish(schemas.label(fields.get("pinataMetadata"), fields.get("pinataOptions")))
    return schemas.pinned(file)


@router.post("/pinning/pinJSONToIPFS")
async def pin_json(request: Request, caller: FilesWriter, legacy: Service) -> schemas.PinFileResponse:
    """Keep JSON, publicly."""
    said, content = await legacy.reading.read(await request.body(), *schemas.JSON_PIN)
    return schemas.pinned(await legacy.pin_json(caller.tenant_id, content, schemas.label(*said)))


@router.get("/data/pinList", response_model_exclude_none=False)
async def list_pins(
    caller: FilesReader, chosen: Annotated[schemas.PinListParameters, Query()], legacy: Service
) -> schemas.PinList:
    """Public files, newest first."""
    found, count = await legacy.list(caller.tenant_id, chosen.filter(), chosen.page_limit, chosen.page_offset)
    return schemas.listed(found, count if chosen.include_count and chosen.includes_count else None)


@router.get("/data/userPinnedDataTotal")
@router.get("/v3/data/userPinnedDataTotal")
async def get_total(caller: FilesReader, legacy: Service) -> schemas.UserPinnedDataTotal:
    """How many public files there are, and their bytes."""
    count, size = await legacy.total(caller.tenant_id)
    return schemas.UserPinnedDataTotal(pin_count=count, pin_size_total=size, pin_size_with_replications_total=size)


@router.delete("/pinning/unpin/{cid}", response_class=PlainTextResponse)
async def unpin(caller: FilesWriter, cid: Annotated[str, Path()], legacy: Service) -> str:
    """Delete the public file of a CID."""
    await legacy.unpin(caller.tenant_id, cid)
    return "OK"


@router.put("/pinning/hashMetadata", response_class=PlainTextResponse)
async def update_metadata(caller: FilesWriter, body: schemas.HashMetadataRequest, legacy: Service) -> str:
    """Change name and keyvalues of the public file of a CID."""
    await legacy.note(caller.tenant_id, body.ipfs_pin_hash, body.apply)
    return "OK"
