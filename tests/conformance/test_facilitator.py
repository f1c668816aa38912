"""What every facilitator promises; the real one settles on a chain of its own on loopback."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from roost.drivers.facilitator.contract import PaymentRequest
from tests.chain.anvil import Chain
from tests.chain.payer import SELLER, payment
from tests.conformance.facilitators import FacilitatorEnv, FakeFacilitatorEnv, chain_facilitator
from tests.support.wallet import Account, LocalAccount

PRICE = 10_000
VERSIONS = pytest.mark.parametrize("version", [1, 2])


@pytest.fixture(params=["fake", "x402"])
async def env(request: pytest.FixtureRequest) -> AsyncIterator[FacilitatorEnv]:
    if request.param == "fake":
        yield FakeFacilitatorEnv()
        return
    chain: Chain = request.getfixturevalue("chain")
    async with chain_facilitator(chain) as env:
        yield env


@pytest.fixture
def payer(env: FacilitatorEnv) -> LocalAccount:
    """Return an account with tokens for two payments."""
    account = Account.create()
    env.mint(account.address, 2 * PRICE)
    return account


@VERSIONS
async def test_a_payment_moves_its_amount_once(env: FacilitatorEnv, payer: LocalAccount, version: int) -> None:
    paid, before = await payment(payer, version), env.balance(SELLER)
    verified = await env.facilitator.verify(paid)
    assert (verified.is_valid, (verified.payer or "").lower()) == (True, payer.address.lower())
    assert env.balance(SELLER) == before
    settled = await env.facilitator.settle(paid)
    assert (settled.is_settled, settled.network) == (True, paid.requirements["network"])
    assert (settled.payer or "").lower() == payer.address.lower()
    assert len(settled.transaction) == 66
    assert (env.balance(SELLER), env.balance(payer.address)) == (before + PRICE, PRICE)
    assert (await env.facilitator.verify(paid)).is_valid is False
    assert (await env.facilitator.settle(paid)).transaction == settled.transaction
    assert (env.balance(SELLER), env.balance(payer.address)) == (before + PRICE, PRICE)


async def test_a_payment_settled_at_once_from_many_sides_moves_its_amount_once(
    env: FacilitatorEnv, payer: LocalAccount
) -> None:
    paid, before = await payment(payer, 2), env.balance(SELLER)
    answers = await asyncio.gather(*(env.facilitator.settle(paid) for _ in range(8)))
    assert any(answer.is_settled for answer in answers)
    assert len({answer.transaction for answer in answers if answer.is_settled}) == 1
    assert env.balance(SELLER) == before + PRICE


async def test_payments_of_one_payer_settle_side_by_side(env: FacilitatorEnv, payer: LocalAccount) -> None:
    before = env.balance(SELLER)
    paid = [await payment(payer, 2), await payment(payer, 1)]
    answers = await asyncio.gather(*map(env.facilitator.settle, paid))
    assert [answer.is_settled for answer in answers] == [True, True]
    assert env.balance(SELLER) == before + 2 * PRICE


def with_value(request: PaymentRequest, value: int) -> PaymentRequest:
    authorization = {**request.payload["payload"]["authorization"], "value": str(value)}
    signed = {**request.payload["payload"], "authorization": authorization}
    return replace(request, payload={**request.payload, "payload": signed})


def with_signature(request: PaymentRequest, signature: str) -> PaymentRequest:
    signed = {**request.payload["payload"], "signature": signature}
    return replace(request, payload={**request.payload, "payload": signed})


@VERSIONS
@pytest.mark.parametrize("change", ["value", "signature", "funds"])
async def test_a_payment_that_is_not_valid_moves_nothing(
    env: FacilitatorEnv, payer: LocalAccount, version: int, change: str
) -> None:
    amount = 3 * PRICE if change == "funds" else PRICE
    paid, before = await payment(payer, version, amount), env.balance(SELLER)
    if change == "value":
        paid = with_value(paid, PRICE - 1)
    elif change == "signature":
        paid = with_signature(paid, "0x1234")
    verified, settled = await env.facilitator.verify(paid), await env.facilitator.settle(paid)
    assert (verified.is_valid, settled.is_settled) == (False, False)
    assert verified.reason
    assert settled.reason
    assert settled.transaction == ""
    assert env.balance(SELLER) == before


async def test_calls_work_after_a_close(env: FacilitatorEnv, payer: LocalAccount) -> None:
    await env.facilitator.close()
    assert (await env.facilitator.verify(await payment(payer, 2))).is_valid
