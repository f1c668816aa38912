"""Schemas of payment instructions (contract, Payment instruction)."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from roost.storage.payments.instructions.model import (
    BUILT_IN,
    DESCRIPTION_LIMIT,
    NAME_LIMIT,
    REQUIREMENT_DESCRIPTION_LIMIT,
    REQUIREMENTS_LIMIT,
    CidAttachment,
    PaymentInstruction,
    PaymentInstructionUpdate,
    PaymentRequirement,
)
from roost.web.schemas import Moment, StorageSchema, Text

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


def instruction_list(instructions: Sequence[PaymentInstruction], token: str | None) -> PaymentInstructionList:
    records = [instruction_record(instruction) for instruction in instructions]
    return PaymentInstructionList(payment_instructions=records, next_page_token=token)


def attached_cid_record(attachment: CidAttachment) -> AttachedCidRecord:
    return AttachedCidRecord(
        payment_instruction_id=attachment.instruction_id, cid=attachment.file_cid, created_at=attachment.created_at
    )


def attached_cid_list(attachments: Sequence[CidAttachment], token: str | None) -> AttachedCidList:
    return AttachedCidList(cids=[one.file_cid for one in attachments], next_page_token=token)
