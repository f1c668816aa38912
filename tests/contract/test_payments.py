"""Paid content on storage gateways: what is asked, what is taken, and every payment that is not (I8, I9)."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import httpx2 as httpx
import pytest

from roost.drivers.facilitator.contract import PaymentRequest, Settlement, Verification
from roost.drivers.facilitator.fake import FakeFacilitator
from roost.storage.content.model import ContentNetwork
from tests.chain.payer import SELLER
from tests.conformance.facilitators import served_facilitator
from tests.contract.backing import Backing
from tests.contract.shop import (
    CONTENT,
    INSTRUCTIONS,
    NETWORK,
    OLD_NETWORK,
    PAYMENTS,
    PRICE,
    SEPOLIA,
    Shop,
    open_shop,
    receipt,
    required,
)
from tests.contract.storage import keep
from tests.server import RunningServer, running
from tests.wallet import Account, LocalAccount

ON_SERVICES = {"test_a_payment_serves_the_content_once", "test_of_parallel_uses_one_is_served"}
VERSIONS = pytest.mark.parametrize("version", [1, 2])


@dataclass
class Bank:
    """The facilitator of the server; `url` is where it is served."""

    facilitator: FakeFacilitator
    url: str

    def account(self, amount: int = 10 * PRICE) -> LocalAccount:
        account = Account.create()
        self.facilitator.balances[account.address.lower()] = amount
        return account


@pytest.fixture(scope="module")
async def opened_bank() -> AsyncIterator[Bank]:
    facilitator = FakeFacilitator()
    async with served_facilitator(facilitator) as url:
        yield Bank(facilitator, url)


@pytest.fixture
def bank(opened_bank: Bank) -> Bank:
    """Return the facilitator, honest and without memory of its calls."""
    fake = opened_bank.facilitator
    fake.on_verify = fake.on_settle = None
    fake.calls.clear()
    return opened_bank


@pytest.fixture(scope="module")
async def server(backing: Backing, opened_bank: Bank) -> AsyncIterator[RunningServer]:
    settings = {**backing.environment, "ROOST_FACILITATOR_URL": opened_bank.url}
    async with running(backing.folder, **settings) as server:
        yield server


@pytest.fixture
async def shop(server: RunningServer, tenant: str) -> Shop:
    return await open_shop(server, tenant)


async def test_what_must_be_paid(shop: Shop, bank: Bank) -> None:
    answer = await shop.get()
    assert answer.headers["cache-control"] == "no-store"
    url = f"{shop.visitor.headers['host'].join(('http://', ''))}{shop.path}"
    (old,) = required(answer, 1)["accepts"]
    assert required(answer, 1) == {"x402Version": 1, "error": "Payment is required", "accepts": [old]}
    common = {"scheme": "exact", "payTo": SELLER, "maxTimeoutSeconds": 60, "asset": SEPOLIA["asset"]}
    common["extra"] = {"name": "USDC", "version": "2"}
    described = {"resource": url, "description": "One read", "mimeType": "text/plain"}
    assert old == {**common, **described, "network": OLD_NETWORK, "maxAmountRequired": str(PRICE)}
    new = required(answer, 2)
    assert new["accepts"] == [{**common, "network": NETWORK, "amount": str(PRICE)}]
    assert (new["x402Version"], new["resource"]["url"], new["resource"]["mimeType"]) == (2, url, "text/plain")
    assert bank.facilitator.calls == []


@VERSIONS
async def test_a_payment_serves_the_content_once(shop: Shop, bank: Bank, version: int) -> None:
    payer = bank.account()
    before = bank.facilitator.balances[SELLER.lower()]
    payment = await shop.pay(payer, version)
    answer = await shop.get(payment)
    assert (answer.status_code, answer.content) == (200, CONTENT)
    assert answer.headers["cache-control"] == "private, no-cache"
    given = receipt(answer, version)
    assert given == {
        "success": True,
        "transaction": given["transaction"],
        "network": NETWORK if version == 2 else OLD_NETWORK,
        "payer": payer.address.lower(),
    }
    for _ in range(2):
        assert "presented before" in required(await shop.get(payment))["error"]
    assert bank.facilitator.balances[SELLER.lower()] == before + PRICE
    assert bank.facilitator.calls == ["verify", "settle"]
    (row,) = await shop.payments()
    assert (row["state"], row["transaction"], row["amount"]) == ("settled", given["transaction"], str(PRICE))


async def test_of_parallel_uses_one_is_served(shop: Shop, bank: Bank) -> None:
    payment = await shop.pay(bank.account())
    answers = await asyncio.gather(*(shop.get(payment) for _ in range(50)))
    assert sorted(answer.status_code for answer in answers) == [200] + [402] * 49
    assert bank.facilitator.calls.count("settle") == 1
