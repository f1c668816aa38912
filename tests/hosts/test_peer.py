from ipaddress import ip_network

import pytest

from roost.hosts.peer import client_address

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
    ],
)
def test_the_last_that_no_trusted_proxy_speaks_for(peer: str, forwarded: str, client: str) -> None:
    assert client_address(peer, forwarded, PROXIES) == client


def test_nobody_is_believed_unless_named() -> None:
    assert client_address("127.0.0.1", "1.2.3.4", ()) == "127.0.0.1"
