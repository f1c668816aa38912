"""What every facilitator promises; the real one settles on a chain of its own on loopback."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from roost.drivers.facilitator.contract import PaymentRequest
from tests.chain.anvil import Chain
from tests.chain.payer import SELLER, payment
from tests.conformance.facilitators import FakeMarket, Market, chain_market
from tests.support.wallet import Account, LocalAccount

PRICE = 10_000
VERSIONS = pytest.mark.parametrize("version", [1, 2])


@pytest.fixture(params=["fake", "x402"])
async def market(request: pytest.FixtureRequest) -> AsyncIterator[Market]:
    if request.param == "fake":
        yield FakeMarket()
        return
    chain: Chain = request.getfixturevalue("chain")
    async with chain_market(chain) as market:
        yield market


@pytest.fixture
def payer(market: Market) -> LocalAccount:
    """Return an account with tokens for two payments."""
    account = Account.create()
    market.mint(account.address, 2 * PRICE)
    return account


@VERSIONS
async def test_a_payment_moves_its_amount_once(market: Market, payer: LocalAccount, version: int) -> None:
    paid, before = await payment(payer, version), market.balance(SELLER)
    verified = await market.facilitator.verify(paid)
    assert (verified.is_valid, (verified.payer or "").lower()) == (True, payer.address.lower())
    assert market.balance(SELLER) == before
    settled = await market.facilitator.settle(paid)
    assert (settled.is_settled, settled.network) == (True, paid.requirements["network"])
    assert (settled.payer or "").lower() == payer.address.lower()
    assert len(settled.transaction) == 66
    assert (market.balance(SELLER), market.balance(payer.address)) == (before + PRICE, PRICE)
    assert (await market.facilitator.verify(paid)).is_valid is False
    assert (await market.facilitator.settle(paid)).transaction == settled.transaction
    assert (market.balance(SELLER), market.balance(payer.address)) == (before + PRICE, PRICE)


async def test_a_payment_settled_at_once_from_many_sides_moves_its_amount_once(
    market: Market, payer: LocalAccount
) -> None:
    paid, before = await payment(payer, 2), market.balance(SELLER)
    answers = await asyncio.gather(*(market.facilitator.settle(paid) for _ in range(8)))
    assert any(answer.is_settled for answer in answers)
    assert len({answer.transaction for answer in answers if answer.is_settled}) == 1
    assert market.balance(SELLER) == before + PRICE


async def test_payments_of_one_payer_settle_side_by_side(market: Market, payer: LocalAccount) -> None:
    before = market.balance(SELLER)
    paid = [await payment(payer, 2), await payment(payer, 1)]
    answers = await asyncio.gather(*map(market.facilitator.settle, paid))
    assert [answer.is_settled for answer in answers] == [True, True]
    assert market.balance(SELLER) == before + 2 * PRICE


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
    market: Market, payer: LocalAccount, version: int, change: str
) -> None:
    amount = 3 * PRICE if change == "funds" else PRICE
    paid, before = await payment(payer, version, amount), market.balance(SELLER)
    if change == "value":
        paid = with_value(paid, PRICE - 1)
    elif change == "signature":
        paid = with_signature(paid, "0x1234")
    verified, settled = await market.facilitator.verify(paid), await market.facilitator.settle(paid)
    assert (verified.is_valid, settled.is_settled) == (False, False)
    assert verified.reason
    assert settled.reason
    assert settled.transaction == ""
    assert market.balance(SELLER) == before


async def test_calls_work_after_a_close(market: Market, payer: LocalAccount) -> None:
    await market.facilitator.close()
    assert (await market.facilitator.verify(await payment(payer, 2))).is_valid
