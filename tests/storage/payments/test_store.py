"""Rows of payments: one for each transfer, and sums beyond 64 bits."""

from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import Connection

from roost.core import clock
from roost.core.db import Database
from roost.storage.payments import store
from roost.storage.payments.instructions import store as instructions
from roost.storage.payments.instructions.model import PaymentInstruction
from roost.storage.payments.model import Payment, PaymentState
from tests.storage.storage_env import StorageEnv

MINUTE = timedelta(minutes=1)


def a_payment(env: StorageEnv, database: Database) -> Payment:
    now = clock.utc_now()
    instruction = PaymentInstruction("i1", env.tenant_id, 1, (), "n", "", now, now)
    database.run(lambda connection: instructions.insert_instruction(connection, instruction))
    return Payment(
        id="p1",
        tenant_id=env.tenant_id,
        instruction_id="i1",
        instruction_version=1,
        cid="c",
        network="eip155:1",
        asset="0xa",
        payer="0xb",
        nonce="0xc",
        pay_to="0xd",
        amount=str(2**256 - 1),
        digest="d",
        state=PaymentState.SETTLING,
        attempt=1,
        claimed_until=now + MINUTE,
        created_at=now,
        updated_at=now,
    )


def test_a_transfer_has_one_row(env: StorageEnv, database: Database) -> None:
    payment = a_payment(env, database)

    def insert(row: Payment) -> bool:
        return database.run(lambda connection: store.insert_payment(connection, row))

    assert insert(payment)
    assert not insert(replace(payment, id="p2"))
    assert not insert(replace(payment, id="p2", tenant_id=env.other_id, cid="other", amount="1"))
    for number, change in enumerate(("network", "asset", "payer", "nonce")):
        assert insert(replace(payment, id=f"q{number}", **{change: "0xe"}))
    assert database.run(lambda connection: store.find_payment(connection, "0xb", "0xc")) is not None


def test_claims_are_exclusive_and_expire(env: StorageEnv, database: Database) -> None:
    payment = a_payment(env, database)
    now, later = payment.created_at, payment.claimed_until
    database.run(lambda connection: store.insert_payment(connection, payment))

    def claim(row: Payment, at: datetime) -> bool:
        return database.run(lambda connection: store.claim_payment(connection, row, at, later + MINUTE))

    def record(row: Payment, state: PaymentState) -> bool:
        return database.run(lambda connection: store.record_outcome(connection, replace(row, state=state), later))

    assert not claim(payment, now)
    assert claim(payment, later)
    assert not claim(payment, later)
    assert not record(payment, PaymentState.SETTLED)  # of the claim before
    second = replace(payment, attempt=2)
    assert record(second, PaymentState.UNKNOWN)
    assert not record(second, PaymentState.SETTLED)
    assert claim(second, later)
    third = replace(payment, attempt=3)
    assert record(third, PaymentState.SETTLED)
    assert not claim(third, later + 2 * MINUTE)


def test_sums_are_exact(env: StorageEnv, database: Database) -> None:
    payment = replace(a_payment(env, database), state=PaymentState.SETTLED)

    def insert_all(connection: Connection) -> None:
        for number, (state, amount) in enumerate(
            [
                (PaymentState.SETTLED, payment.amount),
                (PaymentState.SETTLED, payment.amount),
                (PaymentState.SETTLED, "1"),
                (PaymentState.REFUSED, "5"),
                (PaymentState.UNKNOWN, "7"),
            ]
        ):
            row = replace(payment, id=f"p{number}", nonce=f"0x{number}", state=state, amount=amount)
            store.insert_payment(connection, row)

    database.run(insert_all)
    (total,) = database.run(lambda connection: store.sum_payments(connection, env.tenant_id))
    assert (total.count, total.amount) == (3, 2 * (2**256 - 1) + 1)
    assert database.run(lambda connection: store.sum_payments(connection, env.other_id)) == []
