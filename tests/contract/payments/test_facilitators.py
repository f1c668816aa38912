"""Facilitators that fail or lie: the content is withheld, and no money is taken twice (I9)."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from roost.drivers.facilitator.contract import FacilitatorUnavailable, PaymentRequest, PaymentSettlement, Verification
from tests.chain.anvil import NETWORK
from tests.contract.payments.paid_content import (
    CONTENT,
    PRICE,
    FacilitatorServer,
    PaidContent,
    create_paid_content,
    receipt,
    required,
)
from tests.support.server import RunningServer

OTHER_ADDRESS = "0x1111111111111111111111111111111111111111"


async def test_a_facilitator_that_does_not_answer_a_check(
    paid_content: PaidContent, facilitator_server: FacilitatorServer
) -> None:
    async def fail(_request: PaymentRequest) -> None:
        raise FacilitatorUnavailable

    payment = await paid_content.pay(facilitator_server.account())
    facilitator_server.facilitator.on_verify = fail
    assert (await paid_content.get(payment)).status_code == 502
    assert (await paid_content.payments(), facilitator_server.facilitator.calls) == ([], ["verify"])
    facilitator_server.facilitator.on_verify = None
    assert (await paid_content.get(payment)).status_code == 200


async def test_a_facilitator_that_verifies_another_payer(
    paid_content: PaidContent, facilitator_server: FacilitatorServer
) -> None:
    async def lie(_request: PaymentRequest) -> Verification:
        return Verification(True, OTHER_ADDRESS)

    payment = await paid_content.pay(facilitator_server.account())
    facilitator_server.facilitator.on_verify = lie
    assert (await paid_content.get(payment)).status_code == 502
    assert facilitator_server.facilitator.calls == ["verify"]


LIES: dict[str, dict[str, Any]] = {
    "payer": {"payer": OTHER_ADDRESS},
    "network": {"network": "eip155:1"},
    "transaction": {"transaction": ""},
    "malformed transaction": {"transaction": "0x12"},
    "amount": {"amount": str(PRICE - 1)},
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("moves", [True, False])
async def test_a_facilitator_that_settles_something_else(
    paid_content: PaidContent, facilitator_server: FacilitatorServer, lie: str, *, moves: bool
) -> None:
    """The content is withheld; the same payment finds out later, and is taken once."""

    async def settle(request: PaymentRequest) -> PaymentSettlement:
        told = (
            facilitator_server.facilitator.move(request) if moves else PaymentSettlement(True, f"0x{1:064x}", NETWORK)
        )
        return replace(told, **LIES[lie])

    payer = facilitator_server.account(PRICE)
    payment = await paid_content.pay(payer)
    facilitator_server.facilitator.on_settle = settle
    answer = await paid_content.get(payment)
    assert (answer.status_code, CONTENT in answer.content) == (502, False)
    assert [row["state"] for row in await paid_content.payments()] == ["unknown"]
    facilitator_server.facilitator.on_settle = None
    assert (await paid_content.get(payment)).content == CONTENT
    assert [row["state"] for row in await paid_content.payments()] == ["settled"]
    assert facilitator_server.facilitator.balances[payer.address.lower()] == 0
    assert required(await paid_content.get(payment))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize("reason", ["", "settlement_pending", "transaction_failed", "nonce_already_used", None])
async def test_a_settlement_without_an_outcome(
    paid_content: PaidContent, facilitator_server: FacilitatorServer, version: int, *, moves: bool, reason: str | None
) -> None:
    async def settle(request: PaymentRequest) -> PaymentSettlement:
        if moves:
            facilitator_server.facilitator.move(request)
        if reason is None:
            raise FacilitatorUnavailable
        return PaymentSettlement(False, network=NETWORK, reason=reason)

    payer = facilitator_server.account(PRICE)
    payment = await paid_content.pay(payer, version)
    facilitator_server.facilitator.on_settle = settle
    for _ in range(2):
        answer = await paid_content.get(payment)
        assert (answer.status_code, CONTENT in answer.content, answer.headers["retry-after"]) == (503, False, "5")
    assert [row["state"] for row in await paid_content.payments()] == ["unknown"]
    facilitator_server.facilitator.on_settle = None
    answers = await asyncio.gather(*(paid_content.get(payment) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [402] * 7
    assert facilitator_server.facilitator.balances[payer.address.lower()] == 0
    assert facilitator_server.facilitator.calls == ["verify", "settle", "settle", "settle"]


async def test_a_facilitator_that_verifies_and_does_not_settle(
    paid_content: PaidContent, facilitator_server: FacilitatorServer
) -> None:
    async def refuse(_request: PaymentRequest) -> PaymentSettlement:
        return PaymentSettlement(False, network=NETWORK, reason="invalid_exact_evm_insufficient_balance")

    payer = facilitator_server.account(PRICE)
    payment = await paid_content.pay(payer)
    facilitator_server.facilitator.on_settle = refuse
    assert "insufficient_balance" in required(await paid_content.get(payment))["error"]
    facilitator_server.facilitator.on_settle = None
    assert "presented before" in required(await paid_content.get(payment))["error"]
    assert [row["state"] for row in await paid_content.payments()] == ["refused"]
    assert (await paid_content.get(await paid_content.pay(payer))).status_code == 200


async def test_an_open_payment_is_bound_to_its_content_and_signature(
    server: RunningServer, paid_content: PaidContent, facilitator_server: FacilitatorServer, tenant: str
) -> None:
    async def pend(_request: PaymentRequest) -> PaymentSettlement:
        return PaymentSettlement(False, network=NETWORK, reason="settlement_pending")

    other = await create_paid_content(server, tenant, data=b"another article")
    payment = await paid_content.pay(facilitator_server.account())
    facilitator_server.facilitator.on_settle = pend
    assert (await paid_content.get(payment)).status_code == 503
    facilitator_server.facilitator.on_settle = None
    assert "presented before" in required(await other.get(payment))["error"]
    forged = {**payment, "payload": {**payment["payload"], "signature": "0x" + "12" * 100}}
    assert "presented before" in required(await paid_content.get(forged))["error"]
    await paid_content.set_price(2 * PRICE)  # it was paid for at the earlier price
    assert (await paid_content.get(payment)).content == CONTENT


async def test_a_payment_is_settled_by_one_request_at_a_time(
    paid_content: PaidContent, facilitator_server: FacilitatorServer
) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def wait(_request: PaymentRequest) -> None:
        asked.set()
        await answered.wait()

    payment = await paid_content.pay(facilitator_server.account())
    facilitator_server.facilitator.on_settle = wait
    first = asyncio.create_task(paid_content.get(payment))
    await asyncio.wait_for(asked.wait(), 20)
    assert "being settled" in required(await paid_content.get(payment))["error"]
    assert [row["state"] for row in await paid_content.payments()] == ["settling"]
    answered.set()
    assert (await first).status_code == 200


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1)])
async def test_an_open_payment_may_come_in_the_form_of_the_other_version(
    paid_content: PaidContent, facilitator_server: FacilitatorServer, first: int, second: int
) -> None:
    async def pend(_request: PaymentRequest) -> PaymentSettlement:
        return PaymentSettlement(False, network=NETWORK, reason="settlement_pending")

    payment, other = (
        await paid_content.pay(facilitator_server.account(), first),
        await paid_content.pay(facilitator_server.account(), second),
    )
    facilitator_server.facilitator.on_settle = pend
    assert (await paid_content.get(payment)).status_code == 503
    facilitator_server.facilitator.on_settle = None
    answer = await paid_content.get({**other, "payload": payment["payload"]})
    assert (answer.content, receipt(answer, second)["success"]) == (CONTENT, True)
