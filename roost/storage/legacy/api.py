"""The pinning API before `/v3`."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request
from fastapi.responses import PlainTextResponse

from roost.identity.door import FilesReader, FilesWriter, StorageCaller
from roost.storage.legacy import wire
from roost.storage.legacy.service import Legacy
from roost.storage.uploads import form
from roost.storage.uploads.model import Order
from roost.storage.uploads.service import Uploads
from roost.web.provide import provide

Service = Annotated[Legacy, Depends(provide(Legacy))]
UploadService = Annotated[Uploads, Depends(provide(Uploads))]
router = APIRouter(tags=["legacy"])


@router.get("/data/testAuthentication")
@router.get("/v3/data/testAuthentication")
async def greet(_: StorageCaller) -> wire.Greeting:
    """Whether the credential counts, whatever its scopes."""
    return wire.Greeting()


@router.post("/pinning/pinFileToIPFS")
async def pin_file(request: Request, caller: FilesWriter, uploads: UploadService) -> wire.Pinned:
    """Keep a file or a folder from a form, publicly."""
    async with uploads.begin(Order(caller.tenant_id)) as upload:
        fields = await form.receive(request.stream(), request.headers.get("content-type", ""), upload)
        file = await upload.finish(wire.label(fields.get("pinataMetadata"), fields.get("pinataOptions")))
    return wire.pinned(file)


@router.post("/pinning/pinJSONToIPFS")
async def pin_json(request: Request, caller: FilesWriter, legacy: Service) -> wire.Pinned:
    """Keep JSON, publicly."""
    said, content = await legacy.reading.read(await request.body(), *wire.JSON_PIN)
    return wire.pinned(await legacy.pin_json(caller.tenant_id, content, wire.label(*said)))


@router.get("/data/pinList", response_model_exclude_none=False)
async def list_pins(caller: FilesReader, chosen: Annotated[wire.Chosen, Query()], legacy: Service) -> wire.PinList:
    """Public files, newest first."""
    found, count = await legacy.list(caller.tenant_id, chosen.filter(), chosen.page_limit, chosen.page_offset)
    return wire.listed(found, count if chosen.include_count and chosen.includes_count else None)


@router.get("/data/userPinnedDataTotal")
@router.get("/v3/data/userPinnedDataTotal")
async def get_total(caller: FilesReader, legacy: Service) -> wire.Total:
    """How many public files there are, and their bytes."""
    count, size = await legacy.total(caller.tenant_id)
    return wire.Total(pin_count=count, pin_size_total=size, pin_size_with_replications_total=size)


@router.delete("/pinning/unpin/{cid}", response_class=PlainTextResponse)
async def unpin(caller: FilesWriter, cid: Annotated[str, Path()], legacy: Service) -> str:
    """Delete the public file of a CID."""
    await legacy.unpin(caller.tenant_id, cid)
    return "OK"


@router.put("/pinning/hashMetadata", response_class=PlainTextResponse)
async def update_metadata(caller: FilesWriter, body: wire.HashMetadata, legacy: Service) -> str:
    """Change name and keyvalues of the public file of a CID."""
    await legacy.note(caller.tenant_id, body.ipfs_pin_hash, body.apply)
    return "OK"
