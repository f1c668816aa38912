"""Paid content on storage gateways: what is asked, what is served, and what sellers see of it."""

import asyncio
import hashlib

import pytest

from roost.storage.content.model import ContentNetwork
from tests.chain.anvil import NETWORK, OLD_NETWORK
from tests.chain.payer import SELLER
from tests.contract.backing import Backing
from tests.contract.payments.paid_content import (
    CONTENT,
    INSTRUCTIONS,
    PAYMENTS,
    PRICE,
    SEPOLIA,
    FacilitatorServer,
    PaidContent,
    create_paid_content,
    receipt,
    required,
)
from tests.contract.storage import keep
from tests.support.server import RunningServer

ON_SERVICES = {"test_a_payment_serves_the_content_once", "test_of_parallel_uses_one_is_served"}
VERSIONS = pytest.mark.parametrize("version", [1, 2])


async def test_required_payment_is_told_without_a_call(
    paid_content: PaidContent, facilitator_server: FacilitatorServer
) -> None:
    answer = await paid_content.get()
    assert answer.headers["cache-control"] == "no-store"
    url = f"{paid_content.visitor.headers['host'].join(('http://', ''))}{paid_content.path}"
    (old,) = required(answer, 1)["accepts"]
    assert required(answer, 1) == {"x402Version": 1, "error": "Payment is required", "accepts": [old]}
    common = {"scheme": "exact", "payTo": SELLER, "maxTimeoutSeconds": 60, "asset": SEPOLIA["asset"]}
    common["extra"] = {"name": "USDC", "version": "2"}
    described = {"resource": url, "description": "One read", "mimeType": "text/plain"}
    assert old == {**common, **described, "network": OLD_NETWORK, "maxAmountRequired": str(PRICE)}
    new = required(answer, 2)
    assert new["accepts"] == [{**common, "network": NETWORK, "amount": str(PRICE)}]
    assert (new["x402Version"], new["resource"]["url"], new["resource"]["mimeType"]) == (2, url, "text/plain")
    assert facilitator_server.facilitator.calls == []


@VERSIONS
async def test_a_payment_serves_the_content_once(
    paid_content: PaidContent, facilitator_server: FacilitatorServer, version: int
) -> None:
    payer = facilitator_server.account()
    before = facilitator_server.facilitator.balances[SELLER.lower()]
    payment = await paid_content.pay(payer, version)
    answer = await paid_content.get(payment)
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
        assert "presented before" in required(await paid_content.get(payment))["error"]
    assert facilitator_server.facilitator.balances[SELLER.lower()] == before + PRICE
    assert facilitator_server.facilitator.calls == ["verify", "settle"]
    (row,) = await paid_content.payments()
    assert (row["state"], row["transaction"], row["amount"]) == ("settled", given["transaction"], str(PRICE))


async def test_of_parallel_uses_one_is_served(paid_content: PaidContent, facilitator_server: FacilitatorServer) -> None:
    payment = await paid_content.pay(facilitator_server.account())
    answers = await asyncio.gather(*(paid_content.get(payment) for _ in range(50)))
    assert sorted(answer.status_code for answer in answers) == [200] + [402] * 49
    assert facilitator_server.facilitator.calls.count("settle") == 1


async def test_content_that_is_not_for_sale(
    server: RunningServer, paid_content: PaidContent, facilitator_server: FacilitatorServer, tenant: str
) -> None:
    private = (await keep(server, tenant, ContentNetwork.PRIVATE, b"not for sale")).cid
    public = (await keep(server, tenant, ContentNetwork.PUBLIC, b"free")).cid
    stranger = await create_paid_content(server, f"{tenant}-2", data=b"of another tenant")
    missing = "bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy"
    answers = [await paid_content.get(path=f"/x402/cid/{cid}") for cid in (private, public, stranger.cid, missing)]
    assert {(answer.status_code, answer.text) for answer in answers} == {(404, answers[0].text)}
    assert "ERR_ID:00006" in answers[0].text
    detached = await paid_content.api.delete(f"{INSTRUCTIONS}/{paid_content.instruction['id']}/cids/{paid_content.cid}")
    assert detached.status_code == 200
    assert (await paid_content.get()).text == answers[0].text
    assert (await paid_content.visitor.get(f"/ipfs/{paid_content.cid}")).status_code == 404
    assert (await paid_content.visitor.get(f"/files/{paid_content.cid}")).status_code == 403
    assert [(await paid_content.visitor.get(path)).status_code for path in ("/x402", "/x402/cid", "/x402/x")] == [
        404
    ] * 3


async def test_requests_that_take_no_money(paid_content: PaidContent, facilitator_server: FacilitatorServer) -> None:
    payment = await paid_content.pay(facilitator_server.account())
    head = await paid_content.visitor.head(paid_content.path, headers={"X-PAYMENT": "x"})
    assert (head.status_code, head.content, bool(head.headers["payment-required"])) == (402, b"", True)
    beyond = await paid_content.get(payment, Range=f"bytes={len(CONTENT)}-")
    assert (beyond.status_code, beyond.headers["content-range"]) == (416, f"bytes */{len(CONTENT)}")
    assert (await paid_content.get(payment, **{"If-None-Match": f'"{paid_content.cid}"'})).status_code == 304
    for option in ("format=raw", "format=car", "img-width=10"):
        assert (await paid_content.get(payment, path=f"{paid_content.path}?{option}")).status_code == 400
    assert (await paid_content.visitor.post(paid_content.path)).status_code == 405
    assert facilitator_server.facilitator.calls == []
    part = await paid_content.get(payment, Range="bytes=3-9")
    assert (part.status_code, part.content) == (206, CONTENT[3:10])
    assert (await paid_content.visitor.head(paid_content.path)).status_code == 402


