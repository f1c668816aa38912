import pytest

from roost.agents.models.gateway.providers import PROVIDERS, model_settings
from roost.core.sensitive import Sensitive

KEY = Sensitive("sk-1")


def test_a_known_provider_needs_a_key_alone() -> None:
    made = model_settings("anthropic", "ANTHROPIC_API_KEY", KEY, None)
    assert made is not None
    assert (made.name, made.api, made.url, made.bearer) == (
        "anthropic",
        "anthropic",
        "https://api.anthropic.com",
        False,
    )
    assert made.key is not None
    assert made.key.reveal() == "sk-1"


def test_a_token_goes_as_one() -> None:
    made = model_settings("anthropic", "ANTHROPIC_AUTH_TOKEN", KEY, "https://proxy.example/claude")
    assert made is not None
    assert (made.url, made.bearer) == ("https://proxy.example/claude", True)


def test_another_provider_speaks_openais_protocol_at_its_base_url() -> None:
    assert model_settings("litellm", "LITELLM_API_KEY", KEY, None) is None
    made = model_settings("litellm", "LITELLM_API_KEY", Sensitive(" sk-1\n"), " http://llm.example:4000/v1 ")
    assert made is not None
    assert made.key is not None
    assert (made.name, made.api, made.url, made.key.reveal()) == (
        "litellm",
        "openai",
        "http://llm.example:4000/v1",
        "sk-1",
    )


@pytest.mark.parametrize(
    "url",
    [
        "llm.example/v1",
        "ftp://llm.example",
        "file:///etc/passwd",
        "https://user:pass@llm.example/v1",
        "https://llm.example/v1?x=1",
        "https://llm.example/v1#x",
        "https://:443/v1",
        "http://[::1",
        "https://llm.example/\nv1",
        " ",
    ],
)
def test_malformed_provider_addresses_are_left_out(url: str) -> None:
    assert model_settings("openai", "OPENAI_API_KEY", KEY, url) is None


@pytest.mark.parametrize("value", ["", "  ", "sk 1", "sk-\n1", "sk-\u00e9", "sk-\x00"])
def test_keys_that_no_header_can_carry_are_left_out(value: str) -> None:
    assert model_settings("openai", "OPENAI_API_KEY", Sensitive(value), None) is None


def test_the_table_is_of_addresses() -> None:
    for name in PROVIDERS:
        made = model_settings(name, "KEY", KEY, None)
        assert made is not None, name
        assert made.url.startswith("https://")
        assert not made.url.endswith("/")
