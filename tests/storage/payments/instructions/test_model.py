"""Rules of payment requirements; the server's refusals are in the contract's tests."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.payments.instructions.model import (
    BUILT_IN,
    InvalidPaymentInstruction,
    PaymentAssets,
    PaymentRequirement,
    check_requirements,
    normalize_instruction_name,
)

ASSETS = PaymentAssets()
CENT = PaymentRequirement(BUILT_IN[0].address, "0x" + "ab" * 20, "base", "10000")


def check(**change: str) -> None:
    check_requirements([CENT, replace(CENT, **change)], ASSETS)


@given(st.integers(1, 2**256 - 1))
def test_amounts_are_numbers_of_256_bits(amount: int) -> None:
    check(amount=str(amount))


@given(st.text(max_size=100))
def test_no_other_text_is_an_amount(text: str) -> None:
    if text.isascii() and text.isdecimal() and 0 < int(text) < 2**256 and text == str(int(text)):
        check(amount=text)
        return
    with pytest.raises(InvalidPaymentInstruction, match=r"^payment_requirements\.1: amount must be "):
        check(amount=text)


@pytest.mark.parametrize("amount", ["0", "00", "-1", "+1", "1e3", "0x1", "1.0", "1\n", str(2**256), "1" + "0" * 80])
def test_malformed_amounts_are_refused(amount: str) -> None:
    with pytest.raises(InvalidPaymentInstruction, match="smallest units from 1 to"):
        check(amount=amount)


def test_a_long_value_is_not_repeated_in_full() -> None:
    with pytest.raises(InvalidPaymentInstruction) as caught:
        check(amount="9" * 10_000)
    assert len(caught.value.message) < 300


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pay_to": "0x" + "00" * 20}, "pay_to must not be the zero address"),
        ({"pay_to": "0x" + "aB" * 20}, "the checksum of pay_to is wrong"),
        ({"asset": "USDC"}, "asset must be 0x and 40 hexadecimal digits"),
        ({"description": "x" * 256}, "description must have at most 255 characters"),
        ({"network": "solana"}, "network must be one of base, eip155:8453, base-sepolia, eip155:84532, got 'solana'"),
    ],
)
def test_the_message_names_the_requirement(change: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidPaymentInstruction) as caught:
        check(**change)
    assert caught.value.message == f"payment_requirements.1: {message}"


@pytest.mark.parametrize("number", [0, 21])
def test_too_few_and_too_many(number: int) -> None:
    check_requirements([CENT] * 20, ASSETS)
    with pytest.raises(InvalidPaymentInstruction, match="must have 1 to 20 items"):
        check_requirements([CENT] * number, ASSETS)


def test_names_of_instructions_are_normalised() -> None:
    assert normalize_instruction_name(f" {'x' * 255} ") == "x" * 255
    for name in ("", "  ", "x" * 256):
        with pytest.raises(InvalidPaymentInstruction):
            normalize_instruction_name(name)
