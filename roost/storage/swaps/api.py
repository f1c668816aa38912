"""Hot swaps over HTTP, also under the paths of older clients: for some all files were private, for others public."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from roost.identity.authenticator import FilesReader, FilesWriter
from roost.storage.content.model import ContentNetwork
from roost.storage.swaps import schemas
from roost.storage.swaps.service import SwapService
from roost.web.schemas import DataEnvelope, Text
from roost.web.service_registry import provide_service

Service = Annotated[SwapService, Depends(provide_service(SwapService))]
CidText = Annotated[str, Path(alias="cid", max_length=512)]
_Domain = Annotated[Text | None, Query(max_length=253)]
router = APIRouter(tags=["swaps"])

_PATH = "/v3/files/{network}/swap/{cid}"
_PRIVATE = "/v3/files/swap/{cid}"
_PUBLIC = "/v3/ipfs/swap/{cid}"


@router.put(_PATH)
@router.put(_PRIVATE)
async def put_swap(
    caller: FilesWriter,
    cid: CidText,
    body: schemas.PutSwapRequest,
    swaps: Service,
    network: ContentNetwork = ContentNetwork.PRIVATE,
) -> DataEnvelope[schemas.SwapRecord]:
    """Serve another CID in place of this one, on gateways with the plugin."""
    return DataEnvelope(data=schemas.record(await swaps.put(caller.tenant_id, network, cid, body.swap_cid)))


@router.get(_PATH)
@router.get(_PRIVATE)
async def swap_history(
    caller: FilesReader,
    cid: CidText,
    swaps: Service,
    domain: _Domain = None,
    network: ContentNetwork = ContentNetwork.PRIVATE,
) -> DataEnvelope[Sequence[schemas.SwapRecord]]:
    """What was served in place of a CID, the newest first; `domain` names one of the tenant's gateways."""
    found = await swaps.history(caller.tenant_id, network, cid, domain)
    return DataEnvelope(data=[schemas.record(swap) for swap in found])


@router.delete(_PATH)
@router.delete(_PRIVATE)
async def delete_swap(
    caller: FilesWriter, cid: CidText, swaps: Service, network: ContentNetwork = ContentNetwork.PRIVATE
) -> DataEnvelope[None]:
    """Serve the CID itself again."""
    await swaps.delete(caller.tenant_id, network, cid)
    return DataEnvelope(data=None)


@router.put(_PUBLIC)
async def put_public_swap(
    caller: FilesWriter, cid: CidText, body: schemas.PutSwapRequest, swaps: Service
) -> DataEnvelope[schemas.LegacySwapRecord]:
    """Serve another public CID in place of this one."""
    made = await swaps.put(caller.tenant_id, ContentNetwork.PUBLIC, cid, body.swap_cid)
    return DataEnvelope(data=schemas.old_record(made))


@router.get(_PUBLIC)
async def public_swap_history(
    caller: FilesReader, cid: CidText, swaps: Service, domain: _Domain = None
) -> DataEnvelope[Sequence[schemas.LegacySwapRecord]]:
    """What was served in place of a public CID, the newest first."""
    found = await swaps.history(caller.tenant_id, ContentNetwork.PUBLIC, cid, domain)
    return DataEnvelope(data=[schemas.old_record(swap) for swap in found])


@router.delete(_PUBLIC)
async def delete_public_swap(caller: FilesWriter, cid: CidText, swaps: Service) -> DataEnvelope[None]:
    """Serve the public CID itself again."""
    return await delete_swap(caller, cid, swaps, ContentNetwork.PUBLIC)
