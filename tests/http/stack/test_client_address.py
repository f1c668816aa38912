from ipaddress import ip_network

import pytest

from roost.http.stack.client_address import OWN_PROXY, client_address, forwarded_client_ip, limited_client

PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"))


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("198.51.100.1", "", "198.51.100.1"),
        ("198.51.100.1", "1.2.3.4", "198.51.100.1"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "6.6.6.6, 203.0.113.9", "203.0.113.9"),
        ("10.0.0.1", "6.6.6.6, 203.0.113.9, 10.0.0.2", "203.0.113.9"),
        ("10.0.0.1", "10.0.0.3,10.0.0.2", "10.0.0.3"),
        ("fd00::1", "2001:db8::7", "2001:db8::7"),
        ("10.0.0.1", "203.0.113.9, nonsense", "10.0.0.1"),
        ("10.0.0.1", "203.0.113.9:4711", "10.0.0.1"),
        ("10.0.0.1", ",", "10.0.0.1"),
        ("", "1.2.3.4", ""),
        ("::ffff:10.0.0.1", "203.0.113.9", "203.0.113.9"),
    ],
)
def test_the_last_that_no_trusted_proxy_speaks_for(peer: str, forwarded: str, client: str) -> None:
    assert client_address(peer, forwarded, PROXIES) == client


def test_our_own_proxy_is_believed_and_others_cannot_pass_for_it() -> None:
    assert client_address(OWN_PROXY, "6.6.6.6, 203.0.113.9", ()) == "203.0.113.9"
    assert client_address(OWN_PROXY, f"203.0.113.9, {OWN_PROXY}", ()) == OWN_PROXY
    assert forwarded_client_ip(OWN_PROXY) == "192.0.0.8"


def test_nobody_is_believed_unless_named() -> None:
    assert client_address("127.0.0.1", "1.2.3.4", ()) == "127.0.0.1"


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", "", "0.0.0.0", "::", "nonsense", "/run/sock"]
)
def test_a_gateway_never_takes_a_client_for_its_own_container(address: str) -> None:
    assert forwarded_client_ip(address) == "192.0.0.8"


@pytest.mark.parametrize(
    ("address", "told"),
    [("203.0.113.9", "203.0.113.9"), ("2001:db8::7", "2001:db8::7"), ("::ffff:203.0.113.9", "203.0.113.9")],
)
def test_others_are_told_as_they_are(address: str, told: str) -> None:
    assert forwarded_client_ip(address) == told


@pytest.mark.parametrize(
    ("client", "peer", "headers", "limited"),
    [
        ("127.0.0.1", "127.0.0.1", {}, None),
        ("::1", "::1", {}, None),
        ("127.0.0.1", OWN_PROXY, {"x-forwarded-for"}, None),
        ("127.0.0.1", "10.0.0.1", {"x-forwarded-for"}, None),
        ("127.0.0.1", "127.0.0.1", {"x-forwarded-for"}, "127.0.0.1"),  # anyone behind a proxy that is not trusted
        ("127.0.0.1", "127.0.0.1", {"via"}, "127.0.0.1"),
        (OWN_PROXY, OWN_PROXY, {}, OWN_PROXY),
        ("192.0.2.1", "127.0.0.1", {}, "192.0.2.1"),
        ("2001:db8::1", "2001:db8::1", {}, "2001:db8::/64"),
        ("", "", {}, ""),
    ],
)
def test_only_programs_of_this_machine_have_no_limits(
    client: str, peer: str, headers: set[str], limited: str | None
) -> None:
    trusted = [ip_network("10.0.0.0/8")]
    assert limited_client(client, peer, headers, trusted, limits_loopback=False) == limited
    assert limited_client(client, peer, headers, trusted, limits_loopback=True) is not None
