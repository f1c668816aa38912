"""Who is let in by a gateway's controls, and which names can be had."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.storage.gateways import model
from roost.storage.gateways.model import (
    AccessControl,
    AccessControlKind,
    InvalidAccessControl,
    InvalidGatewayDomain,
    StorageGateway,
    is_request_admitted,
)

NOW = datetime(2026, 11, 21, tzinfo=UTC)


def gateway(*controls: tuple[AccessControlKind, str]) -> StorageGateway:
    made = [
        AccessControl(str(n), kind, value, NOW, model.hash_token(value) if kind is AccessControlKind.TOKEN else None)
        for n, (kind, value) in enumerate(controls)
    ]
    return StorageGateway("g", "t", "shop", NOW, made)


def test_without_controls_everybody_may_ask_for_its_own() -> None:
    assert gateway().is_restricted
    assert is_request_admitted(gateway(), None, None, None)
    assert not gateway((AccessControlKind.HOST, "a.b")).is_restricted


def test_one_control_that_matches_is_enough() -> None:
    controlled = gateway(
        (AccessControlKind.TOKEN, "rgw_1"),
        (AccessControlKind.ADDRESS, "10.1.0.0/16"),
        (AccessControlKind.HOST, "shop.example"),
    )
    assert is_request_admitted(controlled, "rgw_1", "192.0.2.1", None)
    assert is_request_admitted(controlled, "wrong", "10.1.2.3", None)
    assert is_request_admitted(controlled, None, "::ffff:10.1.2.3", None)
    assert is_request_admitted(controlled, None, None, "https://SHOP.example:8443/page?x=1")
    assert not is_request_admitted(controlled, None, None, None)
    assert not is_request_admitted(controlled, "rgw_2", "10.2.0.1", "https://evil.example/shop.example")


@pytest.mark.parametrize(
    "origin", ["", "null", "shop.example", "https://shop.example.evil.example", "https://[", "https://xshop.example"]
)
def test_origins_that_are_another(origin: str) -> None:
    assert not is_request_admitted(gateway((AccessControlKind.HOST, "shop.example")), None, None, origin)


def test_all_names_below_a_host() -> None:
    below = gateway((AccessControlKind.HOST, "*.shop.example"))
    assert is_request_admitted(below, None, None, "https://a.b.shop.example")
    assert not is_request_admitted(below, None, None, "https://shop.example")


@pytest.mark.parametrize("address", ["", "x", "10.1.2.3.4", "fe80::1%eth0", "2001:db8::1"])
def test_addresses_that_are_none_or_another(address: str) -> None:
    assert not is_request_admitted(gateway((AccessControlKind.ADDRESS, "10.1.0.0/16")), None, address, None)


def test_how_controls_are_written() -> None:
    assert model.parse_ip_range(" 10.1.2.3/8 ") == "10.0.0.0/8"
    assert model.parse_ip_range("2001:DB8::1") == "2001:db8::1"
    assert model.parse_ip_range("::ffff:10.1.2.3") == "10.1.2.3"
    assert model.parse_ip_range("::ffff:10.1.2.3/104") == "10.0.0.0/8"
    assert is_request_admitted(
        gateway((AccessControlKind.ADDRESS, model.parse_ip_range("::ffff:10.1.2.3"))), None, "10.1.2.3", None
    )
    assert model.parse_ip_range("::ffff:0:0/95") == "::fffe:0:0/95"
    assert model.parse_host("https://Shop.Example:1/x") == "shop.example"
    assert model.parse_host("*.Shop.Example.") == "*.shop.example"


@pytest.mark.parametrize("text", ["", "10.1.2.3/33", "x", "10.1.2", "fe80::1%eth0", "1" * 300])
def test_malformed_ip_ranges_are_refused(text: str) -> None:
    with pytest.raises(InvalidAccessControl):
        model.parse_ip_range(text)


@pytest.mark.parametrize("text", ["", "*", "a b", "https://", "a..b", "*.*.a", "ä.example", "a." * 130, "a\n"])
def test_malformed_hosts_are_refused(text: str) -> None:
    with pytest.raises(InvalidAccessControl):
        model.parse_host(text.replace("\n", "\nb"))


@pytest.mark.parametrize("label", ["shop", "my-shop-2", "Shop", "a" * 63])
def test_names_become_lower_case(label: str) -> None:
    assert model.parse_label(label) == label.lower()


@pytest.mark.parametrize(
    "label",
    [
        *("", "ab", "-shop", "shop-", "a.b", "a_b", "schön", "a" * 64, "xn--80ak6aa92e", "sh--op"),
        *("api", "www", "gateways", "ipfs", "paypal", "my-paypal-shop", "metamask1", "a b"),
    ],
)
def test_names_that_nobody_gets(label: str) -> None:
    with pytest.raises(InvalidGatewayDomain):
        model.parse_label(label)


TOKEN, HOST, ADDRESS = AccessControlKind.TOKEN, AccessControlKind.HOST, AccessControlKind.ADDRESS


@pytest.mark.parametrize(
    ("kind", "value", "token", "ip", "origin", "admitted"),
    [
        (TOKEN, "rgw_1", "rgw_1", None, None, True),
        (TOKEN, "rgw_1", "", None, None, False),
        (TOKEN, "rgw_1", "rgw_1 ", None, None, False),
        (TOKEN, "rgw_1", "\ud800", None, None, False),
        (TOKEN, "rgw_1", None, "192.0.2.1", "https://rgw_1", False),
        (ADDRESS, "192.0.2.1", None, "192.0.2.1", None, True),
        (ADDRESS, "192.0.2.1", None, "192.0.2.10", None, False),
        (ADDRESS, "192.0.2.0/31", None, "192.0.2.1", None, True),
        (ADDRESS, "192.0.2.0/31", None, "::ffff:192.0.2.1", None, True),
        (ADDRESS, "0.0.0.0/0", None, "2001:db8::1", None, False),
        (ADDRESS, "2001:db8::/32", None, "2001:DB8::1", None, True),
        (ADDRESS, "2001:db8::/32", None, "192.0.2.1", None, False),
        (ADDRESS, "192.0.2.1", None, "192.0.2.1:80", None, False),
        (HOST, "a.example", None, None, "https://a.example", True),
        (HOST, "a.example", None, None, "http://A.Example:8080", True),
        (HOST, "a.example", None, None, "https://a.example/page?x=https://b.example", True),
        (HOST, "a.example", None, None, "https://user@a.example", True),
        (HOST, "a.example", None, None, "https://a.example@b.example", False),
        (HOST, "a.example", None, None, "https://b.example/https://a.example", False),
        (HOST, "a.example", None, None, "https://b.a.example", False),
        (HOST, "*.a.example", None, None, "https://b.a.example", True),
        (HOST, "*.a.example", None, None, "https://ba.example", False),
        (HOST, "*.a.example", None, None, "https://b.a.example.evil", False),
        (HOST, "a.example", None, None, "file:///a.example", False),
        (HOST, "a.example", None, None, "a.example", False),
    ],
)
def test_who_is_let_in(
    kind: AccessControlKind, value: str, token: str | None, ip: str | None, origin: str | None, admitted: bool
) -> None:
    assert is_request_admitted(gateway((kind, value)), token, ip, origin) is admitted


@given(st.text(max_size=20), st.text(max_size=20), st.text(max_size=30))
def test_nothing_that_comes_breaks_it(token: str, ip: str, origin: str) -> None:
    controlled = gateway((TOKEN, "rgw_1"), (ADDRESS, "192.0.2.1"), (HOST, "a.example"))
    assert is_request_admitted(controlled, token, ip, origin) is (token == "rgw_1" or ip == "192.0.2.1")


@given(st.text(max_size=70))
def test_any_name_is_a_label_or_refused(given_: str) -> None:
    try:
        label = model.parse_label(given_)
    except InvalidGatewayDomain:
        return
    assert 3 <= len(label) <= 63
    assert label.isascii()
    assert label == label.lower().strip("-")
    assert model.parse_label(label) == label


@given(st.text(max_size=30))
def test_any_host_is_one_that_is_matched_or_refused(given_: str) -> None:
    try:
        host = model.parse_host(given_)
    except InvalidAccessControl:
        return
    asked = f"https://{host.replace('*', 'sub')}/x"
    assert is_request_admitted(gateway((HOST, host)), None, None, asked)
    assert model.parse_host(host) == host


@given(st.ip_addresses(), st.integers(0, 32))
def test_any_range_lets_its_own_in(address: object, prefix: int) -> None:
    checked = model.parse_ip_range(f"{address}/{prefix}")
    assert is_request_admitted(gateway((ADDRESS, checked)), None, str(address), None) or "::ffff:" in str(address)
    assert model.parse_ip_range(checked) == checked


def test_abbreviated_token_is_not_the_token() -> None:
    token = "rgw_" + "0123456789abcdef" * 4
    assert model.abbreviate_token(token) == "rgw_01234567\u2026"
    assert token not in model.abbreviate_token(token)
    assert model.hash_token(token) != model.hash_token(token + "0")
