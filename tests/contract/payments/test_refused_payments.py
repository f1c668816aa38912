"""Payments that open nothing: of another amount, asset, address, network, time or resource, changed, or used (I8)."""

import time
from typing import Any

import httpx2 as httpx
import pytest

from roost.drivers.facilitator.contract import PaymentRequest
from tests.chain.anvil import NETWORK, OLD_NETWORK
from tests.chain.payer import pay
from tests.contract.payments.paid_content import (
    CONTENT,
    PRICE,
    FacilitatorServer,
    PaidContent,
    create_paid_content,
    required,
)
from tests.support.server import RunningServer
from tests.support.wallet import LocalAccount

VERSIONS = pytest.mark.parametrize("version", [1, 2])


async def assert_refused(
    paid_content: PaidContent, facilitator_server: FacilitatorServer, answer: httpx.Response, *words: str
) -> None:
    """The answer is 402 with what must be paid, nothing was settled, and no payment is recorded."""
    asked = required(answer, 1)
    assert all(word in asked["error"] for word in words), asked["error"]
    assert required(answer, 2)["error"] == asked["error"]
    assert CONTENT not in answer.content
    assert "settle" not in facilitator_server.facilitator.calls
    assert await paid_content.payments() == []


OTHER_ASSET = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
OTHER_ADDRESS = "0x1111111111111111111111111111111111111111"


@pytest.mark.parametrize(
    ("version", "change"),
    [
        (2, {"amount": str(PRICE - 1)}),
        (2, {"amount": str(PRICE + 1)}),
        (2, {"network": "eip155:8453"}),
        (2, {"network": OLD_NETWORK}),
        (2, {"asset": OTHER_ASSET}),
        (2, {"payTo": OTHER_ADDRESS}),
        (2, {"maxTimeoutSeconds": 3600}),
        (2, {"extra": {"name": "USD Coin", "version": "2"}}),
        (1, {"maxAmountRequired": str(PRICE - 1)}),
        (1, {"network": "base"}),
        (1, {"asset": OTHER_ASSET}),
        (1, {"payTo": OTHER_ADDRESS}),
        (1, {"extra": {"name": "USD Coin", "version": "2"}}),
    ],
)
async def test_a_payment_for_something_else(
    paid_content: PaidContent, facilitator_server: FacilitatorServer, version: int, change: dict[str, Any]
) -> None:
    """The payer signs other terms than the instruction has."""
    (needed,) = required(await paid_content.get(), version)["accepts"]
    payment = await pay_for(facilitator_server.account(), {**needed, **change})
    await assert_refused(paid_content, facilitator_server, await paid_content.get(payment))
    assert facilitator_server.facilitator.calls == []


async def pay_for(payer: LocalAccount, needed: dict[str, Any]) -> dict[str, Any]:
    if needed.get("network") == OLD_NETWORK and "amount" in needed:  # the SDK signs for the chain that it names
        signed = await pay(payer, {**needed, "network": NETWORK})
        return {**signed, "accepted": needed}
    return await pay(payer, needed)


@VERSIONS
@pytest.mark.parametrize(
    "change",
    [
        {"value": str(PRICE - 1)},
        {"to": OTHER_ADDRESS},
        {"from": OTHER_ADDRESS},
        {"nonce": "0x" + "00" * 32},
        {"validBefore": "9999999999"},
        {"validAfter": "1"},
        {"signature": "0x" + "11" * 65},
        {"signature": "0x" + "00" * 65},
    ],
)
async def test_a_changed_payment(
    paid_content: PaidContent, facilitator_server: FacilitatorServer, version: int, change: dict[str, str]
) -> None:
    payment = await paid_content.pay(facilitator_server.account(), version)
    where = payment["payload"] if "signature" in change else payment["payload"]["authorization"]
    assert where.keys() >= change.keys()
    where |= change
    await assert_refused(paid_content, facilitator_server, await paid_content.get(payment))
    assert facilitator_server.facilitator.calls == []


async def test_terms_that_the_payer_changes_say_nothing(
    paid_content: PaidContent, facilitator_server: FacilitatorServer
) -> None:
    """`accepted` and the signature agree on a lower price, which is not that of the file."""
    (needed,) = required(await paid_content.get())["accepts"]
    payment = await pay_for(facilitator_server.account(), {**needed, "amount": "1"})
    payment["accepted"]["amount"] = str(PRICE)
    await assert_refused(paid_content, facilitator_server, await paid_content.get(payment), "signed transfer")


@pytest.mark.parametrize(("moved", "words"), [(-3600, "valid before"), (-55, "valid before"), (3600, "valid after")])
async def test_a_payment_out_of_its_time(
    paid_content: PaidContent,
    facilitator_server: FacilitatorServer,
    monkeypatch: pytest.MonkeyPatch,
    moved: int,
    words: str,
) -> None:
    payer, now = facilitator_server.account(), time.time()
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: now + moved + (660 if moved > 0 else 0))
        payment = await paid_content.pay(payer, 1)  # valid for a minute, and since ten
    await assert_refused(paid_content, facilitator_server, await paid_content.get(payment), words)


