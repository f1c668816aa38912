"""Payments over a facilitator in memory: claims, records, and what is left when an answer is lost."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest
from sqlalchemy import Connection

from roost.core import clock
from roost.core.db import Database
from roost.drivers.facilitator.contract import FacilitatorFailed, PaymentRequest, PaymentSettlement
from roost.drivers.facilitator.fake import FakeFacilitator
from roost.storage.content.model import ContentNetwork
from roost.storage.content.unixfs.cid import Cid
from roost.storage.files.service import FileService
from roost.storage.payments import store
from roost.storage.payments.forms import AnyPayment, parse_payment
from roost.storage.payments.instructions.model import PaymentAssets, PaymentInstructionUpdate, PaymentRequirement
from roost.storage.payments.instructions.service import PaymentInstructionService
from roost.storage.payments.model import (
    CLAIM_SECONDS,
    ContentNotForSale,
    InstructionChanged,
    NoPayableAsset,
    Payment,
    PaymentFilter,
    PaymentInProgress,
    PaymentOffer,
    PaymentRefused,
    PaymentState,
    PaymentsUnavailable,
    PaymentUnconfirmed,
    PaymentUsed,
)
from roost.storage.payments.service import PaymentService, VerifiedPayment
from tests.storage.payments.payer import ASSET, RESOURCE, SELLER, new_payer, payment_json, sign_transfer
from tests.storage.payments.test_forms import encode
from tests.storage.storage_env import StorageEnv
from tests.support.wallet import LocalAccount

PRICE = PaymentRequirement(ASSET.address, SELLER, "base-sepolia", "10000")


@dataclass
class PaymentEnv:
    payments: PaymentService
    instructions: PaymentInstructionService
    facilitator: FakeFacilitator
    tenant_id: str
    cid: Cid
    instruction_id: str

    async def verify(self, payment: AnyPayment, cid: Cid | None = None) -> VerifiedPayment:
        offer = await self.payments.get_offer(self.tenant_id, cid or self.cid)
        return await self.payments.verify(offer, payment, RESOURCE)

    async def take(self, payment: AnyPayment) -> Payment:
        return await self.payments.settle(await self.verify(payment))

    async def states(self) -> Sequence[PaymentState]:
        page, _ = await self.payments.list(self.tenant_id, PaymentFilter(), None, 10)
        return [payment.state for payment in page]

    def pay(self, amount: int = 10_000, nonce: str = "0x" + "ab" * 32) -> AnyPayment:
        """Return a payment of a new account with tokens."""
        payer: LocalAccount = new_payer()
        self.facilitator.balances[payer.address.lower()] = amount
        return parse_payment(encode(payment_json(sign_transfer(payer, nonce=nonce))))


@pytest.fixture
async def payment_env(env: StorageEnv, database: Database) -> PaymentEnv:
    instructions = PaymentInstructionService(database, FileService(database), PaymentAssets())
    facilitator = FakeFacilitator()
    payments = PaymentService(database, PaymentAssets(), facilitator)
    made = await instructions.create(env.tenant_id, "articles", [PRICE])
    cid = (await env.file(b"article", network=ContentNetwork.PRIVATE)).cid
    await instructions.attach_cid(env.tenant_id, made.id, cid)
    return PaymentEnv(payments, instructions, facilitator, env.tenant_id, Cid.parse(cid), made.id)


async def test_offer_has_the_terms_of_the_instruction(
    payment_env: PaymentEnv, env: StorageEnv, database: Database
) -> None:
    offer = await payment_env.payments.get_offer(payment_env.tenant_id, payment_env.cid)
    (terms,) = offer.terms
    assert (offer.instruction_id, offer.instruction_version, terms.amount) == (payment_env.instruction_id, 1, 10_000)
    assert terms.asset == ASSET
    with pytest.raises(ContentNotForSale):
        await payment_env.payments.get_offer(env.other_id, payment_env.cid)
    without = PaymentService(database, PaymentAssets(), None)
    with pytest.raises(PaymentsUnavailable):
        await without.get_offer(payment_env.tenant_id, payment_env.cid)
    with pytest.raises(ContentNotForSale):
        await without.get_offer(env.other_id, payment_env.cid)


async def test_an_asset_that_is_no_longer_configured(payment_env: PaymentEnv, database: Database) -> None:
    class Fewer(PaymentAssets):
        def find_asset(self, network: str, address: str) -> None: ...

    payment = payment_env.pay()
    verified = await payment_env.verify(payment)
    payment_env.facilitator.on_settle = lose_answer
    with pytest.raises(PaymentUnconfirmed):
        await payment_env.payments.settle(verified)
    fewer = PaymentService(database, Fewer(), payment_env.facilitator)
    with pytest.raises(NoPayableAsset):
        await fewer.get_offer(payment_env.tenant_id, payment_env.cid)
    with pytest.raises(PaymentUsed):
        await fewer.verify(verified.offer, payment, RESOURCE)


async def lose_answer(_request: PaymentRequest) -> PaymentSettlement:
    raise FacilitatorFailed


async def test_a_settled_payment(payment_env: PaymentEnv) -> None:
    payment = payment_env.pay()
    taken = await payment_env.take(payment)
    assert (taken.state, taken.amount, taken.cid) == (PaymentState.SETTLED, "10000", str(payment_env.cid.v1()))
    assert (taken.network, taken.asset, taken.pay_to) == ("eip155:84532", ASSET.address.lower(), SELLER.lower())
    with pytest.raises(PaymentUsed):
        await payment_env.verify(payment)
    assert payment_env.facilitator.calls == ["verify", "settle"]
    (total,) = await payment_env.payments.totals(payment_env.tenant_id)
    assert (total.count, total.amount, total.instruction_id) == (1, 10_000, payment_env.instruction_id)


async def test_one_of_many_that_were_verified_settles(payment_env: PaymentEnv) -> None:
    payment = payment_env.pay()
    verified = [await payment_env.verify(payment) for _ in range(10)]
    results = await asyncio.gather(*map(payment_env.payments.settle, verified), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["Payment"] + ["PaymentUsed"] * 9
    assert payment_env.facilitator.calls.count("settle") == 1


@pytest.mark.parametrize("change", ["update", "detach"])
async def test_an_instruction_that_changes_after_the_check(payment_env: PaymentEnv, change: str) -> None:
    verified = await payment_env.verify(payment_env.pay())
    if change == "update":
        await payment_env.instructions.update(
            payment_env.tenant_id, payment_env.instruction_id, PaymentInstructionUpdate(name="new")
        )
    else:
        await payment_env.instructions.detach_cid(
            payment_env.tenant_id, payment_env.instruction_id, str(payment_env.cid)
        )
    with pytest.raises(InstructionChanged):
        await payment_env.payments.settle(verified)
    assert "settle" not in payment_env.facilitator.calls
    assert await payment_env.states() == []


async def test_an_open_payment_has_one_claim_at_a_time(payment_env: PaymentEnv) -> None:
    payment = payment_env.pay()
    payment_env.facilitator.on_settle = lose_answer
    with pytest.raises(PaymentUnconfirmed):
        await payment_env.take(payment)
    payment_env.facilitator.on_settle = None
    again = [await payment_env.verify(payment) for _ in range(10)]
    results = await asyncio.gather(*map(payment_env.payments.settle, again), return_exceptions=True)
    assert sorted(type(result).__name__ for result in results) == ["Payment"] + ["PaymentInProgress"] * 9
    assert payment_env.facilitator.calls == ["verify", "settle", "settle"]
    assert await payment_env.states() == [PaymentState.SETTLED]


async def test_a_claim_that_ended_without_a_record(payment_env: PaymentEnv, monkeypatch: pytest.MonkeyPatch) -> None:
    """The request is cancelled, as by the end of its server, after the money has moved."""
    payment, asked = payment_env.pay(), asyncio.Event()

    async def move_and_hang(request: PaymentRequest) -> None:
        payment_env.facilitator.move(request)
        asked.set()
        await asyncio.Event().wait()

    payment_env.facilitator.on_settle = move_and_hang
    first = asyncio.create_task(payment_env.take(payment))
    await asyncio.wait_for(asked.wait(), 10)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    payment_env.facilitator.on_settle = None
    with pytest.raises(PaymentInProgress):
        await payment_env.verify(payment)
    later = clock.utc_now() + timedelta(seconds=CLAIM_SECONDS)
    monkeypatch.setattr(clock, "utc_now", lambda: later)
    assert (await payment_env.take(payment)).state is PaymentState.SETTLED
    assert payment_env.facilitator.balances[SELLER.lower()] == 10_000


async def test_a_request_that_lost_its_claim_records_nothing(payment_env: PaymentEnv, database: Database) -> None:
    """It was suspended for longer than its claim; the content is served by the request that took the claim over."""
    payment = payment_env.pay()
    verified = await payment_env.verify(payment)

    async def take_over(_request: PaymentRequest) -> None:
        payment_env.facilitator.on_settle = None

        def claim(connection: Connection) -> bool:
            row = store.find_payment(connection, verified.transfer.payer, verified.transfer.nonce)
            assert row is not None
            now = row.claimed_until
            return store.claim_payment(connection, row, now, now)

        assert await database.write(claim)

    payment_env.facilitator.on_settle = take_over
    with pytest.raises(PaymentInProgress):
        await payment_env.payments.settle(verified)
    assert await payment_env.states() == [PaymentState.SETTLING]


async def test_after_a_lost_answer_a_refusal_is_not_definite(payment_env: PaymentEnv) -> None:
    payment = payment_env.pay()

    async def refuse(_request: PaymentRequest) -> PaymentSettlement:
        return PaymentSettlement(False, network="base-sepolia", reason="insufficient_funds")

    payment_env.facilitator.on_settle = lose_answer
    with pytest.raises(PaymentUnconfirmed):
        await payment_env.take(payment)
    payment_env.facilitator.on_settle = refuse
    with pytest.raises(PaymentUnconfirmed, match="ask the seller about payment"):
        await payment_env.take(payment)
    assert await payment_env.states() == [PaymentState.UNKNOWN]
    payment_env.facilitator.on_settle = None
    assert (await payment_env.take(payment)).attempt == 3


async def test_a_settlement_that_succeeds_and_names_an_error_is_unknown(payment_env: PaymentEnv) -> None:
    async def contradict(_request: PaymentRequest) -> PaymentSettlement:
        return PaymentSettlement(True, network="base-sepolia", reason="insufficient_funds")

    payment_env.facilitator.on_settle = contradict
    with pytest.raises(PaymentUnconfirmed):
        await payment_env.take(payment_env.pay())
    assert await payment_env.states() == [PaymentState.UNKNOWN]


async def test_an_open_payment_needs_no_check_of_its_time(
    payment_env: PaymentEnv, monkeypatch: pytest.MonkeyPatch
) -> None:
    payer = new_payer()
    payment_env.facilitator.balances[payer.address.lower()] = 10_000
    before = int(clock.utc_now().timestamp()) + 60
    payment = parse_payment(encode(payment_json(sign_transfer(payer, valid_before=before))))
    payment_env.facilitator.on_settle = lose_answer
    with pytest.raises(PaymentUnconfirmed):
        await payment_env.take(payment)
    payment_env.facilitator.on_settle = None
    later = clock.utc_now() + timedelta(hours=1)
    monkeypatch.setattr(clock, "utc_now", lambda: later)
    assert (await payment_env.take(payment)).state is PaymentState.SETTLED


async def test_other_content_and_other_signatures_open_nothing(payment_env: PaymentEnv, env: StorageEnv) -> None:
    payment = payment_env.pay()
    payment_env.facilitator.on_settle = lose_answer
    with pytest.raises(PaymentUnconfirmed):
        await payment_env.take(payment)
    other = Cid.parse((await env.file(b"another", network=ContentNetwork.PRIVATE)).cid)
    await payment_env.instructions.attach_cid(payment_env.tenant_id, payment_env.instruction_id, str(other))
    with pytest.raises(PaymentUsed):
        await payment_env.verify(payment, other)
    offer: PaymentOffer = await payment_env.payments.get_offer(payment_env.tenant_id, payment_env.cid)
    with pytest.raises(PaymentUsed):
        await payment_env.payments.verify(replace(offer, tenant_id=env.other_id), payment, RESOURCE)


async def test_pages_and_sums(payment_env: PaymentEnv) -> None:
    for number in range(3):
        await payment_env.take(payment_env.pay(nonce=f"0x{number:064x}"))
    with pytest.raises(PaymentRefused):
        await payment_env.take(payment_env.pay(amount=1))
    first, token = await payment_env.payments.list(
        payment_env.tenant_id, PaymentFilter(cid=str(payment_env.cid)), None, 2
    )
    rest, end = await payment_env.payments.list(payment_env.tenant_id, PaymentFilter(), token, 2)
    assert [int(payment.nonce, 16) for payment in (*first, *rest)] == [2, 1, 0]
    assert end is None
    wanted = PaymentFilter(state=PaymentState.UNKNOWN)
    assert (await payment_env.payments.list(payment_env.tenant_id, wanted, None, 2))[0] == []
