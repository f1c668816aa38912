"""Endpoints of the Pinning Service API, for `ipfs pin remote` and other clients."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query, Response, status

from roost.identity.authenticator import FilesReader, FilesWriter
from roost.storage.compat.psa import schemas
from roost.storage.pins.service import PinService
from roost.web.responses import render_list
from roost.web.schemas import Text
from roost.web.service_registry import provide_service

Service = Annotated[PinService, Depends(provide_service(PinService))]
RequestId = Annotated[Text, Path(alias="requestid")]
router = APIRouter(prefix="/psa/pins", tags=["pins"])


@router.get("", response_model=schemas.PinResults)
async def list_remote_pins(
    caller: FilesReader, parameters: Annotated[schemas.PinListQuery, Query()], pins: Service
) -> Response:
    """List pins by CID, newest first."""
    page, count = await pins.list_slice(caller.tenant_id, parameters.to_query(), parameters.limit)
    delegates = await pins.list_delegates()
    return await render_list(page, lambda: schemas.pin_results(page, count, delegates))


@router.post("", status_code=status.HTTP_202_ACCEPTED)
async def add_remote_pin(caller: FilesWriter, body: schemas.PinObject, pins: Service) -> schemas.PinStatus:
    """Pin by CID."""
    return schemas.pin_status(await pins.add(caller.tenant_id, body.to_pin_request()), await pins.list_delegates())


@router.get("/{requestid}")
async def get_remote_pin(caller: FilesReader, request_id: RequestId, pins: Service) -> schemas.PinStatus:
    """Return a pin."""
    return schemas.pin_status(await pins.get(caller.tenant_id, request_id), await pins.list_delegates())


@router.post("/{requestid}", status_code=status.HTTP_202_ACCEPTED)
async def replace_remote_pin(
    caller: FilesWriter, request_id: RequestId, body: schemas.PinObject, pins: Service
) -> schemas.PinStatus:
    """Replace a pin."""
    new = await pins.replace(caller.tenant_id, request_id, body.to_pin_request())
    return schemas.pin_status(new, await pins.list_delegates())


@router.delete("/{requestid}", status_code=status.HTTP_202_ACCEPTED, response_class=Response)
async def remove_remote_pin(caller: FilesWriter, request_id: RequestId, pins: Service) -> None:
    """Remove a pin and its file."""
    await pins.unpin(caller.tenant_id, request_id)
