"""Networks and tokens: both names of a network, built-in and configured tokens, contradictions."""

import pytest

from roost.core.ethereum import InvalidAddress
from roost.core.payment_asset import PaymentAsset, PaymentNetwork
from roost.storage.payments.instructions.model import (
    BUILT_IN,
    InvalidPaymentAssets,
    InvalidPaymentInstruction,
    PaymentAssets,
)

BASE, SEPOLIA = BUILT_IN
LOWER, UPPER = "0x" + "ab" * 20, "0x" + "AB" * 20
POLYGON = PaymentAsset(PaymentNetwork(137, "polygon"), LOWER, "USD Coin", "2")


@pytest.mark.parametrize(
    ("name", "network"),
    [
        ("base", PaymentNetwork(8453, "base")),
        ("eip155:8453", PaymentNetwork(8453, "base")),
        ("base-sepolia", PaymentNetwork(84532, "base-sepolia")),
        ("eip155:84532", PaymentNetwork(84532, "base-sepolia")),
        *((name, None) for name in ("Base", "eip155:08453", "eip155:", "8453", "", "polygon", "eip155:137", "None")),
    ],
)
def test_a_network_has_two_names(name: str, network: PaymentNetwork | None) -> None:
    assert PaymentAssets().find_network(name) == network


def test_a_network_in_the_form_of_version_2() -> None:
    assert (BASE.network.caip2, SEPOLIA.network.caip2) == ("eip155:8453", "eip155:84532")


def test_a_token_is_found_on_its_network_in_any_case() -> None:
    assets = PaymentAssets()
    for network in ("base", "eip155:8453"):
        for address in (BASE.address, BASE.address.lower()):
            assert assets.find_asset(network, address) == BASE
        assert assets.find_asset(network, SEPOLIA.address) is None
    assert assets.find_asset("polygon", BASE.address) is None
    with pytest.raises(InvalidAddress):
        assets.find_asset("base", BASE.address.swapcase())


def test_refused_asset_names_the_allowed_ones() -> None:
    assets = PaymentAssets([POLYGON])
    assert assets.require_asset("eip155:137", UPPER) == POLYGON
    with pytest.raises(InvalidPaymentInstruction, match=r"^network must be one of base, .*, eip155:137, got 'x'$"):
        assets.require_asset("x", LOWER)
    message = rf"^asset on polygon must be one of {LOWER} \(USD Coin\), got '{BASE.address}'$"
    with pytest.raises(InvalidPaymentInstruction, match=message):
        assets.require_asset("polygon", BASE.address)


def test_configured_tokens_join_or_replace_those_built_in() -> None:
    euro = PaymentAsset(PaymentNetwork(8453), LOWER, "EURC", "2")
    other = PaymentAsset(PaymentNetwork(8453), BASE.address, "USDC", "3")
    private = PaymentAsset(PaymentNetwork(31337), LOWER, "Test", "1")
    assets = PaymentAssets([euro, other, private])
    found = assets.find_asset("base", UPPER)
    assert found == PaymentAsset(BASE.network, LOWER, "EURC", "2")
    assert assets.require_asset("base", BASE.address).version == "3"
    assert assets.find_network("eip155:31337") == PaymentNetwork(31337)


@pytest.mark.parametrize(
    ("configured", "message"),
    [
        ([PaymentNetwork(8453, "main")], "payment_assets: eip155:8453 is named base, got 'main'"),
        ([PaymentNetwork(5, "base")], "payment_assets: base is eip155:8453, got eip155:5"),
        ([PaymentNetwork(5, "a"), PaymentNetwork(6, "a")], "payment_assets: a is eip155:5, got eip155:6"),
        ([PaymentNetwork(5, "a"), PaymentNetwork(5, "b")], "payment_assets: eip155:5 is named a, got 'b'"),
    ],
)
def test_names_that_contradict(configured: list[PaymentNetwork], message: str) -> None:
    with pytest.raises(InvalidPaymentAssets) as caught:
        PaymentAssets([PaymentAsset(network, LOWER, "n", "1") for network in configured])
    assert caught.value.message == message


def test_a_configured_address_with_a_wrong_checksum() -> None:
    wrong = "0x" + BASE.address[2:].swapcase()
    with pytest.raises(InvalidPaymentAssets, match=f"payment_assets: the checksum of {wrong} is wrong"):
        PaymentAssets([PaymentAsset(BASE.network, wrong, "n", "1")])
