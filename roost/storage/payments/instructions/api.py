"""Payment instructions over HTTP (contract, Storage API)."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query
from pydantic import Field

from roost.identity.authenticator import FilesReader, FilesWriter
from roost.storage.payments.instructions.model import (
    BUILT_IN,
    CIDS_PAGE_DEFAULT,
    DESCRIPTION_LIMIT,
    NAME_LIMIT,
    PAGE_DEFAULT,
    PAGE_LIMIT,
    REQUIREMENT_DESCRIPTION_LIMIT,
    REQUIREMENTS_LIMIT,
    PaymentInstruction,
    PaymentInstructionFilter,
    PaymentInstructionUpdate,
    PaymentRequirement,
)
from roost.storage.payments.instructions.service import PaymentInstructionService
from roost.web.schemas import DataEnvelope, Moment, StorageSchema, Text
from roost.web.service_registry import provide_service

InstructionName = Annotated[Text, Field(min_length=1, max_length=NAME_LIMIT, examples=["Articles"])]
InstructionDescription = Annotated[Text, Field(max_length=DESCRIPTION_LIMIT, examples=["One cent for an article"])]
_Short = Annotated[Text, Field(max_length=128)]


class PaymentRequirementRecord(StorageSchema):
    """One way to pay; `amount` is in the smallest units of the asset."""

    asset: _Short = Field(examples=[BUILT_IN[0].address])
    pay_to: _Short = Field(examples=["0x209693Bc6afc0C5328bA36FaF03C514EF312287C"])
    network: _Short = Field(examples=["base"])
    amount: _Short = Field(examples=["10000"])
    description: Annotated[Text, Field(max_length=REQUIREMENT_DESCRIPTION_LIMIT, examples=["One cent"])] = ""


PaymentRequirements = Annotated[Sequence[PaymentRequirementRecord], Field(min_length=1, max_length=REQUIREMENTS_LIMIT)]


class CreatePaymentInstructionRequest(StorageSchema):
    name: InstructionName
    payment_requirements: PaymentRequirements
    description: InstructionDescription = ""


class UpdatePaymentInstructionRequest(StorageSchema):
    """Fields that are missing or null stay as they are; `payment_requirements` replaces all of them."""

    name: InstructionName | None = None
    payment_requirements: PaymentRequirements | None = None
    description: InstructionDescription | None = None


class PaymentInstructionRecord(StorageSchema):
    """`version` is 1, and one more with every update."""

    id: str
    version: int = Field(examples=[1])
    payment_requirements: Sequence[PaymentRequirementRecord]
    name: str = Field(examples=["Articles"])
    description: str = Field(examples=["One cent for an article"])
    created_at: Moment


class PaymentInstructionList(StorageSchema):
    """`next_page_token` is null on the last page."""

    payment_instructions: Sequence[PaymentInstructionRecord]
    next_page_token: str | None = None


class AttachedCidRecord(StorageSchema):
    payment_instruction_id: str
    cid: str
    created_at: Moment


class AttachedCidList(StorageSchema):
    """`next_page_token` is null on the last page."""

    cids: Sequence[str]
    next_page_token: str | None = None


class EmptyRecord(StorageSchema):
    """No fields: what was named is gone."""


def read_requirements(records: Sequence[PaymentRequirementRecord]) -> Sequence[PaymentRequirement]:
    return tuple(PaymentRequirement(**vars(record)) for record in records)


def read_update(body: UpdatePaymentInstructionRequest) -> PaymentInstructionUpdate:
    records = body.payment_requirements
    return PaymentInstructionUpdate(
        body.name, body.description, None if records is None else read_requirements(records)
    )


def instruction_record(instruction: PaymentInstruction) -> PaymentInstructionRecord:
    return PaymentInstructionRecord.model_validate(instruction, from_attributes=True)


Service = Annotated[PaymentInstructionService, Depends(provide_service(PaymentInstructionService))]
InstructionId = Annotated[str, Path(alias="id", max_length=64)]
CidText = Annotated[str, Path(alias="cid", max_length=512)]
_Limit = Annotated[int, Query(ge=1, le=PAGE_LIMIT)]
_PageToken = Annotated[str | None, Query(alias="pageToken", max_length=200)]
_Filter = Annotated[Text | None, Query(max_length=512)]
router = APIRouter(prefix="/v3/x402/payment_instructions", tags=["payments"])


@router.post("")
async def create_payment_instruction(
    caller: FilesWriter, body: CreatePaymentInstructionRequest, instructions: Service
) -> DataEnvelope[PaymentInstructionRecord]:
    """Create a payment instruction; a payer may choose among its requirements."""
    requirements = read_requirements(body.payment_requirements)
    created = await instructions.create(caller.tenant_id, body.name, requirements, body.description)
    return DataEnvelope(data=instruction_record(created))


@router.get("")
async def list_payment_instructions(
    caller: FilesReader,
    instructions: Service,
    cid: _Filter = None,
    name: _Filter = None,
    instruction_id: Annotated[_Filter, Query(alias="id")] = None,
    token: _PageToken = None,
    limit: _Limit = PAGE_DEFAULT,
) -> DataEnvelope[PaymentInstructionList]:
    """List payment instructions, newest first; `name` is a part of the name, `cid` finds the one that is attached."""
    wanted = PaymentInstructionFilter(instruction_id, name, cid)
    page, next_token = await instructions.list(caller.tenant_id, wanted, token, limit)
    records = [instruction_record(instruction) for instruction in page]
    return DataEnvelope(data=PaymentInstructionList(payment_instructions=records, next_page_token=next_token))


@router.get("/{id}")
async def get_payment_instruction(
    caller: FilesReader, instruction_id: InstructionId, instructions: Service
) -> DataEnvelope[PaymentInstructionRecord]:
    """Return a payment instruction."""
    return DataEnvelope(data=instruction_record(await instructions.get(caller.tenant_id, instruction_id)))


@router.patch("/{id}")
async def update_payment_instruction(
    caller: FilesWriter, instruction_id: InstructionId, body: UpdatePaymentInstructionRequest, instructions: Service
) -> DataEnvelope[PaymentInstructionRecord]:
    """Change a payment instruction, also for CIDs that it is attached to, and raise its version."""
    updated = await instructions.update(caller.tenant_id, instruction_id, read_update(body))
    return DataEnvelope(data=instruction_record(updated))


@router.delete("/{id}")
async def delete_payment_instruction(
    caller: FilesWriter, instruction_id: InstructionId, instructions: Service
) -> DataEnvelope[EmptyRecord]:
    """Delete a payment instruction that is attached to no CID."""
    await instructions.delete(caller.tenant_id, instruction_id)
    return DataEnvelope(data=EmptyRecord())


@router.get("/{id}/cids")
async def list_payment_instruction_cids(
    caller: FilesReader,
    instruction_id: InstructionId,
    instructions: Service,
    token: _PageToken = None,
    limit: _Limit = CIDS_PAGE_DEFAULT,
) -> DataEnvelope[AttachedCidList]:
    """List the CIDs that a payment instruction is attached to, newest attachment first."""
    page, next_token = await instructions.list_cids(caller.tenant_id, instruction_id, token, limit)
    return DataEnvelope(data=AttachedCidList(cids=[one.file_cid for one in page], next_page_token=next_token))


@router.put("/{id}/cids/{cid}")
async def attach_payment_instruction(
    caller: FilesWriter, instruction_id: InstructionId, cid: CidText, instructions: Service
) -> DataEnvelope[AttachedCidRecord]:
    """Attach a payment instruction to a private file, by CID; a CID has at most one."""
    attached = await instructions.attach_cid(caller.tenant_id, instruction_id, cid)
    record = AttachedCidRecord(
        payment_instruction_id=attached.instruction_id, cid=attached.file_cid, created_at=attached.created_at
    )
    return DataEnvelope(data=record)


@router.delete("/{id}/cids/{cid}")
async def detach_payment_instruction(
    caller: FilesWriter, instruction_id: InstructionId, cid: CidText, instructions: Service
) -> DataEnvelope[EmptyRecord]:
    """Detach a payment instruction from a CID."""
    await instructions.detach_cid(caller.tenant_id, instruction_id, cid)
    return DataEnvelope(data=EmptyRecord())
