"""Payment instructions of a tenant, and the private files that they are attached to.

Changes lock the tenant's row, so that a CID has at most one instruction and no deleted instruction has a CID.
"""

from collections.abc import Sequence
from dataclasses import replace

from roost.core import clock, ids, page_cursor
from roost.core.db import Connection, Database
from roost.core.page_cursor import PageCursor
from roost.core.partial_update import given_fields
from roost.identity import tenants
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.model import File, FileEvent
from roost.storage.files.service import FileService, find_by_cid, get_file
from roost.storage.payments.instructions import store
from roost.storage.payments.instructions.model import (
    PAGE_LIMIT,
    CidAlreadyAttached,
    CidAttachment,
    CidNotAttached,
    EmptyPaymentInstructionUpdate,
    PaymentAssets,
    PaymentInstruction,
    PaymentInstructionFilter,
    PaymentInstructionInUse,
    PaymentInstructionUpdate,
    PaymentRequirement,
    check_requirements,
    normalize_instruction_name,
)


class PaymentInstructionService:
    def __init__(self, db: Database, files: FileService, assets: PaymentAssets) -> None:
        self._db = db
        self._assets = assets
        files.add_listener(_detach_deleted_file)

    async def create(
        self, tenant_id: str, name: str, requirements: Sequence[PaymentRequirement], description: str = ""
    ) -> PaymentInstruction:
        """Create an instruction; names need not be unique. Raises InvalidPaymentInstruction."""
        check_requirements(requirements, self._assets)
        now, name = clock.utc_now(), normalize_instruction_name(name)
        created = PaymentInstruction(ids.new_id(), tenant_id, 1, tuple(requirements), name, description, now, now)
        await self._db.write(lambda connection: store.insert_instruction(connection, created))
        return created

    async def get(self, tenant_id: str, instruction_id: str) -> PaymentInstruction:
        """Return an instruction. Raises PaymentInstructionNotFound."""
        return await self._db.read(lambda connection: store.get_instruction(connection, tenant_id, instruction_id))

    async def list(
        self, tenant_id: str, wanted: PaymentInstructionFilter, token: str | None, limit: int
    ) -> tuple[Sequence[PaymentInstruction], str | None]:
        """Return a page, newest first, and the token of the next page. Raises InvalidCid, InvalidPageToken."""
        after = PageCursor.parse(token) if token else None
        limit = min(max(limit, 1), PAGE_LIMIT)
        if wanted.cid is not None:
            wanted = replace(wanted, cid=str(Cid.parse(wanted.cid).v1()))
        rows = await self._db.read_long(
            lambda connection: store.list_instructions(connection, tenant_id, wanted, after, limit + 1), tenant_id
        )
        return page_cursor.split_page(rows, limit)

    async def update(self, tenant_id: str, instruction_id: str, update: PaymentInstructionUpdate) -> PaymentInstruction:
        """Change an instruction and raise its version.

        Raises InvalidPaymentInstruction, EmptyPaymentInstructionUpdate, PaymentInstructionNotFound.
        """
        changes = given_fields(update)
        if not changes:
            raise EmptyPaymentInstructionUpdate
        if update.name is not None:
            changes["name"] = normalize_instruction_name(update.name)
        if update.payment_requirements is not None:
            check_requirements(update.payment_requirements, self._assets)

        def change(connection: Connection) -> PaymentInstruction:
            tenants.lock_tenant(connection, tenant_id)
            old = store.get_instruction(connection, tenant_id, instruction_id)
            new = replace(old, **changes, version=old.version + 1, updated_at=clock.utc_now())
            store.update_instruction(connection, new)
            return new

        return await self._db.write(change)

    async def delete(self, tenant_id: str, instruction_id: str) -> None:
        """Delete an instruction without CIDs. Raises PaymentInstructionNotFound, PaymentInstructionInUse."""

        def remove(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            store.get_instruction(connection, tenant_id, instruction_id)
            if store.list_attachments(connection, instruction_id, None, 1):
                raise PaymentInstructionInUse
            store.mark_deleted(connection, instruction_id, clock.utc_now())

        await self._db.write(remove)

    async def list_cids(
        self, tenant_id: str, instruction_id: str, token: str | None, limit: int
    ) -> tuple[Sequence[CidAttachment], str | None]:
        """Return a page of CIDs, newest first, and the token of the next page.

        Raises PaymentInstructionNotFound, InvalidPageToken.
        """
        after = PageCursor.parse(token) if token else None
        limit = min(max(limit, 1), PAGE_LIMIT)

        def read(connection: Connection) -> Sequence[CidAttachment]:
            store.get_instruction(connection, tenant_id, instruction_id)
            return store.list_attachments(connection, instruction_id, after, limit + 1)

        return page_cursor.split_page(await self._db.read(read), limit)

    async def attach_cid(self, tenant_id: str, instruction_id: str, cid: str) -> CidAttachment:
        """Attach a CID of a private file, or return its attachment to this instruction.

        Raises InvalidCid, PaymentInstructionNotFound, FileNotFound, CidAlreadyAttached.
        """
        parsed = Cid.parse(cid)

        def attach(connection: Connection) -> CidAttachment:
            tenants.lock_tenant(connection, tenant_id)
            store.get_instruction(connection, tenant_id, instruction_id)
            file = get_file(connection, tenant_id, ContentNetwork.PRIVATE, parsed)
            key = str(parsed.v1())
            present = store.find_attachment(connection, tenant_id, key)
            if present is not None:
                if present.instruction_id != instruction_id:
                    raise CidAlreadyAttached(f"CID is attached to payment instruction {present.instruction_id}")
                return present
            added = CidAttachment(ids.new_id(), tenant_id, instruction_id, key, file.cid, clock.utc_now())
            store.insert_attachment(connection, added)
            return added

        return await self._db.write(attach)

    async def detach_cid(self, tenant_id: str, instruction_id: str, cid: str) -> None:
        """Detach a CID, which is free then. Raises InvalidCid, PaymentInstructionNotFound, CidNotAttached."""
        key = str(Cid.parse(cid).v1())

        def detach(connection: Connection) -> None:
            tenants.lock_tenant(connection, tenant_id)
            store.get_instruction(connection, tenant_id, instruction_id)
            present = store.find_attachment(connection, tenant_id, key)
            if present is None or present.instruction_id != instruction_id:
                raise CidNotAttached
            store.delete_attachment(connection, tenant_id, key)

        await self._db.write(detach)


def find_for_content(connection: Connection, tenant_id: str, cid: Cid) -> PaymentInstruction | None:
    """Return the instruction that must be paid for a private CID of the tenant, in any spelling."""
    return store.find_by_cid(connection, tenant_id, str(cid.v1()))


def _detach_deleted_file(connection: Connection, change: FileEvent, file: File, _before: File | None) -> None:
    """Detach the CID of a deleted private file, unless the tenant has it under another spelling."""
    if change is not FileEvent.DELETED or file.network is not ContentNetwork.PRIVATE:
        return
    cid = Cid.parse(file.cid)
    if find_by_cid(connection, file.tenant_id, file.network, cid) is None:
        store.delete_attachment(connection, file.tenant_id, str(cid.v1()))
