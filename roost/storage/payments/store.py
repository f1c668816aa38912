"""Table and SQL of payments."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Connection

from roost.core.db import UtcTime, insert_or_ignore, metadata, page_by_creation, read_one, read_record, record_values
from roost.core.page_cursor import PageCursor
from roost.storage.payments.model import OPEN_STATES, Payment, PaymentFilter, PaymentState, PaymentTotal

payments = sa.Table(
    "payments",
    metadata,
    sa.Column("id", sa.String(36), primary_key=True),
    sa.Column("tenant_id", sa.String(36), sa.ForeignKey("tenants.id"), nullable=False),
    sa.Column("instruction_id", sa.String(36), sa.ForeignKey("payment_instructions.id"), nullable=False),
    sa.Column("instruction_version", sa.Integer, nullable=False),
    sa.Column("cid", sa.String(128), nullable=False),
    sa.Column("network", sa.String(64), nullable=False),
    sa.Column("asset", sa.String(42), nullable=False),
    sa.Column("payer", sa.String(42), nullable=False),
    sa.Column("nonce", sa.String(66), nullable=False),
    sa.Column("pay_to", sa.String(42), nullable=False),
    sa.Column("amount", sa.String(78), nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("state", sa.String(8), nullable=False),
    sa.Column("attempt", sa.Integer, nullable=False),
    sa.Column("claimed_until", UtcTime, nullable=False),
    sa.Column("transaction_hash", sa.String(100)),
    sa.Column("reason", sa.String(200)),
    sa.Column("created_at", UtcTime, nullable=False),
    sa.Column("updated_at", UtcTime, nullable=False),
    sa.UniqueConstraint("network", "asset", "payer", "nonce"),
    sa.Index("ix_payments_tenant_id_created_at_id", "tenant_id", "created_at", "id"),
    sa.Index("ix_payments_payer_nonce", "payer", "nonce"),
)
_p = payments.c


def insert_payment(connection: Connection, payment: Payment) -> bool:
    """Insert a payment unless its transfer was presented before; return whether it was inserted."""
    return insert_or_ignore(connection, payments.insert().values(record_values(payments, payment)))


def find_payment(connection: Connection, payer: str, nonce: str) -> Payment | None:
    """Find the payment of a transfer on any network and in any asset, of any tenant."""
    return read_one(connection, payments.select().where(_p.payer == payer, _p.nonce == nonce), _payment)


def claim_payment(connection: Connection, payment: Payment, now: datetime, until: datetime) -> bool:
    """Claim an open payment whose last claim has ended; return whether this call did."""
    free = (_p.id == payment.id, _p.attempt == payment.attempt, _p.state.in_(OPEN_STATES), _p.claimed_until <= now)
    claim = {
        "state": PaymentState.SETTLING,
        "attempt": payment.attempt + 1,
        "claimed_until": until,
        "updated_at": now,
    }
    return connection.execute(payments.update().where(*free).values(claim)).rowcount == 1


def record_outcome(connection: Connection, payment: Payment, now: datetime) -> bool:
    """Write what became of a claimed payment and end the claim; return False if another request has claimed it."""
    mine = (_p.id == payment.id, _p.attempt == payment.attempt, _p.state == PaymentState.SETTLING)
    outcome = {
        "state": payment.state,
        "transaction_hash": payment.transaction_hash,
        "reason": payment.reason,
        "claimed_until": now,
        "updated_at": now,
    }
    return connection.execute(payments.update().where(*mine).values(outcome)).rowcount == 1


def list_payments(
    connection: Connection, tenant_id: str, wanted: PaymentFilter, after: PageCursor | None, limit: int
) -> Sequence[Payment]:
    """List payments that match the filter, newest first, after the cursor `after`."""
    query = payments.select().where(_p.tenant_id == tenant_id)
    for column, value in (
        (_p.instruction_id, wanted.instruction_id),
        (_p.cid, wanted.cid),
        (_p.state, wanted.state),
    ):
        if value is not None:
            query = query.where(column == value)
    ordered = page_by_creation(query, _p.created_at, _p.id, after)
    return [_payment(row) for row in connection.execute(ordered.limit(limit))]


def sum_payments(connection: Connection, tenant_id: str) -> Sequence[PaymentTotal]:
    """Sum the settled payments of a tenant by instruction and asset; an amount has up to 78 digits."""
    key = (_p.instruction_id, _p.network, _p.asset)
    query = (
        sa.select(*key, _p.amount, sa.func.count())
        .where(_p.tenant_id == tenant_id, _p.state == PaymentState.SETTLED)
        .group_by(*key, _p.amount)
    )
    counts, amounts = Counter[tuple[str, str, str]](), Counter[tuple[str, str, str]]()
    for instruction_id, network, asset, amount, count in connection.execute(query):
        total = (instruction_id, network, asset)
        counts[total] += count
        amounts[total] += count * int(amount)
    return [PaymentTotal(*total, counts[total], amounts[total]) for total in sorted(counts)]


def _payment(row: Any) -> Payment:
    return read_record(Payment, row, state=PaymentState(row.state))
