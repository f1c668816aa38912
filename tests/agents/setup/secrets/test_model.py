"""Names, values and conflicts of secrets (E4, B9)."""

import pytest

from roost.agents.setup.secrets import model
from roost.agents.setup.secrets.model import ConflictingSecrets, InvalidSecret, ProviderKey
from roost.core.sensitive import Sensitive


def values(**given: str) -> dict[str, Sensitive[str]]:
    return {name: Sensitive(value) for name, value in given.items()}


@pytest.mark.parametrize(
    "name", ["A", "_", "OPENAI_API_KEY", "A1_B2", "X" * 128, "GIT_AUTHOR_NAME", "NODE_AUTH_TOKEN", "TZ", "lower_case"]
)
def test_a_name_is_that_of_a_variable(name: str) -> None:
    assert model.validate_secret_name(name) == name
    assert model.warn_of_name(name) is None


@pytest.mark.parametrize(
    "name", ["my-key", "a.b", "1A", "A B", " A", "\u00c9", "\U0001f511", "x" * 127 + "-", "A+", "A%%"]
)
def test_a_name_that_a_shell_cannot_spell_is_told(name: str) -> None:
    assert model.validate_secret_name(name) == name
    assert name in (model.warn_of_name(name) or "")


@pytest.mark.parametrize("name", ["A=B", "=", "A\n", "A\0", "\x1b[1mA", "A\x7f", "A\x85"])
def test_malformed_names_of_variables_are_refused(name: str) -> None:
    with pytest.raises(InvalidSecret, match="must not contain"):
        model.validate_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        *("LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "GLIBC_TUNABLES", "PATH", "HOME", "IFS", "ENV"),
        *("BASH_ENV", "BASH_FUNC_X", "SHELLOPTS", "PROMPT_COMMAND", "NODE_OPTIONS", "NODE_EXTRA_CA_CERTS"),
        *("PYTHONPATH", "PYTHONSTARTUP", "PERL5OPT", "PERL5LIB", "RUBYOPT", "JAVA_TOOL_OPTIONS", "GIT_SSH_COMMAND"),
        *(
            "GIT_CONFIG_COUNT",
            "HTTPS_PROXY",
            "https_proxy",
            "HTTPS_Proxy",  # Python's clients read it
            "npm_config_registry",
            "Npm_Config_registry",  # npm reads it
            "NO_PROXY",
            "SSL_CERT_FILE",
            "REQUESTS_CA_BUNDLE",
        ),
        *("HERMES_HOME", "OPENCLAW_GATEWAY_TOKEN", "API_SERVER_KEY", "ROOST_KEK", "AGENT_ID", "TERMINAL_CWD"),
    ],
)
def test_names_that_steer_programs_are_reserved(name: str) -> None:
    with pytest.raises(InvalidSecret, match="is reserved"):
        model.validate_secret_name(name)
    assert not model.reaches_agent(name)


def test_a_name_is_there_and_not_too_long() -> None:
    with pytest.raises(InvalidSecret, match="required"):
        model.validate_secret_name("")
    with pytest.raises(InvalidSecret, match="128"):
        model.validate_secret_name("X" * 129)


def test_a_value_is_there_and_not_too_long() -> None:
    assert model.validate_secret_value("x" * 65_536).reveal()
    assert model.validate_secret_value(" \n").reveal() == " \n"
    for value in ("", "x" * 65_537, "é" * 32_769, "top\0secret"):
        with pytest.raises(InvalidSecret) as refusal:
            model.validate_secret_value(value)
        assert "top" not in refusal.value.message


@pytest.mark.parametrize(
    "names",
    [
        {"ANTHROPIC_API_KEY", "ANTHROPIC_OAUTH_TOKEN"},
        {"OPENAI_API_KEY", "OPENAI_OAUTH_TOKEN", "MINE"},
        {"GEMINI_API_KEY", "GOOGLE_API_KEY"},
        {"HF_TOKEN", "HUGGINGFACE_HUB_TOKEN"},
    ],
)
def test_two_credentials_of_one_provider_conflict(names: set[str]) -> None:
    with pytest.raises(ConflictingSecrets):
        model.check_conflicts(names)


def test_the_rest_goes_together() -> None:
    model.check_conflicts(
        {"OPENAI_API_KEY", "AZURE_OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GH_TOKEN", "GITHUB_TOKEN", "OPENAI_BASE_URL"}
    )
    model.check_conflicts({"GH_TOKEN", "COPILOT_GITHUB_TOKEN"})


def test_all_of_an_agent_has_a_bound() -> None:
    model.check_size({"A": 65_536, "B": 65_534})
    with pytest.raises(InvalidSecret, match="128 KiB in total"):
        model.check_size({"A": 65_536, "B": 65_535})


def test_keys_of_model_providers_come_with_their_address() -> None:
    given = values(
        OPENAI_API_KEY="k", OPENAI_BASE_URL="https://x.example/v1", GROQ_API_KEY="g", OTHER="o", HF_TOKEN="h"
    )
    assert model.provider_keys(given) == [
        ProviderKey("openai", "OPENAI_API_KEY", Sensitive("k"), "https://x.example/v1"),
        ProviderKey("groq", "GROQ_API_KEY", Sensitive("g")),
    ]
    assert "https" not in repr(model.provider_keys(values(OPENAI_API_KEY="https://secret")))


def test_provider_keys_stay_on_the_host() -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_OAUTH_TOKEN", "GEMINI_BASE_URL"):
        assert not model.reaches_agent(name)
    for name in ("GH_TOKEN", "GITHUB_TOKEN", "HF_TOKEN", "MINE", "DEEPGRAM_API_KEY", "TELEGRAM_BOT_TOKEN"):
        assert model.reaches_agent(name)
