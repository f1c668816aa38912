"""HTTP API of pins by CID."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from roost.identity.authenticator import FilesReader, FilesWriter
from roost.storage.pins import schemas
from roost.storage.pins.service import PinService
from roost.web.schemas import DataEnvelope, Text
from roost.web.service_registry import provide_service

Service = Annotated[PinService, Depends(provide_service(PinService))]
PinId = Annotated[Text, Path(alias="id")]
router = APIRouter(tags=["pins"])


@router.post("/v3/files/public/pin_by_cid")
async def pin_by_cid(
    caller: FilesWriter, body: schemas.PinByCidRequest, pins: Service
) -> DataEnvelope[schemas.PinJobRecord]:
    """Fetch a CID from the public network and store it as a public file."""
    return DataEnvelope(data=schemas.pin_job_record(await pins.add(caller.tenant_id, body.to_pin_request())))


@router.get("/v3/files/public/pin_by_cid")
async def list_pins(
    caller: FilesReader, parameters: Annotated[schemas.PinJobParameters, Query()], pins: Service
) -> DataEnvelope[schemas.PinJobList]:
    """List waiting and failed pins, newest first."""
    page, token = await pins.list(caller.tenant_id, parameters.to_pin_query(), parameters.page_token, parameters.limit)
    jobs = [schemas.pin_job_record(pin) for pin in page]
    return DataEnvelope(data=schemas.PinJobList(jobs=jobs, next_page_token=token or ""))


@router.delete("/v3/files/public/pin_by_cid/{id}")
async def delete_pin(caller: FilesWriter, pin_id: PinId, pins: Service) -> DataEnvelope[None]:
    """Remove a pin from the queue."""
    await pins.delete(caller.tenant_id, pin_id)
    return DataEnvelope(data=None)
