"""Endpoints of the APIs from before `/v3`, all on the public network (`paths.py` names their clients)."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse

from roost.identity.authenticator import FilesReader, FilesWriter, GroupsReader, GroupsWriter, StorageCaller
from roost.storage.compat import schemas
from roost.storage.compat.service import LegacyPinService
from roost.storage.content.model import ContentNetwork
from roost.storage.files.groups.model import GroupFilter
from roost.storage.files.groups.service import GroupService
from roost.storage.files.service import FileService
from roost.storage.files.uploads.model import FILES_LIMIT, UploadRequestLimits
from roost.storage.files.uploads.service import UploadService
from roost.storage.gateways.swaps.schemas import PutSwapRequest
from roost.storage.gateways.swaps.service import SwapService
from roost.storage.pins.service import PinService
from roost.web.multipart import receive_form
from roost.web.responses import render_list
from roost.web.schemas import DataEnvelope, Text
from roost.web.service_registry import provide_service

LegacyPins = Annotated[LegacyPinService, Depends(provide_service(LegacyPinService))]
Files = Annotated[FileService, Depends(provide_service(FileService))]
Groups = Annotated[GroupService, Depends(provide_service(GroupService))]
Pins = Annotated[PinService, Depends(provide_service(PinService))]
Uploads = Annotated[UploadService, Depends(provide_service(UploadService))]
Swaps = Annotated[SwapService, Depends(provide_service(SwapService))]
CidText = Annotated[str, Path(alias="cid", max_length=512)]
GroupId = Annotated[str, Path(alias="id")]
router = APIRouter(tags=["legacy"])
_PUBLIC = ContentNetwork.PUBLIC


@router.get("/data/testAuthentication", name="check_authentication_legacy")
@router.get("/v3/data/testAuthentication")
async def check_authentication(_: StorageCaller) -> schemas.LegacyGreeting:
    """Check a credential with any scopes."""
    return schemas.LegacyGreeting()


@router.get("/data/userPinnedDataTotal", name="get_pinned_data_total_legacy")
@router.get("/v3/data/userPinnedDataTotal")
async def get_pinned_data_total(caller: FilesReader, files: Files) -> schemas.UserPinnedDataTotal:
    """Return the number and the total size of public files."""
    count, size = await files.count_files(caller.tenant_id, _PUBLIC)
    return schemas.UserPinnedDataTotal(pin_count=count, pin_size_total=size, pin_size_with_replications_total=size)


@router.get("/data/pinList", response_model=schemas.PinList)
async def list_public_files(
    caller: FilesReader, parameters: Annotated[schemas.PinListParameters, Query()], files: Files
) -> Response:
    """List public files, also deleted ones, newest first."""
    limit, offset = parameters.page_limit, parameters.page_offset
    page, count = await files.list_pins(caller.tenant_id, parameters.to_filter(), limit, offset)
    shown = count if parameters.include_count and parameters.includes_count else None
    return await render_list(
        page, lambda: schemas.PinList(count=shown, rows=[schemas.pin_list_row(file) for file in page])
    )


@router.post("/pinning/pinFileToIPFS", openapi_extra=schemas.PIN_FILE_FORM)
async def pin_file(request: Request, caller: FilesWriter, uploads: Uploads) -> schemas.PinFileResponse:
    """Store a file or folder from a form."""
    async with uploads.begin(UploadRequestLimits(caller.tenant_id)) as upload:
        fields = await receive_form(request.stream(), request.headers.get("content-type", ""), upload, FILES_LIMIT)
        file = await upload.finish(schemas.upload_metadata(fields.get("pinataMetadata"), fields.get("pinataOptions")))
    return schemas.pin_file_response(file)


@router.post("/pinning/pinJSONToIPFS", openapi_extra=schemas.PIN_JSON_BODY)
async def pin_json(request: Request, caller: FilesWriter, legacy: LegacyPins) -> schemas.PinFileResponse:
    """Store JSON as a file."""
    metadata, content = await legacy.parsers.extract(caller.tenant_id, await request.body(), *schemas.JSON_PIN_MEMBERS)
    file = await legacy.pin_json(caller.tenant_id, content, schemas.upload_metadata(*metadata))
    return schemas.pin_file_response(file)


@router.put("/pinning/hashMetadata", response_class=PlainTextResponse)
async def update_metadata(caller: FilesWriter, body: schemas.HashMetadataRequest, legacy: LegacyPins) -> str:
    """Change name and keyvalues of the public file of a CID."""
    await legacy.update_metadata(caller.tenant_id, body.ipfs_pin_hash, body.apply)
    return "OK"


@router.delete("/pinning/unpin/{cid}", response_class=PlainTextResponse)
async def unpin_file(caller: FilesWriter, cid: Annotated[str, Path()], legacy: LegacyPins) -> str:
    """Delete the public file of a CID."""
    await legacy.unpin(caller.tenant_id, cid)
    return "OK"


@router.post("/pinning/pinByHash")
async def pin_by_hash(caller: FilesWriter, body: schemas.PinByHashRequest, pins: Pins) -> schemas.PinByHashResponse:
    """Fetch a CID from the public network."""
    pin = await pins.add(caller.tenant_id, body.to_pin_request())
    return schemas.PinByHashResponse(id=pin.id, ipfs_hash=pin.request.cid, status=pin.status, name=pin.request.name)


@router.get("/pinning/pinJobs", response_model=schemas.LegacyPinJobList)
async def list_pin_jobs(
    caller: FilesReader, parameters: Annotated[schemas.LegacyPinJobParameters, Query()], pins: Pins
) -> Response:
    """List the queue of pins by CID, oldest first."""
    query, limit, offset = parameters.to_pin_query(), parameters.limit, parameters.offset
    page, total = await pins.list_slice(caller.tenant_id, query, limit, offset)
    return await render_list(
        page, lambda: schemas.LegacyPinJobList(count=total, rows=[schemas.pin_job_row(pin) for pin in page])
    )


@router.post("/groups")
async def create_public_group(
    caller: GroupsWriter, body: schemas.GroupNameRequest, groups: Groups
) -> schemas.LegacyGroupRecord:
    """Create a group of public files."""
    group = await groups.create(caller.tenant_id, _PUBLIC, body.name, is_public=False)
    return schemas.legacy_group(group)


@router.get("/groups")
async def list_public_groups(
    caller: GroupsReader, parameters: Annotated[schemas.LegacyGroupParameters, Query()], groups: Groups
) -> Sequence[schemas.LegacyGroupRecord]:
    """List groups of public files, newest first; `nameContains` is a part of the name."""
    name_filter = GroupFilter(parameters.name_contains)
    page = await groups.list_slice(caller.tenant_id, _PUBLIC, name_filter, parameters.limit, parameters.offset)
    return [schemas.legacy_group(group) for group in page]


@router.get("/groups/{id}")
async def get_public_group(caller: GroupsReader, group_id: GroupId, groups: Groups) -> schemas.LegacyGroupRecord:
    """Return a group of public files."""
    return schemas.legacy_group(await groups.get(caller.tenant_id, _PUBLIC, group_id))


@router.put("/groups/{id}")
async def rename_public_group(
    caller: GroupsWriter, group_id: GroupId, body: schemas.GroupNameRequest, groups: Groups
) -> schemas.LegacyGroupRecord:
    """Rename a group of public files."""
    group = await groups.update(caller.tenant_id, _PUBLIC, group_id, body.name, is_public=None)
    return schemas.legacy_group(group)


@router.delete("/groups/{id}", response_class=PlainTextResponse)
async def delete_public_group(caller: GroupsWriter, group_id: GroupId, groups: Groups) -> str:
    """Delete a group of public files. The files are kept."""
    await groups.delete(caller.tenant_id, _PUBLIC, group_id)
    return "OK"


@router.put("/groups/{id}/cids", response_class=PlainTextResponse)
async def add_cids_to_group(
    caller: GroupsWriter, group_id: GroupId, body: schemas.CidListRequest, groups: Groups
) -> str:
    """Move the public files of some CIDs into a group, all or none."""
    await groups.add_files(caller.tenant_id, _PUBLIC, group_id, body.to_cids())
    return "OK"


@router.delete("/groups/{id}/cids", response_class=PlainTextResponse)
async def remove_cids_from_group(
    caller: GroupsWriter, group_id: GroupId, body: schemas.CidListRequest, groups: Groups
) -> str:
    """Remove the public files of some CIDs from a group, all or none. The files are kept."""
    await groups.remove_files(caller.tenant_id, _PUBLIC, group_id, body.to_cids())
    return "OK"


@router.put("/v3/ipfs/swap/{cid}", include_in_schema=False)
async def swap_public_cid(
    caller: FilesWriter, cid: CidText, body: PutSwapRequest, swaps: Swaps
) -> DataEnvelope[schemas.LegacySwapRecord]:
    """Serve another CID in place of this one, on gateways with the plugin."""
    swap = await swaps.put(caller.tenant_id, _PUBLIC, cid, body.swap_cid)
    return DataEnvelope(data=schemas.LegacySwapRecord(**vars(swap)))


@router.get("/v3/ipfs/swap/{cid}", include_in_schema=False)
async def list_public_swaps(
    caller: FilesReader, cid: CidText, swaps: Swaps, domain: Annotated[Text | None, Query(max_length=253)] = None
) -> DataEnvelope[Sequence[schemas.LegacySwapRecord]]:
    """List the swaps of a CID, newest first; `domain` names one of the tenant's gateways."""
    found = await swaps.history(caller.tenant_id, _PUBLIC, cid, domain)
    return DataEnvelope(data=[schemas.LegacySwapRecord(**vars(swap)) for swap in found])
