"""Pins by CID over HTTP: the queue of `/v3`, and its legacy form."""

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
    """Fetch what a CID names from the public network, and keep it as a public file."""
    return DataEnvelope(data=schemas.job(await pins.add(caller.tenant_id, body.ask())))


@router.get("/v3/files/public/pin_by_cid")
async def list_pins(
    caller: FilesReader, chosen: Annotated[schemas.PinJobParameters, Query()], pins: Service
) -> DataEnvelope[schemas.PinJobList]:
    """The pins that are waited for, and those that came to nothing; newest first."""
    page, token = await pins.list(caller.tenant_id, chosen.wanted(), chosen.page_token, chosen.limit)
    return DataEnvelope(data=schemas.jobs(page, token))


@router.delete("/v3/files/public/pin_by_cid/{id}")
async def delete_pin(caller: FilesWriter, pin_id: PinId, pins: Service) -> DataEnvelope[None]:
    """Take a pin out of the queue."""
    await pins.delete(caller.tenant_id, pin_id)
    return DataEnvelope(data=None)


@router.post("/pinning/pinByHash")
async def pin_by_hash(caller: FilesWriter, body: schemas.PinByHashRequest, pins: Service) -> schemas.PinByHashResponse:
    """The legacy way to pin by CID."""
    return schemas.pinned(await pins.add(caller.tenant_id, body.ask()))


@router.get("/pinning/pinJobs")
async def list_pin_jobs(
    caller: FilesReader, chosen: Annotated[schemas.LegacyPinJobParameters, Query()], pins: Service
) -> schemas.LegacyPinJobList:
    """The legacy list of the queue."""
    found, total = await pins.slice(caller.tenant_id, chosen.wanted(), chosen.limit, chosen.offset)
    return schemas.legacy_jobs(found, total)
