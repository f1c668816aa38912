from ipaddress import IPv4Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.net.errors import InvalidTarget
from roost.net.host_port import HostPort, parse_host_port


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("example.com:443", "example.com"),
        ("EXAMPLE.com.:443", "example.com"),
        ("xn--bcher-kva.example:443", "xn--bcher-kva.example"),
        ("_dmarc.example.com:443", "_dmarc.example.com"),
        ("localhost:443", "localhost"),
        ("1password.com:443", "1password.com"),
        ("127.0.0.1.nip.example:443", "127.0.0.1.nip.example"),
    ],
)
def test_names_of_hosts_are_normalised(text: str, host: str) -> None:
    assert parse_host_port(text) == HostPort(host, 443)


@pytest.mark.parametrize(
    "text",
    [
        "127.0.0.1", "127.1", "127.0.1", "0177.0.0.1", "0x7f.0.0.1", "0x7F000001", "2130706433", "017700000001",
        "127.0.0.1.", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
    ],
)  # fmt: skip
def test_every_spelling_of_loopback_is_loopback(text: str) -> None:
    target = parse_host_port(f"{text}:80")
    assert target.address is not None
    assert getattr(target.address, "ipv4_mapped", None) or target.address == IPv4Address("127.0.0.1")
    assert target.host == str(target.address)


@given(st.ip_addresses(v=4))
def test_numbers_are_read_as_the_operating_system_reads_them(address: IPv4Address) -> None:
    value, octets = int(address), address.packed
    for text in (
        str(value),
        hex(value),
        f"0{value:o}",
        ".".join(map(hex, octets)),
        ".".join(f"0{octet:o}" for octet in octets),
        f"{octets[0]}.{value & 0xFFFFFF}",
        f"{octets[0]}.{octets[1]}.{value & 0xFFFF}",
    ):
        assert parse_host_port(f"{text}:1").address == address


@given(st.ip_addresses(v=6))
def test_ipv6_addresses_are_parsed(address: object) -> None:
    assert parse_host_port(f"[{address}]:1").address == ip_address(str(address))


def test_port_has_a_default_and_bounds() -> None:
    assert parse_host_port("a.example", 80).port == 80
    assert parse_host_port("a.example:8080", 80).port == 8080
    for text in ("a.example", "a.example:0", "a.example:65536", "a.example:", "a.example:-1", "a.example:1_0"):
        with pytest.raises(InvalidTarget):
            parse_host_port(text)


@pytest.mark.parametrize(
    "host",
    [
        "", ".", "..", "a..b", ".a", "-a.example", "a b", "a%2eb", "user@host", "user:pw@host", "a/b", "a\\b", "a\x00b",
        "\uff41.example", "\uff11\uff12\uff17.0.0.1", "127\u30020\u30020\u30021",
        "256.256.256.256", "1.2.3.4.5", "4294967296", "0x", "09.0.0.1",
        "a.0x7f", "::1", "[::1", "[127.0.0.1]", "[fe80::1%eth0]", "[:::]", "[v1.x]", "*.example", "a" * 64,
        "a." * 127 + "a",
    ],
)  # fmt: skip
def test_malformed_hosts_are_refused(host: str) -> None:
    with pytest.raises(InvalidTarget):
        parse_host_port(f"{host}:80")


@given(st.text(max_size=60))
def test_junk_is_refused_or_gives_a_plain_host(text: str) -> None:
    try:
        target = parse_host_port(text, 80)
    except InvalidTarget:
        return
    assert target.host.isascii()
    assert not set(target.host) & set("/@% \r\n\0")
    assert 1 <= target.port <= 65535
