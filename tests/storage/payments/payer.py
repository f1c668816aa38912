"""Payments for unit tests: terms, and transfers signed by a wallet of another implementation."""

from dataclasses import replace
from typing import Any

from roost.core.payment_asset import PaymentAsset, PaymentNetwork
from roost.storage.payments.model import PaidResource, PaymentTerms, TransferAuthorization
from tests.support.wallet import Account, LocalAccount

ASSET = PaymentAsset(PaymentNetwork(84532, "base-sepolia"), "0x036CbD53842c5426634e7929541eC2318f3dCF7e", "USDC", "2")
SELLER = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"
TERMS = PaymentTerms(ASSET, SELLER, 10_000, "One read")
RESOURCE = PaidResource("http://g.gateways.localhost/x402/cid/c", "articles", "text/plain")
NONCE = "0x" + "ab" * 32
_TYPES = {
    "TransferWithAuthorization": [
        {"name": "from", "type": "address"},
        {"name": "to", "type": "address"},
        {"name": "value", "type": "uint256"},
        {"name": "validAfter", "type": "uint256"},
        {"name": "validBefore", "type": "uint256"},
        {"name": "nonce", "type": "bytes32"},
    ]
}


def sign_transfer(account: LocalAccount, asset: PaymentAsset = ASSET, **changes: Any) -> TransferAuthorization:
    """Sign a transfer that meets the terms, but for the changes."""
    unsigned = TransferAuthorization(account.address.lower(), SELLER.lower(), 10_000, 0, 9_999_999_999, NONCE, b"")
    transfer = replace(unsigned, **changes)
    domain = {
        "name": asset.name,
        "version": asset.version,
        "chainId": asset.network.chain_id,
        "verifyingContract": asset.address,
    }
    message = authorization(transfer) | {"value": transfer.value}
    numbers = {"validAfter": transfer.valid_after, "validBefore": transfer.valid_before}
    signed = account.sign_typed_data(domain, _TYPES, message | numbers)
    return replace(transfer, signature=bytes(signed.signature))


def authorization(transfer: TransferAuthorization) -> dict[str, Any]:
    """Return a transfer as JSON."""
    return {
        "from": transfer.payer,
        "to": transfer.pay_to,
        "value": str(transfer.value),
        "validAfter": str(transfer.valid_after),
        "validBefore": str(transfer.valid_before),
        "nonce": transfer.nonce,
    }


def payment_json(transfer: TransferAuthorization, version: int = 2) -> dict[str, Any]:
    """Return a payment as a header has it."""
    payload = {"signature": f"0x{transfer.signature.hex()}", "authorization": authorization(transfer)}
    if version == 1:
        return {"x402Version": 1, "scheme": "exact", "network": "base-sepolia", "payload": payload}
    accepted = {
        "scheme": "exact",
        "network": "eip155:84532",
        "asset": ASSET.address,
        "amount": "10000",
        "payTo": SELLER,
        "maxTimeoutSeconds": 60,
        "extra": {"name": "USDC", "version": "2"},
    }
    return {"x402Version": 2, "payload": payload, "accepted": accepted}


def new_payer() -> LocalAccount:
    return Account.create()
