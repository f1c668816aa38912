"""Tables and SQL of payment instructions, and of the CIDs that they are attached to."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import JsonText, UtcTime, metadata, page_by_creation, read_one, read_record, record_values
from roost.core.page_cursor import PageCursor
from roost.storage.payments.instructions.model import (
    CidAttachment,
    PaymentInstruction,
    PaymentInstructionFilter,
    PaymentInstructionNotFound,
    PaymentRequirement,
)

instructions = sa.Table(
    "payment_instructions",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("payment_requirements", JsonText, nullable=False),
    sa.Column("name", sa.String(255), nullable=False),
    sa.Column("description", sa.String(1000), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.Column("deleted_at", UtcTime),
    sa.Index("ix_payment_instructions_tenant_id_created_at_id", "tenant_id", "created_at", "id"),
)

attachments = sa.Table(
    "payment_instruction_cids",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("instruction_id", sa.String(36), sa.ForeignKey("payment_instructions.id"), nullable=False),
    sa.Column("cid", sa.String(128), nullable=False),
    sa.Column("file_cid", sa.String(128), nullable=False),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.UniqueConstraint("tenant_id", "cid"),
    sa.Index("ix_payment_instruction_cids_instruction_id_created_at_id", "instruction_id", "created_at", "id"),
)


def insert_instruction(connection: Connection, instruction: PaymentInstruction) -> None:
    connection.execute(instructions.insert().values(_values(instruction)))


def get_instruction(connection: Connection, tenant_id: str, instruction_id: str) -> PaymentInstruction:
    """Return an instruction. Raises PaymentInstructionNotFound."""
    query = _instructions_of(tenant_id).where(instructions.c.id == instruction_id)
    instruction = read_one(connection, query, _instruction)
    if instruction is None:
        raise PaymentInstructionNotFound
    return instruction


def find_by_cid(connection: Connection, tenant_id: str, cid: str) -> PaymentInstruction | None:
    """Find the instruction that is attached to a CID in version 1."""
    return read_one(connection, _instructions_of(tenant_id).where(_is_attached(tenant_id, cid)), _instruction)


def list_instructions(
    connection: Connection, tenant_id: str, wanted: PaymentInstructionFilter, after: PageCursor | None, limit: int
) -> Sequence[PaymentInstruction]:
    """List instructions that match the filter, newest first, after the cursor `after`."""
    query = _instructions_of(tenant_id)
    if wanted.id is not None:
        query = query.where(instructions.c.id == wanted.id)
    if wanted.name is not None:
        query = query.where(instructions.c.name.icontains(wanted.name, autoescape=True))
    if wanted.cid is not None:
        query = query.where(_is_attached(tenant_id, wanted.cid))
    ordered = page_by_creation(query, instructions.c.created_at, instructions.c.id, after)
    return [_instruction(row) for row in connection.execute(ordered.limit(limit))]


def update_instruction(connection: Connection, instruction: PaymentInstruction) -> None:
    connection.execute(instructions.update().where(instructions.c.id == instruction.id).values(_values(instruction)))


def mark_deleted(connection: Connection, instruction_id: str, at: datetime) -> None:
    connection.execute(instructions.update().where(instructions.c.id == instruction_id).values(deleted_at=at))


def insert_attachment(connection: Connection, attachment: CidAttachment) -> None:
    connection.execute(attachments.insert().values(record_values(attachments, attachment)))


def find_attachment(connection: Connection, tenant_id: str, cid: str) -> CidAttachment | None:
    """Find the attachment of a CID in version 1."""
    query = sa.select(attachments).where(attachments.c.tenant_id == tenant_id, attachments.c.cid == cid)
    return read_one(connection, query, lambda row: read_record(CidAttachment, row))


def list_attachments(
    connection: Connection, instruction_id: str, after: PageCursor | None, limit: int
) -> Sequence[CidAttachment]:
    """List the attachments of an instruction, newest first, after the cursor `after`."""
    query = sa.select(attachments).where(attachments.c.instruction_id == instruction_id)
    ordered = page_by_creation(query, attachments.c.created_at, attachments.c.id, after)
    return [read_record(CidAttachment, row) for row in connection.execute(ordered.limit(limit))]


def delete_attachment(connection: Connection, tenant_id: str, cid: str) -> None:
    connection.execute(attachments.delete().where(attachments.c.tenant_id == tenant_id, attachments.c.cid == cid))


def _instructions_of(tenant_id: str) -> sa.Select[Any]:
    present = (instructions.c.tenant_id == tenant_id, instructions.c.deleted_at.is_(None))
    return sa.select(instructions).where(*present)


def _is_attached(tenant_id: str, cid: str) -> sa.ColumnElement[bool]:
    found = sa.select(attachments.c.instruction_id).where(
        attachments.c.tenant_id == tenant_id, attachments.c.cid == cid
    )
    return instructions.c.id.in_(found)


def _values(instruction: PaymentInstruction) -> dict[str, Any]:
    requirements = [vars(requirement) for requirement in instruction.payment_requirements]
    return record_values(instructions, instruction, payment_requirements=requirements)


def _instruction(row: Any) -> PaymentInstruction:
    requirements = tuple(PaymentRequirement(**requirement) for requirement in row.payment_requirements)
    return read_record(PaymentInstruction, row, payment_requirements=requirements)
