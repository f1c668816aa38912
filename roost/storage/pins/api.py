"""Pins by CID over HTTP: the queue of `/v3`, and its legacy form."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from roost.identity.door import FilesReader, FilesWriter
from roost.storage.pins import wire
from roost.storage.pins.service import Pins
from roost.web.provide import provide
from roost.web.wire import Data, Text

Service = Annotated[Pins, Depends(provide(Pins))]
PinId = Annotated[Text, Path(alias="id")]
router = APIRouter(tags=["pins"])


@router.post("/v3/files/public/pin_by_cid")
async def pin_by_cid(caller: FilesWriter, body: wire.PinByCid, pins: Service) -> Data[wire.Job]:
    """Fetch what a CID names from the public network, and keep it as a public file."""
    return Data(data=wire.job(await pins.add(caller.tenant_id, body.ask())))


@router.get("/v3/files/public/pin_by_cid")
async def list_pins(caller: FilesReader, chosen: Annotated[wire.Chosen, Query()], pins: Service) -> Data[wire.Jobs]:
    """The pins that are waited for, and those that came to nothing; newest first."""
    page, token = await pins.list(caller.tenant_id, chosen.wanted(), chosen.page_token, chosen.limit)
    return Data(data=wire.jobs(page, token))


@router.delete("/v3/files/public/pin_by_cid/{id}")
async def delete_pin(caller: FilesWriter, pin_id: PinId, pins: Service) -> Data[None]:
    """Take a pin out of the queue."""
    await pins.delete(caller.tenant_id, pin_id)
    return Data(data=None)


@router.post("/pinning/pinByHash")
async def pin_by_hash(caller: FilesWriter, body: wire.PinByHash, pins: Service) -> wire.Pinned:
    """The legacy way to pin by CID."""
    return wire.pinned(await pins.add(caller.tenant_id, body.ask()))


@router.get("/pinning/pinJobs")
async def list_pin_jobs(
    caller: FilesReader, chosen: Annotated[wire.LegacyChosen, Query()], pins: Service
) -> wire.LegacyJobs:
    """The legacy list of the queue."""
    found, total = await pins.slice(caller.tenant_id, chosen.wanted(), chosen.limit, chosen.offset)
    return wire.legacy_jobs(found, total)
