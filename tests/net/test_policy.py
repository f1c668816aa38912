from ipaddress import ip_address, ip_network

import pytest

from roost.net.errors import HostRefused, PortRefused
from roost.net.host_port import HostPort
from roost.net.policy import EgressPolicy


def test_only_public_addresses_are_admitted_by_default() -> None:
    assert EgressPolicy().admits_address(ip_address("8.8.8.8"))
    assert not EgressPolicy().admits_address(ip_address("10.0.0.1"))


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
    for port in (22, 80, 443, 465, 587, 5432, 65535):
        EgressPolicy().check_target(HostPort("a.example", port))
    EgressPolicy(deny_ports=frozenset()).check_target(HostPort("a.example", 25))
    with pytest.raises(PortRefused):
        EgressPolicy().check_target(HostPort("a.example", 25))
    with pytest.raises(HostRefused):
        EgressPolicy(deny_hosts=["example"]).check_target(HostPort("a.example", 443))
