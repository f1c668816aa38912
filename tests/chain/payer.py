"""Payments as the SDK's client makes them, for requirements in the form of either version."""

import base64
import json
from typing import Any

from roost.drivers.facilitator.contract import PaymentRequest
from tests.chain.anvil import NETWORK, OLD_NETWORK, TOKEN, TOKEN_NAME, TOKEN_VERSION
from tests.support.wallet import LocalAccount

SELLER = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"


def requirements(version: int, amount: int = 10_000, **changes: Any) -> dict[str, Any]:
    """Return a requirement in the form of a version, with changes."""
    common = {
        "scheme": "exact",
        "payTo": SELLER,
        "maxTimeoutSeconds": 60,
        "asset": TOKEN,
        "extra": {"name": TOKEN_NAME, "version": TOKEN_VERSION},
    }
    if version == 2:
        return {**common, "network": NETWORK, "amount": str(amount), **changes}
    resource = {"resource": "https://example.com/x", "description": "d", "mimeType": "text/plain"}
    return {**common, **resource, "network": OLD_NETWORK, "maxAmountRequired": str(amount), **changes}


async def pay(account: LocalAccount, needed: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of a payment, as the SDK signs it."""
    from x402 import x402Client
    from x402.mechanisms.evm import EthAccountSigner
    from x402.mechanisms.evm.exact import register_exact_evm_client
    from x402.schemas import PaymentRequired, PaymentRequiredV1

    client = x402Client()
    client.set_spend_controls(False)  # it signs what a test wants, not only what is safe
    register_exact_evm_client(client, EthAccountSigner(account))
    form = PaymentRequired if "amount" in needed else PaymentRequiredV1
    payload = await client.create_payment_payload(form.model_validate({"accepts": [needed]}))
    return payload.model_dump(by_alias=True, exclude_none=True)


async def payment(account: LocalAccount, version: int, amount: int = 10_000, **changes: Any) -> PaymentRequest:
    needed = requirements(version, amount, **changes)
    return PaymentRequest(version, await pay(account, needed), needed)


def encode(payload: dict[str, Any]) -> str:
    """Return a payment as a header has it."""
    return base64.b64encode(json.dumps(payload).encode()).decode()
