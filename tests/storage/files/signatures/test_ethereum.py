"""Signatures of another implementation are accepted, and every changed byte is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.core.ethereum import keccak256
from roost.storage.files.signatures.model import (
    InvalidSignature,
    is_signer,
    parse_signature,
    personal_message_digest,
    typed_data_digest,
)
from tests.support.wallet import Account, LocalAccount, encode_defunct, encode_typed_data

CID, DATE = "bafkreih5aznjvttude6c3wbvqeebb6rlx5wkbzyppv7garjiubll2ceym4", "2026-11-21T10:29:47.355Z"
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def account(number: int = 1) -> LocalAccount:
    return Account.from_key(number.to_bytes(32, "big"))


def sign_typed(signer: LocalAccount, cid: str = CID, date: str = DATE) -> str:
    signable = encode_typed_data(
        {"name": "Sign Content", "version": "1.0.0", "chainId": 1},
        {
            "Sign": [
                {"name": "address", "type": "address"},
                {"name": "cid", "type": "string"},
                {"name": "date", "type": "string"},
            ]
        },
        {"address": signer.address, "cid": cid, "date": date},
    )
    return "0x" + signer.sign_message(signable).signature.hex()


def address(number: int = 1) -> bytes:
    return bytes.fromhex(account(number).address[2:])


def checks(text: str, who: bytes, *digests: bytes) -> bool:
    return is_signer(who, parse_signature(text), digests)


@pytest.mark.parametrize("number", range(1, 17))
def test_typed_data_as_wallets_sign_it(number: int) -> None:
    signature = sign_typed(account(number))
    assert checks(signature, address(number), typed_data_digest(address(number), CID, DATE))
    assert not checks(signature, address(number + 1), typed_data_digest(address(number + 1), CID, DATE))
    assert not checks(signature, address(number), typed_data_digest(address(number), CID + "x", DATE))
    assert not checks(signature, address(number), typed_data_digest(address(number), CID, DATE.replace("7", "8")))


@pytest.mark.parametrize("text", ["", CID, "grüß dich", "x" * 1000])
def test_plain_texts_as_wallets_sign_them(text: str) -> None:
    signature = "0x" + account().sign_message(encode_defunct(text=text)).signature.hex()
    assert checks(signature, address(), personal_message_digest("other"), personal_message_digest(text))
    assert not checks(signature, address(), personal_message_digest(text + "."))


@pytest.mark.parametrize("last", [0, 1])
def test_both_ways_to_write_the_recovery_bit(last: int) -> None:
    number = next(n for n in range(1, 100) if sign_typed(account(n)).endswith(f"{27 + last:x}"))
    signature = sign_typed(account(number))[:-2] + f"{last:02x}"
    assert checks(signature, address(number), typed_data_digest(address(number), CID, DATE))


def test_the_other_signature_of_the_same_is_refused() -> None:
    """With n - s and the other recovery bit the same key is recovered (EIP-2)."""
    raw = bytes.fromhex(sign_typed(account())[2:])
    high = ORDER - int.from_bytes(raw[32:64], "big")
    twin = raw[:32] + high.to_bytes(32, "big") + bytes((55 - raw[64],))
    with pytest.raises(InvalidSignature):
        parse_signature("0x" + twin.hex())


@pytest.mark.parametrize(
    "text",
    [
        *("", "0x", "0x" + "ab" * 64, "0x" + "ab" * 66, "ab" * 65, "0x" + "zz" * 65),
        *("0x" + "00" * 64 + "02", "0x" + "00" * 64 + "1a", "0x" + "00" * 64 + "1d", "0x" + "\u0660" * 130),
    ],
)
def test_malformed_signatures_are_refused(text: str) -> None:
    with pytest.raises(InvalidSignature):
        parse_signature(text)


@pytest.mark.parametrize("r", [0, ORDER, 2**256 - 1])
@pytest.mark.parametrize("s", [0, 1])
def test_numbers_that_are_out_of_range_sign_nothing(r: int, s: int) -> None:
    text = "0x" + r.to_bytes(32, "big").hex() + s.to_bytes(32, "big").hex() + "1b"
    assert not checks(text, address(), typed_data_digest(address(), CID, DATE))


def test_a_digest_as_the_standard_prints_it() -> None:
    greeting = "d9eba16ed0ecae432b71fe008c98cc872bb4cc214d3220a36f365326cf807d68"
    assert personal_message_digest("hello world").hex() == greeting


def test_the_length_in_a_digest_is_in_bytes() -> None:
    data = b"\x19Ethereum Signed Message:\n2\xc3\xbc"
    assert personal_message_digest("\u00fc") == keccak256(data)


@given(st.binary(min_size=65, max_size=65))
def test_any_bytes_are_somebody_s_signature_or_none(signature: bytes) -> None:
    try:
        parsed = parse_signature("0x" + signature.hex())
    except InvalidSignature:
        return
    assert not is_signer(address(), parsed, [personal_message_digest(CID), typed_data_digest(address(), CID, DATE)])


def test_a_contract_s_signature_is_none() -> None:
    """ERC-1271 signatures have any length and cannot be verified here."""
    for length in (0, 64, 66, 96, 128):
        with pytest.raises(InvalidSignature):
            parse_signature("0x" + "11" * length)


@pytest.mark.parametrize("at", [0, 31, 32, 63])
def test_every_byte_of_a_signature_counts(at: int) -> None:
    raw = bytearray.fromhex(sign_typed(account())[2:])
    raw[at] ^= 1
    assert not checks("0x" + raw.hex(), address(), typed_data_digest(address(), CID, DATE))


def test_nothing_to_sign_is_signed_by_nobody() -> None:
    assert not is_signer(address(), parse_signature(sign_typed(account())), [])
