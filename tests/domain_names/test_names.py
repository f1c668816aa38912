import pytest

from roost.domain_names.errors import InvalidDomain
from roost.domain_names.names import parse_custom_domain, parse_subdomain

WORDS = ("roost",)


@pytest.mark.parametrize(("text", "name"), [("ada", "ada"), (" Ada-2 ", "ada-2"), ("a" * 63, "a" * 63)])
def test_subdomains_are_normalised(text: str, name: str) -> None:
    assert parse_subdomain(text, WORDS) == name


@pytest.mark.parametrize(
    "text",
    [
        *("", "a", "-ada", "ada-", "a.b", "ada--x", "xn--ada-x", "a" * 64, "ädä", "a b", "api", "WWW", "admin"),
        *("roost", "my-ROOST", "r00st", "ro-ost", "roosters", "paypal-login"),
    ],
)
def test_subdomains_that_are_refused(text: str) -> None:
    with pytest.raises(InvalidDomain):
        parse_subdomain(text, WORDS)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("App.Example.com.", "app.example.com"),
        (" example.co.uk ", "example.co.uk"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("agent.example.test", "agent.example.test"),
        ("notcloud.example", "notcloud.example"),
    ],
)
def test_custom_domains_are_normalised(text: str, name: str) -> None:
    assert parse_custom_domain(text, "cloud.example", WORDS) == name


@pytest.mark.parametrize(
    "text",
    [
        *("", ".", "localhost", "example", "com", "co.uk", "127.0.0.1", "[::1]", "::1", "1.2.3", "*.example.com"),
        *("a..example.com", "cloud.example", "CLOUD.example.", "a.b.cloud.example", "x.localhost", "x.local"),
        *("x.internal", "x.onion", "1.in-addr.arpa", f"{'a' * 64}.example.com", ".".join(["a" * 60] * 5)),
        *("a_b.example.com", "exa mple.com", "example.com/x", "a@example.com", "roost.example.com"),
        *("r\u043e\u043est.example.com", "r\u200boost.example.com", "xn--rost-5qa.example.com", "RÖÖST.example"),
    ],
)
def test_custom_domains_that_are_refused(text: str) -> None:
    with pytest.raises(InvalidDomain):
        parse_custom_domain(text, "cloud.example", WORDS)
