from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.agents.egress.policy import EgressPolicy, is_public

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
    assert not EgressPolicy().admits_address(ip_address(text))


@pytest.mark.parametrize("text", PUBLIC)
def test_public_addresses_are_admitted(text: str) -> None:
    assert EgressPolicy().admits_address(ip_address(text))


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


def test_an_opened_network_is_admitted_in_all_forms_and_alone() -> None:
    policy = EgressPolicy(allow_private=[ip_network("10.1.0.0/16"), ip_network("fd00::/64")])
    for text in ("10.1.2.3", "::ffff:10.1.2.3", "64:ff9b::a01:203", "fd00::5"):
        assert policy.admits_address(ip_address(text))
        assert policy.opens(ip_address(text))
    assert not policy.admits_address(ip_address("10.2.0.1"))
    assert not policy.admits_address(ip_address("fd01::1"))
    assert not policy.opens(ip_address("8.8.8.8"))


def test_a_denied_name_covers_those_below_it() -> None:
    policy = EgressPolicy(deny_hosts=["Evil.example.", "8.8.8.8"])
    assert not policy.admits_host("evil.example")
    assert not policy.admits_host("a.b.evil.example")
    assert not policy.admits_host("8.8.8.8")
    assert policy.admits_host("notevil.example")
    assert policy.admits_host("example")


def test_with_allowed_names_nothing_else_is_reachable_and_denied_names_win() -> None:
    policy = EgressPolicy(allow_hosts=["example.com"], deny_hosts=["bad.example.com"])
    assert policy.admits_host("example.com")
    assert policy.admits_host("api.example.com")
    assert not policy.admits_host("bad.example.com")
    assert not policy.admits_host("other.org")
    assert not policy.admits_host("8.8.8.8")
    assert not EgressPolicy(allow_hosts=[]).admits_host("example.com")


def test_only_mail_between_servers_is_closed() -> None:
    assert not EgressPolicy().admits_port(25)
    assert all(map(EgressPolicy().admits_port, (22, 80, 443, 465, 587, 5432, 65535)))
    assert EgressPolicy(deny_ports=frozenset()).admits_port(25)