async def test_a_payment_for_another_resource(
    server: RunningServer, paid_content: PaidContent, facilitator_server: FacilitatorServer, tenant: str
) -> None:
    other = await create_paid_content(server, tenant, data=b"another article")
    payment = await paid_content.pay(facilitator_server.account())
    payment["resource"] = required(await other.get())["resource"]
    await assert_refused(
        paid_content, facilitator_server, await paid_content.get(payment), "another resource", paid_content.path
    )
    payment["resource"] = required(await paid_content.get())["resource"]
    assert (await paid_content.get(payment)).content == CONTENT


async def test_a_payment_opens_no_second_file(
    server: RunningServer, paid_content: PaidContent, facilitator_server: FacilitatorServer, tenant: str
) -> None:
    other = await create_paid_content(server, tenant, data=b"another article")
    payment = await paid_content.pay(facilitator_server.account())
    assert (await paid_content.get(payment)).status_code == 200
    assert "presented before" in required(await other.get(payment))["error"]


@pytest.mark.parametrize("part", ["from", "nonce", "signature", "asset", "payTo", "to"])
async def test_another_spelling_is_the_same_payment(
    paid_content: PaidContent, facilitator_server: FacilitatorServer, part: str
) -> None:
    payment = await paid_content.pay(facilitator_server.account())
    assert (await paid_content.get(payment)).status_code == 200
    for where in (payment["payload"]["authorization"], payment["payload"], payment["accepted"]):
        if part in where:
            where[part] = "0x" + where[part][2:].swapcase()
    assert "presented before" in required(await paid_content.get(payment))["error"]
    assert facilitator_server.facilitator.calls.count("settle") == 1


async def test_a_payment_in_the_form_of_the_other_version_is_the_same(
    paid_content: PaidContent, facilitator_server: FacilitatorServer
) -> None:
    new = await paid_content.pay(facilitator_server.account())
    old = {"x402Version": 1, "scheme": "exact", "network": OLD_NETWORK, "payload": new["payload"]}
    assert (await paid_content.get(new)).status_code == 200
    assert "presented before" in required(await paid_content.get(old))["error"]


@pytest.mark.parametrize(
    "header",
    [
        "x",
        "e30=",
        "W10=",
        "bnVsbA==",
        "MQ==",
        "!!!!",
        "eyJ4NDAyVmVyc2lvbiI6M30=",  # version 3
        "eyJ4NDAyVmVyc2lvbiI6MX0=",  # version 1, and nothing else
        "W1tb" * 4000,  # nested, and too long
        "W1tb" * 2000 + "W1tbWw==",
        "A" * 20_000,
    ],
)
async def test_a_malformed_payment(
    paid_content: PaidContent, facilitator_server: FacilitatorServer, header: str
) -> None:
    for name in ("PAYMENT-SIGNATURE", "X-PAYMENT"):
        answer = await paid_content.visitor.get(paid_content.path, headers={name: header})
        if answer.status_code != 431:  # the server's own limit of a header
            await assert_refused(paid_content, facilitator_server, answer)


@pytest.mark.parametrize(
    "change",
    [
        {"value": PRICE},
        {"value": "-1"},
        {"value": f"0{PRICE}"},
        {"value": f"{PRICE} "},
        {"value": "１"},  # noqa: RUF001 - a digit that is no ASCII
        {"validBefore": str(2**256)},
        {"nonce": "0x00"},
        {"from": None},
        {"to": "0x"},
    ],
)
async def test_a_malformed_authorization(
    paid_content: PaidContent, facilitator_server: FacilitatorServer, change: dict[str, Any]
) -> None:
    payment = await paid_content.pay(facilitator_server.account())
    payment["payload"]["authorization"] |= change
    await assert_refused(paid_content, facilitator_server, await paid_content.get(payment), "malformed")


async def test_a_payment_without_funds(paid_content: PaidContent, facilitator_server: FacilitatorServer) -> None:
    payment = await paid_content.pay(facilitator_server.account(PRICE - 1))
    await assert_refused(
        paid_content, facilitator_server, await paid_content.get(payment), "invalid_exact_evm_insufficient_balance"
    )


async def test_the_price_of_now_counts(paid_content: PaidContent, facilitator_server: FacilitatorServer) -> None:
    payer = facilitator_server.account()
    payment = await paid_content.pay(payer)
    await paid_content.set_price(2 * PRICE)
    answer = await paid_content.get(payment)
    await assert_refused(paid_content, facilitator_server, answer, "what is asked now")
    (needed,) = required(answer)["accepts"]
    assert (await paid_content.get(await pay_for(payer, needed))).content == CONTENT


async def test_a_price_that_changes_during_the_check(
    paid_content: PaidContent, facilitator_server: FacilitatorServer
) -> None:
    async def change_price(_request: PaymentRequest) -> None:
        await paid_content.set_price(2 * PRICE)

    payment = await paid_content.pay(facilitator_server.account())
    facilitator_server.facilitator.on_verify = change_price
    answer = await paid_content.get(payment)
    await assert_refused(paid_content, facilitator_server, answer, "has changed")
    assert required(answer)["accepts"][0]["amount"] == str(2 * PRICE)
