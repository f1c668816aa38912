from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.net.addresses import is_loopback, is_public, parse_address

v4 = st.ip_addresses(v=4)
v6_global = st.integers(0x2000 << 112, (0x4000 << 112) - 1).map(IPv6Address)
v6 = st.one_of(st.ip_addresses(v=6), v6_global)

REFUSED = [
    "0.0.0.0", "0.1.2.3", "10.0.0.0", "10.255.255.255", "100.64.0.0", "100.100.100.200", "100.127.255.255",
    "127.0.0.1", "127.255.255.255", "168.63.129.16", "169.254.169.254", "169.254.0.0", "172.16.0.0",
    "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.0", "192.168.255.255",
    "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.255", "224.0.0.1", "239.255.255.255", "240.0.0.1",
    "255.255.255.255", "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
    "::ffff:0:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a00:1", "64:ff9b:1::808:808", "100::1", "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::1",
    "2002:a9fe:a9fe::1", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1",
    "fe80::1%eth0", "febf::1", "fec0::1", "ff02::1", "ff0e::1", "4000::1", "28.77.0.0", "28.77.255.255",
]  # fmt: skip
PUBLIC = [
    "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
    "128.0.0.1", "168.63.129.15", "169.253.255.255", "172.15.255.255", "172.32.0.0", "192.0.1.0",
    "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "::ffff:8.8.8.8",
    "64:ff9b::808:808", "2001:200::1", "2001:4860:4860::8888", "2606:4700::1111", "2a00:1450::1", "28.76.255.255",
    "28.78.0.0",
]  # fmt: skip


@pytest.mark.parametrize("text", REFUSED)
def test_special_addresses_are_not_public(text: str) -> None:
    assert not is_public(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_other_addresses_are_public(text: str) -> None:
    assert is_public(ip_address(text))


@given(v4)
def test_an_ipv4_address_is_judged_alike_in_every_form_that_reaches_it(address: IPv4Address) -> None:
    assert is_public(IPv6Address(f"::ffff:{address}")) == is_public(address)
    assert is_public(IPv6Address(f"64:ff9b::{address}")) == is_public(address)


@given(v4, st.integers(0, 2**80 - 1))
def test_tunnels_that_embed_an_address_are_refused(address: IPv4Address, rest: int) -> None:
    assert not is_public(IPv6Address(0x2002 << 112 | int(address) << 80 | rest))
    assert not is_public(IPv6Address(0x20010000 << 96 | int(address) << 64 | rest & (2**64 - 1)))


@given(st.one_of(v4, v6))
def test_nothing_is_public_here_that_the_standard_library_calls_special(address: IPv4Address | IPv6Address) -> None:
    if is_public(address):
        assert address.is_global
        assert not address.is_multicast
        assert not address.is_loopback
        assert not address.is_link_local


def test_text_becomes_an_address_or_none() -> None:
    assert parse_address("::ffff:192.0.2.7") == IPv4Address("192.0.2.7")
    assert parse_address("fd00::7") == IPv6Address("fd00::7")
    assert parse_address("localhost") is None
    assert parse_address("127.1") is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [("127.0.0.1", True), ("127.9.9.9", True), ("::1", True), ("::ffff:127.0.0.1", True), ("10.0.0.1", False)],
)
def test_loopback_addresses_are_recognised(text: str, expected: bool) -> None:
    assert is_loopback(text) is expected
