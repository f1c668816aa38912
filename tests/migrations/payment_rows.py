"""Rows of the revisions of payments."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.migrations.row_values import OTHER, TENANT, THEN, Row
from tests.migrations.storage_rows import CID, LONG_ESCAPED


def _instruction(name: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {
        "id": name,
        "tenant_id": TENANT,
        "version": 1,
        "payment_requirements": f"[{_requirement()}]",
        "name": name,
        "description": "",
        "created_at": THEN,
        "updated_at": THEN,
        "deleted_at": None,
    }
    return "payment_instructions", row | more


def _requirement(amount: str = "10000", description: str = "") -> str:
    return (
        f'{{"asset":"0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913","pay_to":"0x{"ab" * 20}","network":"base",'
        f'"amount":"{amount}","description":"{description}"}}'
    )


def _attached_cid(name: str, instruction: str, cid: str, tenant: str = TENANT) -> Row:
    row = {
        "id": name,
        "tenant_id": tenant,
        "instruction_id": instruction,
        "cid": cid,
        "file_cid": cid,
        "created_at": THEN,
    }
    return "payment_instruction_cids", row


def _payment(name: str, /, **more: Any) -> Row:
    row: dict[str, Any] = {
        "id": name,
        "tenant_id": TENANT,
        "instruction_id": "pi1",
        "instruction_version": 1,
        "cid": CID,
        "network": "eip155:8453",
        "asset": f"0x{'a5' * 20}",
        "payer": f"0x{'b6' * 20}",
        "nonce": f"0x{name.encode().hex():0>64}",
        "pay_to": f"0x{'c7' * 20}",
        "amount": "10000",
        "digest": "d" * 64,
        "state": "settled",
        "attempt": 1,
        "claimed_until": THEN,
        "transaction_hash": f"0x{'e8' * 32}",
        "reason": None,
        "created_at": THEN,
        "updated_at": THEN,
    }
    return "payments", row | more


ROWS: Mapping[str, Sequence[Row]] = {
    "0037": [
        _instruction("pi1"),
        _instruction(
            "pi2",
            version=2**31 - 1,
            name="n" * 255,
            description="ß" * 1000,
            payment_requirements=f"[{_requirement()},{_requirement(str(2**256 - 1), LONG_ESCAPED)}]",
            created_at=THEN + 1,
        ),
        _instruction("pi3", deleted_at=THEN, created_at=THEN + 2),
        _instruction("pi4", tenant_id=OTHER),
        _attached_cid("pc1", "pi1", CID),
        _attached_cid("pc2", "pi4", CID, OTHER),
    ],
    "0038": [
        _payment("pay1"),
        _payment("pay2", amount=str(2**256 - 1), created_at=THEN + 1),
        _payment("pay3", state="unknown", transaction_hash=None, reason="ß" * 200, created_at=THEN + 2),
        _payment("pay4", state="settling", transaction_hash=None, claimed_until=THEN + 30, created_at=THEN + 3),
        _payment("pay5", state="refused", attempt=2**31 - 1, transaction_hash="x" * 100, created_at=THEN + 4),
        _payment("pay6", tenant_id=OTHER, instruction_id="pi4"),
    ],
}
