"""Payment instructions over HTTP (contract, Storage API)."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from roost.identity.authenticator import FilesReader, FilesWriter
from roost.storage.payments.instructions import schemas
from roost.storage.payments.instructions.model import (
    CIDS_PAGE_DEFAULT,
    PAGE_DEFAULT,
    PAGE_LIMIT,
    PaymentInstructionFilter,
)
from roost.storage.payments.instructions.service import PaymentInstructionService
from roost.web.schemas import DataEnvelope, Text
from roost.web.service_registry import provide_service

Service = Annotated[PaymentInstructionService, Depends(provide_service(PaymentInstructionService))]
InstructionId = Annotated[str, Path(alias="id", max_length=64)]
CidText = Annotated[str, Path(alias="cid", max_length=512)]
_Limit = Annotated[int, Query(ge=1, le=PAGE_LIMIT)]
_PageToken = Annotated[str | None, Query(alias="pageToken", max_length=200)]
_Filter = Annotated[Text | None, Query(max_length=512)]
router = APIRouter(prefix="/v3/x402/payment_instructions", tags=["payments"])


@router.post("")
async def create_payment_instruction(
    caller: FilesWriter, body: schemas.CreatePaymentInstructionRequest, instructions: Service
) -> DataEnvelope[schemas.PaymentInstructionRecord]:
    """Create a payment instruction; a payer may choose among its requirements."""
    requirements = schemas.read_requirements(body.payment_requirements)
    created = await instructions.create(caller.tenant_id, body.name, requirements, body.description)
    return DataEnvelope(data=schemas.instruction_record(created))


@router.get("")
async def list_payment_instructions(
    caller: FilesReader,
    instructions: Service,
    cid: _Filter = None,
    name: _Filter = None,
    instruction_id: Annotated[_Filter, Query(alias="id")] = None,
    token: _PageToken = None,
    limit: _Limit = PAGE_DEFAULT,
) -> DataEnvelope[schemas.PaymentInstructionList]:
    """List payment instructions, newest first; `name` is a part of the name, `cid` finds the one that is attached."""
    wanted = PaymentInstructionFilter(instruction_id, name, cid)
    page, next_token = await instructions.list(caller.tenant_id, wanted, token, limit)
    return DataEnvelope(data=schemas.instruction_list(page, next_token))


@router.get("/{id}")
async def get_payment_instruction(
    caller: FilesReader, instruction_id: InstructionId, instructions: Service
) -> DataEnvelope[schemas.PaymentInstructionRecord]:
    """Return a payment instruction."""
    return DataEnvelope(data=schemas.instruction_record(await instructions.get(caller.tenant_id, instruction_id)))


@router.patch("/{id}")
async def update_payment_instruction(
    caller: FilesWriter,
    instruction_id: InstructionId,
    body: schemas.UpdatePaymentInstructionRequest,
    instructions: Service,
) -> DataEnvelope[schemas.PaymentInstructionRecord]:
    """Change a payment instruction, also for CIDs that it is attached to, and raise its version."""
    updated = await instructions.update(caller.tenant_id, instruction_id, schemas.read_update(body))
    return DataEnvelope(data=schemas.instruction_record(updated))


@router.delete("/{id}")
async def delete_payment_instruction(
    caller: FilesWriter, instruction_id: InstructionId, instructions: Service
) -> DataEnvelope[schemas.EmptyRecord]:
    """Delete a payment instruction that is attached to no CID."""
    await instructions.delete(caller.tenant_id, instruction_id)
    return DataEnvelope(data=schemas.EmptyRecord())


@router.get("/{id}/cids")
async def list_payment_instruction_cids(
    caller: FilesReader,
    instruction_id: InstructionId,
    instructions: Service,
    token: _PageToken = None,
    limit: _Limit = CIDS_PAGE_DEFAULT,
) -> DataEnvelope[schemas.AttachedCidList]:
    """List the CIDs that a payment instruction is attached to, newest attachment first."""
    page, next_token = await instructions.list_cids(caller.tenant_id, instruction_id, token, limit)
    return DataEnvelope(data=schemas.attached_cid_list(page, next_token))


@router.put("/{id}/cids/{cid}")
async def attach_payment_instruction(
    caller: FilesWriter, instruction_id: InstructionId, cid: CidText, instructions: Service
) -> DataEnvelope[schemas.AttachedCidRecord]:
    """Attach a payment instruction to a private file, by CID; a CID has at most one."""
    attached = await instructions.attach_cid(caller.tenant_id, instruction_id, cid)
    return DataEnvelope(data=schemas.attached_cid_record(attached))


@router.delete("/{id}/cids/{cid}")
async def detach_payment_instruction(
    caller: FilesWriter, instruction_id: InstructionId, cid: CidText, instructions: Service
) -> DataEnvelope[schemas.EmptyRecord]:
    """Detach a payment instruction from a CID."""
    await instructions.detach_cid(caller.tenant_id, instruction_id, cid)
    return DataEnvelope(data=schemas.EmptyRecord())
