"""Payments that meet the terms, their time, and what a facilitator's answer means."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from roost.core.payment_asset import PaymentNetwork
from roost.drivers.facilitator.contract import PaymentSettlement
from roost.storage.payments import forms, rules
from roost.storage.payments.model import VALIDITY_MARGIN_SECONDS, PaymentRefused
from tests.storage.payments.payer import ASSET, RESOURCE, TERMS, new_payer, payment_json, sign_transfer
from tests.storage.payments.test_forms import encode

NOW = datetime.fromtimestamp(1_000_000, UTC)
HASH = "0x" + "0a" * 32


def test_of_many_terms_the_signature_chooses() -> None:
    other = replace(ASSET, address="0x" + "22" * 20, name="Other")
    payment = forms.parse_payment(encode(payment_json(sign_transfer(new_payer(), other), 1)))
    wanted = replace(TERMS, asset=other)
    assert rules.match_terms(payment, [replace(TERMS, amount=1), TERMS, wanted], RESOURCE.url) == wanted
    for terms in ([], [TERMS], [replace(wanted, amount=1)], [replace(wanted, pay_to="0x" + "11" * 20)]):
        with pytest.raises(PaymentRefused):
            rules.match_terms(payment, terms, RESOURCE.url)


def test_a_named_resource_is_this_one() -> None:
    sent = payment_json(sign_transfer(new_payer()))
    for url, is_this in ((RESOURCE.url, True), (RESOURCE.url + "/", False), ("", False)):
        payment = forms.parse_payment(encode({**sent, "resource": {"url": url}}))
        if is_this:
            assert rules.match_terms(payment, [TERMS], RESOURCE.url) == TERMS
        else:
            with pytest.raises(PaymentRefused, match="another resource"):
                rules.match_terms(payment, [TERMS], RESOURCE.url)


@pytest.mark.parametrize(
    ("after", "before", "is_valid"),
    [
        (0, 2**256 - 1, True),
        (1_000_000, 1_000_000 + VALIDITY_MARGIN_SECONDS, True),
        (1_000_001, 2_000_000, False),
        (0, 1_000_000 + VALIDITY_MARGIN_SECONDS - 1, False),
        (0, 0, False),
    ],
)
def test_times_of_validity_are_checked(after: int, before: int, *, is_valid: bool) -> None:
    transfer = replace(sign_transfer(new_payer()), valid_after=after, valid_before=before)
    if is_valid:
        rules.check_validity(transfer, NOW)
        return
    with pytest.raises(PaymentRefused, match="is valid"):
        rules.check_validity(transfer, NOW)


def test_a_settlement_names_nothing_else() -> None:
    transfer = sign_transfer(new_payer())
    for network in ("base-sepolia", "eip155:84532"):
        for payer in (None, transfer.payer, "0x" + transfer.payer[2:].upper()):
            settled = PaymentSettlement(True, HASH, network, payer, "10000")
            assert rules.is_settlement_of(settled, transfer, TERMS)
    for change in (
        {"transaction": ""},
        {"transaction": HASH[:-1]},
        {"transaction": HASH + "\n"},
        {"network": ""},
        {"network": "eip155:8453"},
        {"payer": "0x" + "11" * 20},
        {"payer": ""},
        {"amount": "9999"},
        {"amount": ""},
    ):
        assert not rules.is_settlement_of(replace(settled, **change), transfer, TERMS), change
    unnamed = replace(TERMS, asset=replace(ASSET, network=PaymentNetwork(84532)))
    assert not rules.is_settlement_of(replace(settled, network="base-sepolia"), transfer, unnamed)


@pytest.mark.parametrize(
    ("reason", "is_definite"),
    [
        ("invalid_exact_evm_insufficient_balance", True),
        ("insufficient_funds", True),
        ("invalid_exact_evm_payload_signature", True),
        ("invalid_exact_evm_nonce_already_used", False),
        ("invalid_exact_evm_transaction_simulation_failed", False),
        ("invalid_exact_evm_transfer_event_mismatch", False),
        ("settlement_pending", False),
        ("transaction_failed", False),
        ("unexpected_settle_error", False),
        ("", False),
        (None, False),
    ],
)
def test_reasons_that_leave_no_doubt(reason: str | None, *, is_definite: bool) -> None:
    refusal = PaymentSettlement(False, reason=reason)
    assert rules.is_definite_refusal(refusal) is is_definite
    assert not rules.is_definite_refusal(replace(refusal, transaction=HASH))
