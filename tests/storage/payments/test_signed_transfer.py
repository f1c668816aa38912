"""Signatures of transfers, as a wallet of another implementation makes them."""

from dataclasses import replace
from typing import Any

import pytest

from roost.core.payment_asset import PaymentNetwork
from roost.storage.payments.rules import is_signed_by_payer
from tests.storage.payments.payer import ASSET, new_payer, sign_transfer

N = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141
"""The order of secp256k1."""


@pytest.mark.parametrize("asset", [ASSET, replace(ASSET, name="USD Côin", version="10", network=PaymentNetwork(137))])
def test_the_payers_signature(asset: Any) -> None:
    assert is_signed_by_payer(asset, sign_transfer(new_payer(), asset))
    assert is_signed_by_payer(asset, sign_transfer(new_payer(), asset, value=2**256 - 1, valid_before=2**256 - 1))


@pytest.mark.parametrize(
    "change",
    [
        {"payer": "0x" + "11" * 20},
        {"pay_to": "0x" + "11" * 20},
        {"value": 9_999},
        {"valid_after": 1},
        {"valid_before": 1},
        {"nonce": "0x" + "00" * 32},
    ],
)
def test_every_field_is_signed(change: dict[str, Any]) -> None:
    assert not is_signed_by_payer(ASSET, replace(sign_transfer(new_payer()), **change))


@pytest.mark.parametrize(
    "change",
    [{"name": "USD Coin"}, {"version": "1"}, {"address": "0x" + "11" * 20}, {"network": PaymentNetwork(8453)}],
)
def test_the_token_is_signed(change: dict[str, Any]) -> None:
    assert not is_signed_by_payer(replace(ASSET, **change), sign_transfer(new_payer()))


def test_a_signature_has_one_form() -> None:
    transfer = sign_transfer(new_payer())
    r, s, v = transfer.signature[:32], int.from_bytes(transfer.signature[32:64], "big"), transfer.signature[64]
    mirrored = r + (N - s).to_bytes(32, "big") + bytes((55 - v,))  # the chain's own check accepts it, too
    assert not is_signed_by_payer(ASSET, replace(transfer, signature=mirrored))
    for signature in (bytes(65), b"\xff" * 65, transfer.signature[:64] + b"\x1d"):
        assert not is_signed_by_payer(ASSET, replace(transfer, signature=signature))


def test_longer_signatures_are_left_to_the_chain() -> None:
    assert is_signed_by_payer(ASSET, replace(sign_transfer(new_payer()), signature=b"\x01" * 200))
