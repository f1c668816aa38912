"""Addresses of another implementation are accepted, and changed ones are refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.ethereum import InvalidAddress, checksum_address, keccak256, parse_address
from tests.support.wallet import Account


def test_a_hash_as_the_standard_prints_it() -> None:
    assert keccak256(b"").hex() == "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"


def test_addresses_in_any_case_but_a_wrong_one() -> None:
    right = Account.from_key((1).to_bytes(32, "big")).address
    for text in (right, right.lower(), "0x" + right[2:].upper()):
        assert parse_address(text) == bytes.fromhex(right[2:])
    assert checksum_address(bytes.fromhex(right[2:])) == right
    with pytest.raises(InvalidAddress, match=r"^the checksum of pay_to is wrong$"):
        parse_address(right[:2] + right[2:].swapcase(), "pay_to")


@pytest.mark.parametrize("text", ["", "0x", "0x" + "a" * 39, "0x" + "a" * 41, "a" * 42, "0X" + "a" * 40, "vitalik.eth"])
def test_malformed_addresses_are_refused(text: str) -> None:
    with pytest.raises(InvalidAddress):
        parse_address(text)


@pytest.mark.parametrize(
    "text",
    [
        *("0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "0xfB6916095ca1df60bB79Ce92cE3Ea74c37c5d359"),
        *("0xdbF03B407c01E7cD3CBea99509d93f8DDDC8C6FB", "0xD1220A0cf47c7B9Be7A2E6BA89F429762e7b9aDb"),
        *("0x52908400098527886E0F7030069857D2E4169EE7", "0xde709f2102306220921060314715629080e2fb77"),
    ],
)
def test_addresses_as_the_standard_prints_them(text: str) -> None:
    """Examples of EIP-55."""
    assert checksum_address(parse_address(text)) == text


@given(st.binary(min_size=20, max_size=20))
def test_any_address_there_and_back(address: bytes) -> None:
    written = checksum_address(address)
    assert parse_address(written) == parse_address(written.lower()) == address


@given(st.binary(min_size=20, max_size=20), st.integers(2, 41))
def test_one_letter_in_another_case_is_a_wrong_checksum(address: bytes, at: int) -> None:
    right = checksum_address(address)
    wrong = right[:at] + right[at].swapcase() + right[at + 1 :]
    if wrong == right or wrong[2:] in (wrong[2:].lower(), wrong[2:].upper()):
        assert parse_address(wrong) == address
        return
    with pytest.raises(InvalidAddress):
        parse_address(wrong)
