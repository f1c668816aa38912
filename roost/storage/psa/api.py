"""The Pinning Service API over HTTP, for `ipfs pin remote` and its like."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response, status

from roost.identity.door import FilesReader, FilesWriter
from roost.storage.pins.service import Pins
from roost.storage.psa import wire
from roost.web.provide import provide
from roost.web.wire import Text

Service = Annotated[Pins, Depends(provide(Pins))]
RequestId = Annotated[Text, Path(alias="requestid")]
router = APIRouter(prefix="/psa/pins", tags=["pins"])


@router.get("")
async def list_remote_pins(
    caller: FilesReader, chosen: Annotated[wire.Chosen, Query()], pins: Service
) -> wire.PinResults:
    """Pins by CID, newest first."""
    found, count = await pins.slice(caller.tenant_id, chosen.wanted(), chosen.limit)
    return wire.results(found, count, await pins.delegates())


@router.post("", status_code=status.HTTP_202_ACCEPTED)
async def add_remote_pin(caller: FilesWriter, body: wire.PinObject, pins: Service) -> wire.PinStatus:
    """Pin by CID."""
    return wire.status(await pins.add(caller.tenant_id, body.ask()), await pins.delegates())


@router.get("/{requestid}")
async def get_remote_pin(caller: FilesReader, request_id: RequestId, pins: Service) -> wire.PinStatus:
    """One pin."""
    return wire.status(await pins.get(caller.tenant_id, request_id), await pins.delegates())


@router.post("/{requestid}", status_code=status.HTTP_202_ACCEPTED)
async def replace_remote_pin(
    caller: FilesWriter, request_id: RequestId, body: wire.PinObject, pins: Service
) -> wire.PinStatus:
    """Another pin in place of one."""
    new = await pins.replace(caller.tenant_id, request_id, body.ask())
    return wire.status(new, await pins.delegates())


@router.delete("/{requestid}", status_code=status.HTTP_202_ACCEPTED, response_class=Response)
async def remove_remote_pin(caller: FilesWriter, request_id: RequestId, pins: Service) -> None:
    """Take a pin back, with the file that it became."""
    await pins.unpin(caller.tenant_id, request_id)
