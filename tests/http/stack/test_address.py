from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from roost.domain_names.model import Domain
from roost.http.stack.address import HostAddresses
from roost.web.url_rule import HostAddress, HostKind
from tests.domain_names.samples import make_domain
from tests.http.fixed_ports import FixedPorts

LAPTOP = HostAddresses("localhost", 8642)
PUBLIC = HostAddresses("Roost.Example.COM.", 443, "https")


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost", "http://localhost:8642"),
        ("localhost:8642", "http://localhost:8642"),
        ("LOCALHOST.:1", "http://localhost:8642"),
        ("127.0.0.1:9", "http://127.0.0.1:8642"),
        ("[::1]:8642", "http://[::1]:8642"),
    ],
)
def test_loopback_names_are_local(host: str, origin: str) -> None:
    assert LAPTOP.parse(host) == HostAddress(HostKind.LOCAL, origin, session_cookie="roost_session")


@pytest.mark.parametrize("host", ["api.localhost", "uploads.localhost:8642", "API.LocalHost."])
def test_the_addresses_of_the_storage_api(host: str) -> None:
    address = LAPTOP.parse(host)
    assert address is not None
    assert (address.kind, address.gateway, address.agent_id) == (HostKind.STORAGE, None, None)
    assert LAPTOP.uploads_url == "http://uploads.localhost:8642"


def test_the_addresses_of_a_storage_gateway() -> None:
    origin = "http://shop.gateways.localhost:8642"
    assert LAPTOP.parse("shop.gateways.localhost") == HostAddress(HostKind.STORAGE_GATEWAY, origin, gateway="shop")
    assert LAPTOP.gateway_origin("shop") == origin
    own = LAPTOP.parse("BAFYX.ipfs.shop.gateways.localhost:1")
    assert own == HostAddress(
        HostKind.STORAGE_GATEWAY, "http://bafyx.ipfs.shop.gateways.localhost:8642", gateway="shop", cid="bafyx"
    )


@pytest.mark.parametrize(
    "host", ["gateways.localhost", "a.b.gateways.localhost", "a.b.c.gateways.localhost", "-.gateways.localhost"]
)
def test_other_names_below_the_gateways_are_none(host: str) -> None:
    assert LAPTOP.parse(host) is None


@pytest.mark.parametrize(
    ("peer_address", "host"),
    [
        ("10.1.2.3:8643", "10.1.2.3:8642"),
        ("[2001:db8::7]:8643", "[2001:db8::7]:8642"),
        ("one.internal:8643", "one.internal"),
        ("localhost:8643", "agents.localhost"),
    ],
)
def test_the_own_address_of_a_server_is_a_management_address(peer_address: str, host: str) -> None:
    addresses = HostAddresses("localhost", 8642, peer_address=peer_address)
    assert addresses.parse(host) == HostAddress(HostKind.MANAGEMENT, "http://agents.localhost:8642")
    assert addresses.parse("10.1.2.4:8642") is None
    assert addresses.parse("localhost") == LAPTOP.parse("localhost")


@pytest.mark.parametrize("host", ["agents.localhost", "agents.localhost:8642", "Agents.LocalHost."])
def test_the_management_address(host: str) -> None:
    assert LAPTOP.parse(host) == HostAddress(HostKind.MANAGEMENT, "http://agents.localhost:8642")


@pytest.mark.parametrize(
    "host", ["abc-1.agents.localhost", "ABC-1.agents.localhost:80", "abc-1.agents.localhost.:8642"]
)
def test_an_agents_own_address(host: str) -> None:
    assert LAPTOP.parse(host) == HostAddress(HostKind.AGENT, "http://abc-1.agents.localhost:8642", "abc-1")


@pytest.mark.parametrize(
    "host",
    [
        "",
        ".",
        ":8642",
        "localhost:",
        "localhost:123456",
        "localhost:8642:1",
        "localhost..",
        "user@localhost",
        "user:pass@agents.localhost",
        "localhost/agents.localhost",
        "localhost agents.localhost",
        "localhost,agents.localhost",
        " localhost",
        "localhost\t",
        "localhost\x00",
        "[::1",
        "::1",
        "[::ffff:127.0.0.1]",
        "127.0.0.1.agents.localhost",
        "0.0.0.0",
        "evil.example",
        "agents.localhost.evil.example",
        "xagents.localhost",
        "a.b.agents.localhost",
        ".agents.localhost",
        "-a.agents.localhost",
        "a-.agents.localhost",
        "a_b.agents.localhost",
        "\u00e4.agents.localhost",
        "\uff41.agents.localhost",
        "\u212a.agents.localhost",
        "x" * 64 + ".agents.localhost",
        "a" * 5000,
    ],
)
def test_malformed_hosts_have_no_address(host: str) -> None:
    assert LAPTOP.parse(host) is None


def test_a_public_domain_serves_management_at_its_root_and_keeps_loopback_local() -> None:
    management = PUBLIC.parse("roost.example.com")
    cookie = "__Host-roost_session"
    assert management == HostAddress(HostKind.MANAGEMENT, "https://roost.example.com", session_cookie=cookie)
    assert PUBLIC.parse("agents.roost.example.com:443") == HostAddress(
        HostKind.MANAGEMENT, "https://agents.roost.example.com"
    )
    assert PUBLIC.parse("localhost") == HostAddress(HostKind.LOCAL, "https://localhost", session_cookie=cookie)
    assert (PUBLIC.dashboard_url, LAPTOP.dashboard_url) == ("https://roost.example.com", "http://localhost:8642")
    assert PUBLIC.parse("a.agents.localhost") is None


