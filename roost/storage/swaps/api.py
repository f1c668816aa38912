"""Hot swaps over HTTP."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from roost.identity.door import FilesReader, FilesWriter
from roost.storage.content.model import Network
from roost.storage.swaps import wire
from roost.storage.swaps.service import Swaps
from roost.web.provide import provide
from roost.web.wire import Data

Service = Annotated[Swaps, Depends(provide(Swaps))]
CidText = Annotated[str, Path(alias="cid", max_length=512)]
_Domain = Annotated[str | None, Query(max_length=253)]
router = APIRouter(prefix="/v3/files/{network}/swap/{cid}", tags=["swaps"])


@router.put("")
async def put_swap(
    caller: FilesWriter, network: Network, cid: CidText, body: wire.PutSwap, swaps: Service
) -> Data[wire.SwapRecord]:
    """Serve another CID in place of this one, on gateways with the plugin."""
    return Data(data=wire.record(await swaps.put(caller.tenant_id, network, cid, body.swap_cid)))


@router.get("")
async def swap_history(
    caller: FilesReader, network: Network, cid: CidText, swaps: Service, domain: _Domain = None
) -> Data[Sequence[wire.SwapRecord]]:
    """What was served in place of a CID, the newest first; `domain` names one of the tenant's gateways."""
    found = await swaps.history(caller.tenant_id, network, cid, domain)
    return Data(data=[wire.record(swap) for swap in found])


@router.delete("")
async def delete_swap(caller: FilesWriter, network: Network, cid: CidText, swaps: Service) -> Data[None]:
    """Serve the CID itself again."""
    await swaps.delete(caller.tenant_id, network, cid)
    return Data(data=None)
