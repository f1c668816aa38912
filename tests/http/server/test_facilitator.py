"""The HTTP API of a facilitator at callers that are malformed, foreign, or too large."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2 as httpx
import pytest

from roost.core.sensitive import Sensitive
from roost.drivers.facilitator.contract import (
    FacilitatorFailed,
    FacilitatorUnavailable,
    PaymentRequest,
    PaymentSettlement,
)
from roost.drivers.facilitator.fake import FakeFacilitator
from tests.chain.payer import payment
from tests.conformance.facilitators import served_facilitator
from tests.support.wallet import Account

TOKEN = "a-token-of-a-facilitator"
SUPPORTED: dict[str, object] = {"kinds": [], "extensions": [], "signers": {}}


@pytest.fixture
def facilitator() -> FakeFacilitator:
    return FakeFacilitator()


@pytest.fixture
async def client(facilitator: FakeFacilitator) -> AsyncIterator[httpx.AsyncClient]:
    async with (
        served_facilitator(facilitator, supported=SUPPORTED) as url,
        httpx.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        yield client


async def request_body(payer: Any, version: int = 2) -> dict[str, Any]:
    paid = await payment(payer, version)
    return {"x402Version": version, "paymentPayload": paid.payload, "paymentRequirements": paid.requirements}


@pytest.mark.parametrize("version", [1, 2])
async def test_the_forms_of_answers(client: httpx.AsyncClient, facilitator: FakeFacilitator, version: int) -> None:
    payer = Account.create()
    body, account = await request_body(payer, version), payer.address.lower()
    refused = (await client.post("/verify", json=body)).json()
    assert refused == {"isValid": False, "payer": account, "invalidReason": "invalid_exact_evm_insufficient_balance"}
    facilitator.balances[account] = 10_000
    assert (await client.post("/verify", json=body)).json() == {"isValid": True, "payer": account}
    settled = (await client.post("/settle", json=body)).json()
    network = body["paymentRequirements"]["network"]
    assert settled == {"success": True, "transaction": f"0x{1:064x}", "network": network, "payer": account}
    assert (await client.get("/supported")).json() == SUPPORTED


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b"\xff",
        b"{}",
        b'{"x402Version": 3, "paymentPayload": {}, "paymentRequirements": {}}',
        b'{"x402Version": 2, "paymentPayload": [], "paymentRequirements": {}}',
        b"[" * 60_000,
        b" " * 100_000,
    ],
)
async def test_malformed_bodies_are_refused(
    client: httpx.AsyncClient, facilitator: FakeFacilitator, content: bytes
) -> None:
    for path in ("/verify", "/settle"):
        answer = await client.post(path, content=content)
        assert answer.status_code == 400
        assert "paymentPayload" in answer.json()["error"]
    assert facilitator.calls == []


async def test_other_paths_and_methods(client: httpx.AsyncClient) -> None:
    for answer, status in (
        (await client.get("/"), 404),
        (await client.get("/verify"), 405),
        (await client.post("/supported"), 405),
    ):
        assert (answer.status_code, list(answer.json())) == (status, ["error"])


async def test_problems_have_their_status(client: httpx.AsyncClient, facilitator: FakeFacilitator) -> None:
    problems = [FacilitatorFailed("broken"), FacilitatorUnavailable("away", retry_after=4.2)]

    async def fail(_request: PaymentRequest) -> PaymentSettlement:
        raise problems.pop(0)

    facilitator.on_settle = fail
    body = await request_body(Account.create())
    failed, away = [await client.post("/settle", json=body) for _ in range(2)]
    assert (failed.status_code, failed.json()) == (502, {"error": "broken"})
    assert (away.status_code, away.json(), away.headers["retry-after"]) == (503, {"error": "away"}, "5")


async def test_only_bearers_of_the_token_are_served(facilitator: FakeFacilitator) -> None:
    async with (
        served_facilitator(facilitator, Sensitive(TOKEN)) as url,
        httpx.AsyncClient(base_url=url, trust_env=False) as client,
    ):
        body = await request_body(Account.create())
        for authorization in (None, "Bearer x", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer \u00e4"):
            headers = {} if authorization is None else {b"Authorization": authorization.encode()}
            for answer in (
                await client.post("/settle", json=body, headers=headers),
                await client.get("/supported", headers=headers),
            ):
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        assert (await client.post(f"/settle?token={TOKEN}", json=body)).status_code == 401
        assert facilitator.calls == []
        given = {"Authorization": f"Bearer {TOKEN}"}
        assert (await client.post("/settle", json=body, headers=given)).status_code == 200