def test_origins_come_from_configuration_only() -> None:
    assert LAPTOP.agents_url == "http://agents.localhost:8642"
    assert LAPTOP.agent_origin("abc") == "http://abc.agents.localhost:8642"
    assert PUBLIC.agent_origin("abc") == "https://abc.agents.roost.example.com"
    assert HostAddresses("x.org", 80).agents_url == "http://agents.x.org"
    assert HostAddresses("x.org", 443).agents_url == "http://agents.x.org:443"
    address = LAPTOP.parse("abc.agents.localhost:1")
    assert address is not None
    assert address.origin == "http://abc.agents.localhost:8642"


def test_a_registered_name_leads_where_its_domain_leads_now() -> None:
    domains = dict[str, Domain]()
    addresses = HostAddresses("localhost", 8642, domains=domains)

    def find(host: str) -> tuple[str | None, int | None] | None:
        address = addresses.parse(host)
        return None if address is None else (address.agent_id, address.port)

    assert find("App.example.com:8642") is None
    domains["app.example.com"] = domain = make_domain("app.example.com", "a1", port=3000)
    assert find("App.example.com:8642") == ("a1", 3000)
    domains["app.example.com"] = replace(domain, port=None)
    assert find("App.example.com:8642") == ("a1", None)
    domains["app.example.com"] = make_domain("app.example.com", "b2", port=4000)
    assert find("App.example.com:8642") == ("b2", 4000)
    domains.clear()
    assert find("App.example.com:8642") is None


def test_an_overlong_host_is_not_kept() -> None:
    addresses = HostAddresses()
    assert addresses.parse("a" * 260) is None
    before = addresses._parse_name.cache_info().currsize
    assert addresses.parse("a" * 60_000) is None
    assert addresses._parse_name.cache_info().currsize == before


@given(st.text(max_size=40))
def test_no_text_makes_it_fail_or_names_another_agent(text: str) -> None:
    address = LAPTOP.parse(f"{text}.agents.localhost")
    assert address is None or address.agent_id == text.lower()


@pytest.mark.parametrize("domain", ["203-0-113-7.sslip.io", "203.0.113.7.sslip.io", "203.0.113.7.nip.io"])
def test_names_that_contain_an_address_have_all_names_below_them(domain: str) -> None:
    addresses = HostAddresses(domain, 8642)
    agent = f"http://abc-1.agents.{domain}:8642"
    assert addresses.agent_origin("abc-1") == agent
    for host, kind in (
        (domain, HostKind.MANAGEMENT),
        (f"agents.{domain}", HostKind.MANAGEMENT),
        (f"abc-1.agents.{domain}", HostKind.AGENT),
        (f"api.{domain}", HostKind.STORAGE),
        (f"uploads.{domain}", HostKind.STORAGE),
        (f"shop.gateways.{domain}", HostKind.STORAGE_GATEWAY),
        (f"bafyx.ipfs.shop.gateways.{domain}", HostKind.STORAGE_GATEWAY),
    ):
        address = addresses.parse(f"{host}:8642")
        assert (address and address.kind, address and address.origin) == (kind, f"http://{host}:8642")


PORTS = {9000: "agent-1", 9001: "agent-2"}


def at_ports(domain: str, scheme: str = "http", ports: range = range(9000, 9010)) -> HostAddresses:
    return HostAddresses(domain, 8642, scheme, FixedPorts(ports, PORTS))


@pytest.mark.parametrize("domain", ["203.0.113.7", "[2001:db8::7]", "server.example", "localhost"])
def test_the_port_of_a_connection_selects_the_agent(domain: str) -> None:
    addresses = at_ports(domain)
    for host in (domain, f"{domain}:9001", f"{domain}:1", "127.0.0.1", "localhost:9000"):
        found = addresses.parse(host, 9000)
        assert found == HostAddress(HostKind.AGENT, f"http://{domain}:9000", "agent-1", cookie_prefix="p9000_")
        assert addresses.parse(host, 9002) is None  # no agent's
    for host in (
        "evil.example",
        "agent-2.agents.localhost",
        "api.localhost",
        f"agents.{addresses.domain}",
        "",
        "[::2]",
    ):
        assert addresses.parse(host, 9000) is None
    assert addresses.agent_origin("agent-2") == f"http://{domain}:9001"


def test_everything_else_shares_the_domain() -> None:
    addresses = at_ports("203.0.113.7")
    origin = "http://203.0.113.7:8642"
    assert {addresses.agents_url, addresses.api_url, addresses.uploads_url} == {origin}
    assert addresses.parse("203.0.113.7", 8642) == HostAddress(
        HostKind.MANAGEMENT, origin, is_shared=True, session_cookie="p8642_roost_session"
    )
    assert addresses.dashboard_url == origin
    assert addresses.gateway_origin("shop") == f"{origin}/gateways/shop"
    assert addresses.parse_gateway_path("/gateways/shop/ipfs/cid") == (
        "/gateways/shop",
        HostAddress(HostKind.STORAGE_GATEWAY, f"{origin}/gateways/shop", gateway="shop"),
    )
    for path in ("/gateways/shop", "/gateways/shop/v0/agents", "/gateways//ipfs/cid", "/gateways/-/ipfs/x", "/ipfs/x"):
        assert addresses.parse_gateway_path(path) is None
    by_name = addresses.parse("agent-1.agents.localhost", 8642)
    assert by_name is not None
    assert (by_name.kind, by_name.agent_id, by_name.cookie_prefix) == (HostKind.AGENT, "agent-1", "")


def test_a_default_port_is_not_shown() -> None:
    assert at_ports("server.example", "https", range(443, 445)).port_origin(443) == "https://server.example"
