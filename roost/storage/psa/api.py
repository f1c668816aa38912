"""The Pinning Service API over HTTP, for `ipfs pin remote` and its like."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response, status

from roost.identity.authenticator import FilesReader, FilesWriter
from roost.storage.pins.service import PinService
from roost.storage.psa import schemas
from roost.web.schemas import Text
from roost.web.service_registry import provide_service

Service = Annotated[PinService, Depends(provide_service(PinService))]
RequestId = Annotated[Text, Path(alias="requestid")]
router = APIRouter(prefix="/psa/pins", tags=["pins"])


@router.get("")
async def list_remote_pins(
    caller: FilesReader, chosen: Annotated[schemas.PinListQuery, Query()], pins: Service
) -> schemas.PinResults:
    """Pins by CID, newest first."""
    found, count = await pins.slice(caller.tenant_id, chosen.wanted(), chosen.limit)
    return schemas.results(found, count, await pins.delegates())


@router.post("", status_code=status.HTTP_202_ACCEPTED)
async def add_remote_pin(caller: FilesWriter, body: schemas.PinObject, pins: Service) -> schemas.PinStatus:
    """Pin by CID."""
    return schemas.status(await pins.add(caller.tenant_id, body.ask()), await pins.delegates())


@router.get("/{requestid}")
async def get_remote_pin(caller: FilesReader, request_id: RequestId, pins: Service) -> schemas.PinStatus:
    """One pin."""
    return schemas.status(await pins.get(caller.tenant_id, request_id), await pins.delegates())


@router.post("/{requestid}", status_code=status.HTTP_202_ACCEPTED)
async def replace_remote_pin(
    caller: FilesWriter, request_id: RequestId, body: schemas.PinObject, pins: Service
) -> schemas.PinStatus:
    """Another pin in place of one."""
    new = await pins.replace(caller.tenant_id, request_id, body.ask())
    return schemas.status(new, await pins.delegates())


@router.delete("/{requestid}", status_code=status.HTTP_202_ACCEPTED, response_class=Response)
async def remove_remote_pin(caller: FilesWriter, request_id: RequestId, pins: Service) -> None:
    """Take a pin back, with the file that it became."""
    await pins.unpin(caller.tenant_id, request_id)
