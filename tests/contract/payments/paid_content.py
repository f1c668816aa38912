"""A tenant that sells a private file on its storage gateway, and visitors that pay for it."""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2 as httpx

from roost.drivers.facilitator.fake import FakeFacilitator
from roost.storage.content.model import ContentNetwork
from tests.chain.anvil import OLD_NETWORK, TOKEN
from tests.chain.payer import SELLER, encode, pay
from tests.conformance.facilitators import served_facilitator
from tests.contract.storage import keep
from tests.support.server import RunningServer
from tests.support.wallet import Account, LocalAccount

INSTRUCTIONS = "/v3/x402/payment_instructions"
PAYMENTS = "/v3/x402/payments"
PRICE = 10_000
CONTENT = b"an article that must be paid for"
SEPOLIA = {"asset": TOKEN, "pay_to": SELLER, "network": OLD_NETWORK, "amount": str(PRICE), "description": "One read"}


@dataclass
class FacilitatorServer:
    """The facilitator of a server; `url` is where it is served."""

    facilitator: FakeFacilitator
    url: str

    def account(self, amount: int = 10 * PRICE) -> LocalAccount:
        """Return an account with tokens."""
        account = Account.create()
        self.facilitator.balances[account.address.lower()] = amount
        return account

    def reset(self) -> None:
        self.facilitator.on_verify = self.facilitator.on_settle = None
        self.facilitator.calls.clear()


@dataclass
class PaidContent:
    """api: of the seller. visitor: of the gateway, without credentials."""

    api: httpx.AsyncClient
    visitor: httpx.AsyncClient
    instruction: dict[str, Any]
    cid: str

    @property
    def path(self) -> str:
        return f"/x402/cid/{self.cid}"

    async def get(self, payment: dict[str, Any] | str | None = None, path: str = "", **headers: str) -> httpx.Response:
        """Get the file with a payment, in the header of its version."""
        if payment is not None:
            is_old = isinstance(payment, dict) and payment.get("x402Version") == 1
            header = encode(payment) if isinstance(payment, dict) else payment
            headers["X-PAYMENT" if is_old else "PAYMENT-SIGNATURE"] = header
        return await self.visitor.get(path or self.path, headers=headers)

    async def pay(self, payer: LocalAccount, version: int = 2, path: str = "") -> dict[str, Any]:
        """Return a payment for what the file asks."""
        (needed, *_) = required(await self.get(path=path), version)["accepts"]
        return await pay(payer, needed)

    async def set_price(self, amount: int) -> None:
        body = {"payment_requirements": [{**SEPOLIA, "amount": str(amount)}]}
        changed = await self.api.patch(f"{INSTRUCTIONS}/{self.instruction['id']}", json=body)
        assert changed.status_code == 200, changed.text

    async def payments(self, **query: str) -> list[dict[str, Any]]:
        return (await self.api.get(PAYMENTS, params=query)).json()["data"]["payments"]


def required(answer: httpx.Response, version: int = 2) -> dict[str, Any]:
    """Return what a response 402 asks for, in the form of a version."""
    assert answer.status_code == 402, (answer.status_code, answer.text)
    return json.loads(base64.b64decode(answer.headers["payment-required"])) if version == 2 else answer.json()


def receipt(answer: httpx.Response, version: int = 2) -> dict[str, Any]:
    name = "payment-response" if version == 2 else "x-payment-response"
    return json.loads(base64.b64decode(answer.headers[name]))


async def create_paid_content(
    server: RunningServer, tenant: str, *requirements: dict[str, Any], data: bytes = CONTENT
) -> PaidContent:
    """Store a file and put a price on it."""
    api = server.client(server.key(tenant), "api.localhost")
    cid = (await keep(server, tenant, ContentNetwork.PRIVATE, data)).cid
    body = {"name": "articles", "payment_requirements": requirements or [SEPOLIA]}
    created = await api.post(INSTRUCTIONS, json=body)
    assert created.status_code == 200, created.text
    instruction = created.json()["data"]
    attached = await api.put(f"{INSTRUCTIONS}/{instruction['id']}/cids/{cid}")
    assert attached.status_code == 200, attached.text
    gateway = (await api.get("/v3/gateways")).json()["data"]["rows"][0]["domain"]
    return PaidContent(api, server.client(host=f"{gateway}.gateways.localhost"), instruction, cid)


@asynccontextmanager
async def serve_fake_facilitator() -> AsyncIterator[FacilitatorServer]:
    facilitator = FakeFacilitator()
    async with served_facilitator(facilitator) as url:
        yield FacilitatorServer(facilitator, url)
