"""Forms of x402: what is parsed, what is written, and that the SDK reads it."""

import base64
import json
from dataclasses import replace
from typing import Any

import pytest
from x402.schemas import PaymentPayload, PaymentRequired, PaymentRequirements, SettleResponse
from x402.schemas.v1 import PaymentPayloadV1, PaymentRequiredV1, PaymentRequirementsV1

from roost.core.payment_asset import PaymentNetwork
from roost.storage.payments import forms
from roost.storage.payments.model import PaymentRefused
from tests.storage.payments.payer import ASSET, RESOURCE, SELLER, TERMS, new_payer, payment_json, sign_transfer

VERSIONS = pytest.mark.parametrize("version", [1, 2])


def encode(payment: Any) -> str:
    return base64.b64encode(json.dumps(payment).encode()).decode()


@VERSIONS
def test_payment_of_each_version_is_parsed(version: int) -> None:
    payer = new_payer()
    transfer = sign_transfer(payer)
    payment = forms.parse_payment(encode(payment_json(transfer, version)))
    assert (payment.x402_version, payment.payload.transfer, payment.accepts(TERMS)) == (version, transfer, True)
    assert payment.resource_url is None
    assert not payment.accepts(replace(TERMS, asset=replace(ASSET, network=PaymentNetwork(8453, "base"))))


@VERSIONS
def test_a_facilitator_gets_what_was_parsed_and_no_more(version: int) -> None:
    payer = new_payer()
    sent = payment_json(sign_transfer(payer), version)
    sent |= {"extensions": {"x": 1}, "more": "x"}
    sent["payload"] |= {"permit2Authorization": {}}
    request = forms.parse_payment(encode(sent)).to_request(TERMS, RESOURCE)
    assert request.payload.keys() == payment_json(sign_transfer(payer), version).keys() | (
        {"resource"} if version == 2 else set()
    )
    assert request.payload["payload"].keys() == {"signature", "authorization"}
    authorization = request.payload["payload"]["authorization"]
    assert (authorization["from"], authorization["to"]) == (payer.address, SELLER)
    payload, requirements = (
        (PaymentPayload, PaymentRequirements) if version == 2 else (PaymentPayloadV1, PaymentRequirementsV1)
    )
    payload.model_validate(request.payload)
    assert requirements.model_validate(request.requirements).get_amount() == "10000"


def test_the_case_of_an_address_means_nothing() -> None:
    sent = payment_json(sign_transfer(new_payer()))
    sent["accepted"] |= {"asset": ASSET.address.lower(), "payTo": SELLER.upper().replace("X", "x")}
    assert forms.parse_payment(encode(sent)).accepts(TERMS)


@pytest.mark.parametrize(
    "change",
    [
        {"scheme": "upto"},
        {"network": "base-sepolia"},
        {"amount": "10000.0"},
        {"amount": "010000"},
        {"maxTimeoutSeconds": 61},
        {"extra": {}},
        {"extra": {"name": "USDC", "version": "2", "more": 1}},
    ],
)
def test_other_terms_are_not_accepted(change: dict[str, Any]) -> None:
    sent = payment_json(sign_transfer(new_payer()))
    sent["accepted"] |= change
    assert not forms.parse_payment(encode(sent)).accepts(TERMS)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("", "base64"),
        ("%%", "base64"),
        ("e30", "base64"),
        ("e30=", "x402Version"),
        (encode([]), "x402Version"),
        (encode({"x402Version": 3}), "x402Version"),
        (encode({"x402Version": "1"}), "x402Version"),
        (encode({"x402Version": True}), "malformed"),
        (encode({"x402Version": 2}), "malformed: payload"),
        (base64.b64encode(b"[" * 9_000).decode(), "base64"),
        (base64.b64encode(b'{"x402Version": 1, "scheme": "\xff"}').decode(), "base64"),
        ("A" * (forms.HEADER_LIMIT + 1), "at most"),
    ],
)
def test_malformed_headers_are_refused(header: str, words: str) -> None:
    with pytest.raises(PaymentRefused, match=words):
        forms.parse_payment(header)


@VERSIONS
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("from", "0x12"),
        ("from", "11" * 20),
        ("to", 7),
        ("value", 10_000),
        ("value", "1e4"),
        ("value", "+1"),
        ("value", "٣"),
        ("value", str(2**256)),
        ("validAfter", "-1"),
        ("validBefore", "9" * 100),
        ("nonce", "0x" + "ab" * 31),
        ("nonce", None),
    ],
)
def test_malformed_transfers_are_refused(version: int, field: str, value: Any) -> None:
    sent = payment_json(sign_transfer(new_payer()), version)
    sent["payload"]["authorization"][field] = value
    with pytest.raises(PaymentRefused, match="malformed"):
        forms.parse_payment(encode(sent))


@pytest.mark.parametrize("signature", ["", "0x", "0x1", "0xzz", "11" * 65, "0x" + "11" * 5_000, None])
def test_malformed_signatures_are_refused(signature: Any) -> None:
    sent = payment_json(sign_transfer(new_payer()))
    sent["payload"]["signature"] = signature
    with pytest.raises(PaymentRefused):
        forms.parse_payment(encode(sent))


def test_required_payment_is_read_by_the_sdk() -> None:
    unnamed = replace(TERMS, asset=replace(ASSET, network=PaymentNetwork(99)))
    old = PaymentRequiredV1.model_validate(forms.required_payment_v1("why", [TERMS, unnamed], RESOURCE))
    assert [(one.network, one.description, one.mime_type) for one in old.accepts] == [
        ("base-sepolia", "One read", "text/plain")
    ]
    new = PaymentRequired.model_validate(forms.required_payment("why", [TERMS, unnamed], RESOURCE))
    assert [one.network for one in new.accepts] == ["eip155:84532", "eip155:99"]
    assert (new.error, new.resource and new.resource.url) == ("why", RESOURCE.url)
    for version, network in ((1, "base-sepolia"), (2, "eip155:84532")):
        receipt = SettleResponse.model_validate(forms.create_receipt(version, TERMS, SELLER.lower(), "0x1"))
        assert (receipt.success, receipt.network, receipt.payer) == (True, network, SELLER)


def test_headers_are_base64_of_json() -> None:
    assert json.loads(base64.b64decode(forms.encode_header({"a": "ä"}), validate=True)) == {"a": "ä"}
