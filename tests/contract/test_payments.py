"""Paid content on storage gateways: what is asked, what is taken, and every payment that is not (I8, I9)."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import httpx2 as httpx
import pytest

from roost.drivers.facilitator.contract import FacilitatorUnavailable, PaymentRequest, Settlement, Verification
from roost.drivers.facilitator.fake import FakeFacilitator
from roost.storage.content.model import ContentNetwork
from tests.chain.payer import SELLER, pay
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
        "payer": payer.address,
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


async def assert_refused(shop: Shop, bank: Bank, answer: httpx.Response, *words: str) -> None:
    """The answer is 402 with what must be paid, nothing was settled, and no payment is recorded."""
    asked = required(answer, 1)
    assert all(word in asked["error"] for word in words), asked["error"]
    assert required(answer, 2)["error"] == asked["error"]
    assert CONTENT not in answer.content
    assert "settle" not in bank.facilitator.calls
    assert await shop.payments() == []


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
async def test_a_payment_for_something_else(shop: Shop, bank: Bank, version: int, change: dict[str, Any]) -> None:
    """The payer signs what it is told, but that is not what is asked for here."""
    (needed,) = required(await shop.get(), version)["accepts"]
    payment = await pay_for(bank.account(), {**needed, **change})
    await assert_refused(shop, bank, await shop.get(payment))
    assert bank.facilitator.calls == []


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
async def test_a_changed_payment(shop: Shop, bank: Bank, version: int, change: dict[str, str]) -> None:
    payment = await shop.pay(bank.account(), version)
    where = payment["payload"] if "signature" in change else payment["payload"]["authorization"]
    assert where.keys() >= change.keys()
    where |= change
    await assert_refused(shop, bank, await shop.get(payment))
    assert bank.facilitator.calls == []


async def test_terms_that_the_payer_changes_say_nothing(shop: Shop, bank: Bank) -> None:
    """`accepted` and the signature agree on a lower price, which is not that of the file."""
    (needed,) = required(await shop.get())["accepts"]
    payment = await pay_for(bank.account(), {**needed, "amount": "1"})
    payment["accepted"]["amount"] = str(PRICE)
    await assert_refused(shop, bank, await shop.get(payment), "signed transfer")


@pytest.mark.parametrize(("moved", "words"), [(-3600, "valid before"), (-55, "valid before"), (3600, "valid after")])
async def test_a_payment_out_of_its_time(
    shop: Shop, bank: Bank, monkeypatch: pytest.MonkeyPatch, moved: int, words: str
) -> None:
    payer, now = bank.account(), time.time()
    with monkeypatch.context() as patched:
        patched.setattr(time, "time", lambda: now + moved + (660 if moved > 0 else 0))
        payment = await shop.pay(payer, 1)  # valid for a minute, and since ten
    await assert_refused(shop, bank, await shop.get(payment), words)


async def test_a_payment_for_another_resource(server: RunningServer, shop: Shop, bank: Bank, tenant: str) -> None:
    other = await open_shop(server, tenant, data=b"another article")
    payment = await shop.pay(bank.account())
    payment["resource"] = required(await other.get())["resource"]
    await assert_refused(shop, bank, await shop.get(payment), "another resource", shop.path)
    payment["resource"] = required(await shop.get())["resource"]
    assert (await shop.get(payment)).content == CONTENT


async def test_a_payment_opens_no_second_file(server: RunningServer, shop: Shop, bank: Bank, tenant: str) -> None:
    other = await open_shop(server, tenant, data=b"another article")
    payment = await shop.pay(bank.account())
    assert (await shop.get(payment)).status_code == 200
    assert "presented before" in required(await other.get(payment))["error"]


@pytest.mark.parametrize("part", ["from", "nonce", "signature", "asset", "payTo", "to"])
async def test_another_spelling_is_the_same_payment(shop: Shop, bank: Bank, part: str) -> None:
    payment = await shop.pay(bank.account())
    assert (await shop.get(payment)).status_code == 200
    for where in (payment["payload"]["authorization"], payment["payload"], payment["accepted"]):
        if part in where:
            where[part] = "0x" + where[part][2:].swapcase()
    assert "presented before" in required(await shop.get(payment))["error"]
    assert bank.facilitator.calls.count("settle") == 1


async def test_a_payment_in_the_form_of_the_other_version_is_the_same(shop: Shop, bank: Bank) -> None:
    new = await shop.pay(bank.account())
    old = {"x402Version": 1, "scheme": "exact", "network": OLD_NETWORK, "payload": new["payload"]}
    assert (await shop.get(new)).status_code == 200
    assert "presented before" in required(await shop.get(old))["error"]


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
async def test_a_malformed_payment(shop: Shop, bank: Bank, header: str) -> None:
    for name in ("PAYMENT-SIGNATURE", "X-PAYMENT"):
        answer = await shop.visitor.get(shop.path, headers={name: header})
        if answer.status_code != 431:  # the server's own limit of a header
            await assert_refused(shop, bank, answer)


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
async def test_a_malformed_authorization(shop: Shop, bank: Bank, change: dict[str, Any]) -> None:
    payment = await shop.pay(bank.account())
    payment["payload"]["authorization"] |= change
    await assert_refused(shop, bank, await shop.get(payment), "malformed")


async def test_a_payment_without_funds(shop: Shop, bank: Bank) -> None:
    payment = await shop.pay(bank.account(PRICE - 1))
    await assert_refused(shop, bank, await shop.get(payment), "invalid_exact_evm_insufficient_balance")


async def test_the_price_of_now_counts(shop: Shop, bank: Bank) -> None:
    payer = bank.account()
    payment = await shop.pay(payer)
    await set_price(shop, 2 * PRICE)
    answer = await shop.get(payment)
    await assert_refused(shop, bank, answer, "what is asked now")
    (needed,) = required(answer)["accepts"]
    assert (await shop.get(await pay_for(payer, needed))).content == CONTENT


async def set_price(shop: Shop, amount: int) -> None:
    body = {"payment_requirements": [{**SEPOLIA, "amount": str(amount)}]}
    changed = await shop.api.patch(f"{INSTRUCTIONS}/{shop.instruction['id']}", json=body)
    assert changed.status_code == 200, changed.text


async def test_a_price_that_changes_during_the_check(shop: Shop, bank: Bank) -> None:
    async def change_price(_request: PaymentRequest) -> None:
        await set_price(shop, 2 * PRICE)

    payment = await shop.pay(bank.account())
    bank.facilitator.on_verify = change_price
    answer = await shop.get(payment)
    await assert_refused(shop, bank, answer, "has changed")
    assert required(answer)["accepts"][0]["amount"] == str(2 * PRICE)


async def test_content_that_is_not_for_sale(server: RunningServer, shop: Shop, bank: Bank, tenant: str) -> None:
    private = (await keep(server, tenant, ContentNetwork.PRIVATE, b"not for sale")).cid
    public = (await keep(server, tenant, ContentNetwork.PUBLIC, b"free")).cid
    stranger = await open_shop(server, f"{tenant}-2", data=b"of another tenant")
    missing = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
    answers = [await shop.get(path=f"/x402/cid/{cid}") for cid in (private, public, stranger.cid, missing)]
    assert {(answer.status_code, answer.text) for answer in answers} == {(404, answers[0].text)}
    assert "ERR_ID:00006" in answers[0].text
    detached = await shop.api.delete(f"{INSTRUCTIONS}/{shop.instruction['id']}/cids/{shop.cid}")
    assert detached.status_code == 200
    assert (await shop.get()).text == answers[0].text
    assert (await shop.visitor.get(f"/ipfs/{shop.cid}")).status_code == 404
    assert (await shop.visitor.get(f"/files/{shop.cid}")).status_code == 403
    assert [(await shop.visitor.get(path)).status_code for path in ("/x402", "/x402/cid", "/x402/x")] == [404] * 3


async def test_requests_that_take_no_money(shop: Shop, bank: Bank) -> None:
    payment = await shop.pay(bank.account())
    head = await shop.visitor.head(shop.path, headers={"X-PAYMENT": "x"})
    assert (head.status_code, head.content, bool(head.headers["payment-required"])) == (402, b"", True)
    beyond = await shop.get(payment, Range=f"bytes={len(CONTENT)}-")
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{len(CONTENT)}")
    assert (await shop.get(payment, **{"If-None-Match": f'"{shop.cid}"'})).status_code == 304
    for option in ("format=raw", "format=car", "img-width=10"):
        assert (await shop.get(payment, path=f"{shop.path}?{option}")).status_code == 400
    assert (await shop.visitor.post(shop.path)).status_code == 405
    assert bank.facilitator.calls == []
    part = await shop.get(payment, Range="bytes=3-9")
    assert (part.status_code, part.content) == (206, CONTENT[3:10])
    assert (await shop.visitor.head(shop.path)).status_code == 402


async def test_browsers_of_any_origin_can_pay(shop: Shop, bank: Bank) -> None:
    preflight = await shop.visitor.options(shop.path, headers={"Origin": "https://wallet.example"})
    allowed = preflight.headers["access-control-allow-headers"].lower().split(", ")
    assert {"x-payment", "payment-signature", "access-control-expose-headers"} <= set(allowed)
    for answer in (await shop.get(), await shop.get(await shop.pay(bank.account()))):
        exposed = answer.headers["access-control-expose-headers"].lower().split(", ")
        assert {"payment-required", "payment-response", "x-payment-response"} <= set(exposed)
        assert answer.headers["access-control-allow-origin"] == "*"


async def test_a_gateway_with_access_controls(shop: Shop, bank: Bank) -> None:
    gateway = (await shop.api.get("/v3/gateways")).json()["data"]["rows"][0]["id"]
    assert (await shop.api.post(f"/v3/gateways/{gateway}/hosts", json={"host": "reader.example"})).status_code == 200
    assert (await shop.get()).status_code == 401
    assert (await shop.get(Origin="https://reader.example")).status_code == 402


async def test_files_of_a_folder(server: RunningServer, bank: Bank, tenant: str) -> None:
    shop = await open_shop(server, tenant)
    files = [("file", (f"book/{name}", name.encode())) for name in ("one.txt", "two.txt")]
    upload = server.client(server.key(tenant), "uploads.localhost")
    book = await upload.post("/v3/files", data={"network": "private", "name": "book"}, files=files)
    cid = book.json()["data"]["cid"]
    await shop.api.put(f"{INSTRUCTIONS}/{shop.instruction['id']}/cids/{cid}")
    payer, path = bank.account(), f"/x402/cid/{cid}/two.txt"
    payment = await shop.pay(payer, path=path)
    assert (await shop.get(payment, path)).text == "two.txt"
    assert (await shop.get(payment, f"/x402/cid/{cid}/one.txt")).status_code == 402
    assert [(await shop.get(path=f"/x402/cid/{cid}{rest}")).status_code for rest in ("", "/", "/no.txt")] == [404] * 3


# I9: facilitators that fail or lie


async def test_a_facilitator_that_does_not_answer_a_check(shop: Shop, bank: Bank) -> None:
    async def fail(_request: PaymentRequest) -> None:
        raise FacilitatorUnavailable

    payment = await shop.pay(bank.account())
    bank.facilitator.on_verify = fail
    assert (await shop.get(payment)).status_code == 502
    assert (await shop.payments(), bank.facilitator.calls) == ([], ["verify"])
    bank.facilitator.on_verify = None
    assert (await shop.get(payment)).status_code == 200


async def test_a_facilitator_that_verifies_another_payer(shop: Shop, bank: Bank) -> None:
    async def lie(_request: PaymentRequest) -> Verification:
        return Verification(True, OTHER_ADDRESS)

    payment = await shop.pay(bank.account())
    bank.facilitator.on_verify = lie
    assert (await shop.get(payment)).status_code == 502
    assert bank.facilitator.calls == ["verify"]


LIES: dict[str, dict[str, Any]] = {
    "payer": {"payer": OTHER_ADDRESS},
    "network": {"network": "eip155:1"},
    "transaction": {"transaction": ""},
    "malformed transaction": {"transaction": "0x12"},
    "amount": {"amount": str(PRICE - 1)},
}


@pytest.mark.parametrize("lie", LIES)
@pytest.mark.parametrize("moves", [True, False])
async def test_a_facilitator_that_settles_something_else(shop: Shop, bank: Bank, lie: str, *, moves: bool) -> None:
    """The content is withheld; the same payment finds out later, and is taken once."""

    async def settle(request: PaymentRequest) -> Settlement:
        told = bank.facilitator.move(request) if moves else Settlement(True, f"0x{1:064x}", NETWORK)
        return replace(told, **LIES[lie])

    payer = bank.account(PRICE)
    payment = await shop.pay(payer)
    bank.facilitator.on_settle = settle
    answer = await shop.get(payment)
    assert (answer.status_code, CONTENT in answer.content) == (502, False)
    assert [row["state"] for row in await shop.payments()] == ["unknown"]
    bank.facilitator.on_settle = None
    assert (await shop.get(payment)).content == CONTENT
    assert [row["state"] for row in await shop.payments()] == ["settled"]
    assert bank.facilitator.balances[payer.address.lower()] == 0
    assert required(await shop.get(payment))


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize("reason", ["", "settlement_pending", "transaction_failed", "nonce_already_used", None])
async def test_a_settlement_without_an_outcome(
    shop: Shop, bank: Bank, version: int, *, moves: bool, reason: str | None
) -> None:
    async def settle(request: PaymentRequest) -> Settlement:
        if moves:
            bank.facilitator.move(request)
        if reason is None:
            raise FacilitatorUnavailable
        return Settlement(False, network=NETWORK, reason=reason)

    payer = bank.account(PRICE)
    payment = await shop.pay(payer, version)
    bank.facilitator.on_settle = settle
    for _ in range(2):
        answer = await shop.get(payment)
        assert (answer.status_code, CONTENT in answer.content, answer.headers["retry-after"]) == (503, False, "5")
    assert [row["state"] for row in await shop.payments()] == ["unknown"]
    bank.facilitator.on_settle = None
    answers = await asyncio.gather(*(shop.get(payment) for _ in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] + [402] * 7
    assert bank.facilitator.balances[payer.address.lower()] == 0
    assert bank.facilitator.calls == ["verify", "settle", "settle", "settle"]


async def test_a_facilitator_that_verifies_and_does_not_settle(shop: Shop, bank: Bank) -> None:
    async def refuse(_request: PaymentRequest) -> Settlement:
        return Settlement(False, network=NETWORK, reason="invalid_exact_evm_insufficient_balance")

    payer = bank.account(PRICE)
    payment = await shop.pay(payer)
    bank.facilitator.on_settle = refuse
    assert "insufficient_balance" in required(await shop.get(payment))["error"]
    bank.facilitator.on_settle = None
    assert "presented before" in required(await shop.get(payment))["error"]
    assert [row["state"] for row in await shop.payments()] == ["refused"]
    assert (await shop.get(await shop.pay(payer))).status_code == 200


async def test_an_open_payment_is_bound_to_its_content_and_signature(
    server: RunningServer, shop: Shop, bank: Bank, tenant: str
) -> None:
    async def pend(_request: PaymentRequest) -> Settlement:
        return Settlement(False, network=NETWORK, reason="settlement_pending")

    other = await open_shop(server, tenant, data=b"another article")
    payment = await shop.pay(bank.account())
    bank.facilitator.on_settle = pend
    assert (await shop.get(payment)).status_code == 503
    bank.facilitator.on_settle = None
    assert "presented before" in required(await other.get(payment))["error"]
    forged = {**payment, "payload": {**payment["payload"], "signature": "0x" + "12" * 100}}
    assert "presented before" in required(await shop.get(forged))["error"]
    await set_price(shop, 2 * PRICE)  # it was paid for at the earlier price
    assert (await shop.get(payment)).content == CONTENT


async def test_a_payment_is_settled_by_one_request_at_a_time(shop: Shop, bank: Bank) -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def wait(_request: PaymentRequest) -> None:
        asked.set()
        await answered.wait()

    payment = await shop.pay(bank.account())
    bank.facilitator.on_settle = wait
    first = asyncio.create_task(shop.get(payment))
    await asyncio.wait_for(asked.wait(), 20)
    assert "being settled" in required(await shop.get(payment))["error"]
    assert [row["state"] for row in await shop.payments()] == ["settling"]
    answered.set()
    assert (await first).status_code == 200


async def test_sellers_list_their_payments(server: RunningServer, shop: Shop, bank: Bank, tenant: str) -> None:
    payer = bank.account()
    for version in (1, 2, 2):
        assert (await shop.get(await shop.pay(payer, version))).status_code == 200
    page = (await shop.api.get(PAYMENTS, params={"limit": 2})).json()["data"]
    rest = (await shop.api.get(PAYMENTS, params={"pageToken": page["next_page_token"]})).json()["data"]
    assert (len(page["payments"]), len(rest["payments"]), rest["next_page_token"]) == (2, 1, "")
    instruction = shop.instruction["id"]
    assert len(await shop.payments(instruction=instruction, cid=shop.cid, state="settled")) == 3
    assert await shop.payments(state="unknown") == await shop.payments(instruction="other") == []
    totals = (await shop.api.get(f"{PAYMENTS}/totals")).json()["data"]["totals"]
    expected = {"network": NETWORK, "asset": SEPOLIA["asset"].lower(), "count": 3, "amount": str(3 * PRICE)}
    assert totals == [{"payment_instruction_id": instruction, **expected}]
    stranger = server.client(server.key(f"{tenant}-2"), "api.localhost")
    assert (await stranger.get(PAYMENTS)).json()["data"]["payments"] == []
    assert (await stranger.get(f"{PAYMENTS}/totals")).json() == {"data": {"totals": []}}
    keyless = server.client(server.key(tenant, scopes=frozenset({"org:groups:read"})), "api.localhost")
    assert (await keyless.get(PAYMENTS)).status_code == 403
    for query in ({"state": "paid"}, {"limit": 0}, {"cid": "x"}, {"pageToken": "x"}):
        assert (await shop.api.get(PAYMENTS, params=query)).status_code == 400
