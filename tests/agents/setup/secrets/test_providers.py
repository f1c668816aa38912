"""The table of providers is consistent; nothing else checks this data."""

import re

from roost.agents.setup.secrets.model import is_reserved_name
from roost.agents.setup.secrets.providers import HOST_ONLY_NAMES, PROVIDER_OF, PROVIDERS


def test_no_id_and_no_name_is_there_twice() -> None:
    ids = [provider.id for provider in PROVIDERS]
    names = [name for provider in PROVIDERS for name in provider.names]
    assert len(ids) == len(set(ids))
    assert len(names) == len(set(names)) == len(PROVIDER_OF)


def test_each_name_is_one_that_a_secret_can_have() -> None:
    for name in (*PROVIDER_OF, *HOST_ONLY_NAMES):
        assert re.fullmatch("[A-Z][A-Z0-9_]*", name)
        assert not is_reserved_name(name)


def test_general_credentials_are_in_no_row() -> None:
    assert not {"GH_TOKEN", "GITHUB_TOKEN"} & PROVIDER_OF.keys()


def test_addresses_follow_from_the_names() -> None:
    assert PROVIDER_OF["OPENAI_OAUTH_TOKEN"].base_urls == ["OPENAI_BASE_URL"]
    assert PROVIDER_OF["GOOGLE_API_KEY"].base_urls == ["GEMINI_BASE_URL", "GOOGLE_BASE_URL"]
    assert PROVIDER_OF["AI_GATEWAY_API_KEY"].base_urls == ["AI_GATEWAY_BASE_URL"]