async def test_browsers_of_any_origin_can_pay(paid_content: PaidContent, facilitator_server: FacilitatorServer) -> None:
    preflight = await paid_content.visitor.options(paid_content.path, headers={"Origin": "https://wallet.example"})
    allowed = preflight.headers["access-control-allow-headers"].lower().split(", ")
    assert {"x-payment", "payment-signature", "access-control-expose-headers"} <= set(allowed)
    for answer in (
        await paid_content.get(),
        await paid_content.get(await paid_content.pay(facilitator_server.account())),
    ):
        exposed = answer.headers["access-control-expose-headers"].lower().split(", ")
        assert {"payment-required", "payment-response", "x-payment-response"} <= set(exposed)
        assert answer.headers["access-control-allow-origin"] == "*"


async def test_a_gateway_with_access_controls(paid_content: PaidContent, facilitator_server: FacilitatorServer) -> None:
    gateway = (await paid_content.api.get("/v3/gateways")).json()["data"]["rows"][0]["id"]
    assert (
        await paid_content.api.post(f"/v3/gateways/{gateway}/hosts", json={"host": "reader.example"})
    ).status_code == 200
    assert (await paid_content.get()).status_code == 401
    assert (await paid_content.get(Origin="https://reader.example")).status_code == 402


async def test_files_of_a_folder(server: RunningServer, facilitator_server: FacilitatorServer, tenant: str) -> None:
    paid_content = await create_paid_content(server, tenant)
    files = [("file", (f"book/{name}", name.encode())) for name in ("one.txt", "two.txt")]
    upload = server.client(server.key(tenant), "uploads.localhost")
    book = await upload.post("/v3/files", data={"network": "private", "name": "book"}, files=files)
    cid = book.json()["data"]["cid"]
    await paid_content.api.put(f"{INSTRUCTIONS}/{paid_content.instruction['id']}/cids/{cid}")
    payer, path = facilitator_server.account(), f"/x402/cid/{cid}/two.txt"
    payment = await paid_content.pay(payer, path=path)
    assert (await paid_content.get(payment, path)).text == "two.txt"
    assert (await paid_content.get(payment, f"/x402/cid/{cid}/one.txt")).status_code == 402
    assert [(await paid_content.get(path=f"/x402/cid/{cid}{rest}")).status_code for rest in ("", "/", "/no.txt")] == [
        404
    ] * 3


async def test_sellers_list_their_payments(
    server: RunningServer, paid_content: PaidContent, facilitator_server: FacilitatorServer, tenant: str
) -> None:
    payer = facilitator_server.account()
    for version in (1, 2, 2):
        assert (await paid_content.get(await paid_content.pay(payer, version))).status_code == 200
    page = (await paid_content.api.get(PAYMENTS, params={"limit": 2})).json()["data"]
    rest = (await paid_content.api.get(PAYMENTS, params={"pageToken": page["next_page_token"]})).json()["data"]
    assert (len(page["payments"]), len(rest["payments"]), rest["next_page_token"]) == (2, 1, "")
    instruction = paid_content.instruction["id"]
    assert len(await paid_content.payments(instruction=instruction, cid=paid_content.cid, state="settled")) == 3
    assert await paid_content.payments(state="unknown") == await paid_content.payments(instruction="other") == []
    totals = (await paid_content.api.get(f"{PAYMENTS}/totals")).json()["data"]["totals"]
    expected = {"network": NETWORK, "asset": SEPOLIA["asset"].lower(), "count": 3, "amount": str(3 * PRICE)}
    assert totals == [{"payment_instruction_id": instruction, **expected}]
    stranger = server.client(server.key(f"{tenant}-2"), "api.localhost")
    assert (await stranger.get(PAYMENTS)).json()["data"]["payments"] == []
    assert (await stranger.get(f"{PAYMENTS}/totals")).json() == {"data": {"totals": []}}
    keyless = server.client(server.key(tenant, scopes=frozenset({"org:groups:read"})), "api.localhost")
    assert (await keyless.get(PAYMENTS)).status_code == 403
    for query in ({"state": "paid"}, {"limit": 0}, {"cid": "x"}, {"pageToken": "x"}):
        assert (await paid_content.api.get(PAYMENTS, params=query)).status_code == 400


async def test_content_that_cannot_be_read_takes_no_money(
    server: RunningServer, facilitator_server: FacilitatorServer, tenant: str, backing: Backing
) -> None:
    content = hashlib.shake_128(tenant.encode()).digest(3_000_001)
    paid_content = await create_paid_content(server, tenant, data=content)
    payer = facilitator_server.account()
    payment = await paid_content.pay(payer)
    (pack,) = [
        path for path in (backing.folder / "blobs").rglob("*") if path.is_file() and path.read_bytes() == content
    ]
    pack.write_bytes(content[:2_500_000] + bytes((content[2_500_000] ^ 1,)) + content[2_500_001:])
    refused = await paid_content.get(payment, Range="bytes=2499990-2500010")
    assert (refused.status_code, "settle" in facilitator_server.facilitator.calls) == (500, False)
    assert (await paid_content.get(payment, Range="bytes=0-9")).content == content[:10]
    assert facilitator_server.facilitator.balances[payer.address.lower()] == 9 * PRICE
