"""Who is let in by a gateway's controls, and which names can be had."""

from datetime import UTC, datetime

import pytest

from roost.storage.gateways import model
from roost.storage.gateways.errors import InvalidControl, InvalidDomain
from roost.storage.gateways.model import Control, ControlKind, StorageGateway, admits

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def gateway(*controls: tuple[ControlKind, str]) -> StorageGateway:
    made = [
        Control(str(n), kind, value, NOW, model.digest(value) if kind is ControlKind.TOKEN else None)
        for n, (kind, value) in enumerate(controls)
    ]
    return StorageGateway("g", "t", "shop", NOW, made)


def test_without_controls_everybody_may_ask_for_its_own() -> None:
    assert gateway().is_restricted
    assert admits(gateway(), None, None, None)
    assert not gateway((ControlKind.HOST, "a.b")).is_restricted


def test_one_control_that_matches_is_enough() -> None:
    controlled = gateway(
        (ControlKind.TOKEN, "rgw_1"), (ControlKind.ADDRESS, "10.1.0.0/16"), (ControlKind.HOST, "shop.example")
    )
    assert admits(controlled, "rgw_1", "192.0.2.1", None)
    assert admits(controlled, "wrong", "10.1.2.3", None)
    assert admits(controlled, None, "::ffff:10.1.2.3", None)
    assert admits(controlled, None, None, "https://SHOP.example:8443/page?x=1")
    assert not admits(controlled, None, None, None)
    assert not admits(controlled, "rgw_2", "10.2.0.1", "https://evil.example/shop.example")


@pytest.mark.parametrize(
    "origin", ["", "null", "shop.example", "https://shop.example.evil.example", "https://[", "https://xshop.example"]
)
def test_origins_that_are_another(origin: str) -> None:
    assert not admits(gateway((ControlKind.HOST, "shop.example")), None, None, origin)


def test_all_names_below_a_host() -> None:
    below = gateway((ControlKind.HOST, "*.shop.example"))
    assert admits(below, None, None, "https://a.b.shop.example")
    assert not admits(below, None, None, "https://shop.example")


@pytest.mark.parametrize("address", ["", "x", "10.1.2.3.4", "fe80::1%eth0", "2001:db8::1"])
def test_addresses_that_are_none_or_another(address: str) -> None:
    assert not admits(gateway((ControlKind.ADDRESS, "10.1.0.0/16")), None, address, None)


def test_how_controls_are_written() -> None:
    assert model.checked_range(" 10.1.2.3/8 ") == "10.0.0.0/8"
    assert model.checked_range("2001:DB8::1") == "2001:db8::1"
    assert model.checked_host("https://Shop.Example:1/x") == "shop.example"
    assert model.checked_host("*.Shop.Example.") == "*.shop.example"


@pytest.mark.parametrize("text", ["", "10.1.2.3/33", "x", "10.1.2", "1" * 300])
def test_what_is_no_range(text: str) -> None:
    with pytest.raises(InvalidControl):
        model.checked_range(text)


@pytest.mark.parametrize("text", ["", "*", "a b", "https://", "a..b", "*.*.a", "ä.example", "a." * 130, "a\n"])
def test_what_is_no_host(text: str) -> None:
    with pytest.raises(InvalidControl):
        model.checked_host(text.replace("\n", "\nb"))


@pytest.mark.parametrize("label", ["shop", "my-shop-2", "Shop", "a" * 63])
def test_names(label: str) -> None:
    assert model.checked_label(label) == label.lower()


@pytest.mark.parametrize(
    "label",
    [
        *("", "ab", "-shop", "shop-", "a.b", "a_b", "schön", "a" * 64, "xn--80ak6aa92e", "sh--op"),
        *("api", "www", "gateways", "ipfs", "paypal", "my-paypal-shop", "metamask1", "a b"),
    ],
)
def test_names_that_nobody_gets(label: str) -> None:
    with pytest.raises(InvalidDomain):
        model.checked_label(label)


@pytest.mark.parametrize("domain", ["", "localhost", "*.a.b", "10.1.2.3", "a_b.c", "a..b", "x." * 140 + "y"])
def test_domains_that_cannot_be(domain: str) -> None:
    with pytest.raises(InvalidDomain):
        model.checked_custom_domain(domain)


def test_a_domain() -> None:
    assert model.checked_custom_domain("Files.Example.org.") == "files.example.org"
