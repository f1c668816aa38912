"""Hot swaps over HTTP."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from roost.identity.authenticator import FilesReader, FilesWriter
from roost.storage.content.model import ContentNetwork
from roost.storage.gateways.swaps import schemas
from roost.storage.gateways.swaps.service import SwapService
from roost.web.schemas import DataEnvelope, Text
from roost.web.service_registry import provide_service

Service = Annotated[SwapService, Depends(provide_service(SwapService))]
CidText = Annotated[str, Path(alias="cid", max_length=512)]
_Domain = Annotated[Text | None, Query(max_length=253)]
router = APIRouter(prefix="/v3/files/{network}/swap/{cid}", tags=["swaps"])


@router.put("")
async def put_swap(
    caller: FilesWriter, network: ContentNetwork, cid: CidText, body: schemas.PutSwapRequest, swaps: Service
) -> DataEnvelope[schemas.SwapRecord]:
    """Serve another CID in place of this one, on gateways with the plugin."""
    swap = await swaps.put(caller.tenant_id, network, cid, body.swap_cid)
    return DataEnvelope(data=schemas.SwapRecord(**vars(swap)))


@router.get("")
async def get_swap_history(
    caller: FilesReader, network: ContentNetwork, cid: CidText, swaps: Service, domain: _Domain = None
) -> DataEnvelope[Sequence[schemas.SwapRecord]]:
    """List the swaps of a CID, newest first; `domain` names one of the tenant's gateways."""
    found = await swaps.history(caller.tenant_id, network, cid, domain)
    return DataEnvelope(data=[schemas.SwapRecord(**vars(swap)) for swap in found])


@router.delete("")
async def delete_swap(caller: FilesWriter, network: ContentNetwork, cid: CidText, swaps: Service) -> DataEnvelope[None]:
    """Serve the CID itself again."""
    await swaps.delete(caller.tenant_id, network, cid)
    return DataEnvelope(data=None)
