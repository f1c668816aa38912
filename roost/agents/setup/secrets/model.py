"""Secrets and variables: rules for names, sizes and conflicts."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from roost.agents.setup.secrets.providers import HOST_ONLY_NAMES, PROVIDER_OF, PROVIDERS
from roost.core.problem import AccessDenied, InvalidInput, NotFound, Problem, ResourceConflict, ServiceUnavailable
from roost.core.sensitive import Sensitive
from roost.identity.caller import Plan


class InvalidSecret(InvalidInput):
    """The name or the value is invalid; the message gives the reason and never the value."""

    message = "Invalid secret"


class SecretLimitReached(AccessDenied):
    message = "Secret limit reached"


class DuplicateSecretName(ResourceConflict):
    message = "Duplicate secret name"
    field = "name"


class ConflictingSecrets(ResourceConflict):
    """Two credentials of one provider on one agent."""

    message = "Conflicting secrets"


class SecretAttached(ResourceConflict):
    message = "Secret is attached to an agent"


class SecretShared(ResourceConflict):
    """Other agents use the secret, and the request does not say that they may get another value."""

    message = "Other agents use this secret"


class SecretNotFound(NotFound):
    """Unknown id, secret of another tenant, or not attached; the response does not say which."""

    message = "Secret not found"


class SecretsNotConfigured(ServiceUnavailable):
    """The key-encryption key is missing or belongs to another deployment."""

    message = "Secrets not configured"


class UnreadableSecret(Problem):
    """The stored value is damaged, was moved between rows, or is sealed with an unknown key."""

    message = "A secret could not be opened"


ALLOWED: Final = frozenset({"NODE_AUTH_TOKEN"})
"""Exceptions to the prefixes below: a registry's token, not an option."""

ANY_CASE_SUFFIX: Final = "_PROXY"  # curl reads the small letters, Python any
ANY_CASE_PREFIX: Final = "NPM_CONFIG_"

_LOADER_PREFIXES = ("LD_", "DYLD_", "GLIBC_", "MALLOC_")  # of the dynamic linker and the C library
_INTERPRETER_PREFIXES = ("BASH_", "NODE_", "PYTHON", "PERL5", "PERL_", "RUBY", "BUNDLE_", "LUA_")
_PROGRAM_PREFIXES = ("SSL_CERT_", "GIT_CONFIG", "GIT_SSL_", "GIT_TRACE", "GIT_PROXY_", "XDG_")
_PLATFORM_PREFIXES = ("ROOST_", "OPENCLAW_", "CLAWDBOT_", "MOLTBOT_", "HERMES_", "API_SERVER_", "TERMINAL_")
PREFIXES: Final = _LOADER_PREFIXES + _INTERPRETER_PREFIXES + _PROGRAM_PREFIXES + _PLATFORM_PREFIXES

NAMES: Final = frozenset(
    """
    PATH HOME USER LOGNAME SHELL HOSTNAME PWD OLDPWD TMPDIR AGENT_ID
    ENV IFS SHELLOPTS BASHOPTS PS4 PROMPT_COMMAND CDPATH GLOBIGNORE ZDOTDIR
    EDITOR VISUAL PAGER MANPAGER BROWSER LESSOPEN LESSCLOSE SUDO_ASKPASS SSH_ASKPASS
    GIT_SSH GIT_SSH_COMMAND GIT_ASKPASS GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER
    GIT_EXTERNAL_DIFF GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
    PERLLIB GEM_HOME GEM_PATH PHPRC PHP_INI_SCAN_DIR CLASSPATH RUSTC_WRAPPER MAKEFLAGS
    JAVA_TOOL_OPTIONS JDK_JAVA_OPTIONS _JAVA_OPTIONS MAVEN_OPTS GRADLE_OPTS
    GCONV_PATH LOCPATH NLSPATH HOSTALIASES LOCALDOMAIN RES_OPTIONS TZDIR
    OPENSSL_CONF OPENSSL_MODULES OPENSSL_ENGINES SSLKEYLOGFILE
    CURL_CA_BUNDLE REQUESTS_CA_BUNDLE CURL_HOME WGETRC INPUTRC VIRTUAL_ENV
    """.split()
)


def is_reserved_name(name: str) -> bool:
    """Return whether a variable changes how programs load, search paths, or the platform.

    An agent's environment applies to every program in its container, the engine's own included.
    """
    if name in ALLOWED:
        return False
    upper = name.upper()
    is_any_case = upper.startswith(ANY_CASE_PREFIX) or upper.endswith(ANY_CASE_SUFFIX)
    return is_any_case or name in NAMES or name.startswith(PREFIXES)


NAME_LIMIT = 128
VALUE_LIMIT = 64 * 1024
SECRET_LIMIT: Mapping[Plan, int] = {Plan.FREE: 10, Plan.PAID: 100}
AGENT_BYTES_LIMIT = 128 * 1024
"""Maximum bytes of all secrets of one agent, which have to fit into the environment of a program."""

NAME_PATTERN = r"^[^=\x00-\x1f\x7f-\x9f]*$"
"""Of what an environment can have as a name: no `=`, no control characters."""
_NAME = re.compile(NAME_PATTERN)
_SHELL_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class SecretKind(StrEnum):
    SECRET = "secret"  # noqa: S105 - the word of the contract, not a password
    VARIABLE = "variable"  # its value can be read again


@dataclass(frozen=True)
class Secret:
    """A secret or variable; `version` counts its values."""

    id: str
    tenant_id: str
    name: str
    kind: SecretKind
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class SecretWithAgents:
    """A secret with the names of its agents by id; only a variable has `value`."""

    secret: Secret
    agents: Mapping[str, str]
    value: Sensitive[str] | None


@dataclass(frozen=True)
class AttachedSecret:
    """A secret of an agent; `synced` while the agent uses its current value."""

    secret: Secret
    synced: bool


@dataclass(frozen=True)
class ProviderKey:
    """An agent's credential for a model provider.

    `name` is the secret's name (`OPENAI_API_KEY`), `provider` the id in `providers.py`, `base_url` the unchecked value
    of an attached `<PROVIDER>_BASE_URL`.
    """

    provider: str
    name: str
    value: Sensitive[str]
    base_url: str | None = None


@dataclass(frozen=True)
class GatewayEnvironment:
    """Environment of a gateway, and the versions of its secrets: secret id -> version."""

    values: Mapping[str, Sensitive[str]]
    versions: Mapping[str, int]


def validate_secret_name(name: str) -> str:
    """Return the name. Raises InvalidSecret if it is malformed or reserved."""
    if not name:
        raise InvalidSecret("Secret name is required")
    if len(name) > NAME_LIMIT:
        raise InvalidSecret(f"Secret name must be at most {NAME_LIMIT} characters")
    if not _NAME.fullmatch(name):
        raise InvalidSecret("Secret name must not contain = or control characters")
    if is_reserved_name(name):
        raise InvalidSecret(f"Secret name {name} is reserved")
    return name


def warn_of_name(name: str) -> str | None:
    """Return what to know of a valid name that no shell can spell; programs read it all the same."""
    if _SHELL_NAME.fullmatch(name):
        return None
    return (
        f"{name} is no name of a shell's variable: programs can read it, $ in a shell cannot, and some shells drop it"
    )


def validate_secret_value(value: str) -> Sensitive[str]:
    """Return the value. Raises InvalidSecret if it is empty or longer than 64 KiB in UTF-8."""
    if not value:
        raise InvalidSecret("Secret value is required")
    if "\0" in value:  # environment variables cannot contain NUL
        raise InvalidSecret("Secret value must not contain NUL")
    if len(value.encode()) > VALUE_LIMIT:
        raise InvalidSecret(f"Secret value must be at most {VALUE_LIMIT // 1024} KiB")
    return Sensitive(value)


def check_conflicts(names: Iterable[str]) -> None:
    """Check that no two names are credentials of one provider. Raises ConflictingSecrets."""
    providers = [provider.id for name in names if (provider := PROVIDER_OF.get(name))]
    if len(providers) != len(set(providers)):
        raise ConflictingSecrets


def provider_keys(values: Mapping[str, Sensitive[str]]) -> Sequence[ProviderKey]:
    """Return the credentials of model providers among an agent's secrets, by name."""
    return [
        ProviderKey(provider.id, name, values[name], _first(values, provider.base_urls))
        for provider in PROVIDERS
        if provider.models
        for name in provider.names
        if name in values
    ]


def check_size(values: Mapping[str, int]) -> None:
    """Check the total size of an agent's secrets, name -> bytes. Raises InvalidSecret."""
    if sum(len(name) + size for name, size in values.items()) > AGENT_BYTES_LIMIT:
        raise InvalidSecret(f"An agent's secrets can have at most {AGENT_BYTES_LIMIT // 1024} KiB in total")


def reaches_agent(name: str) -> bool:
    """Return whether the secret enters the agent's environment; model providers' credentials stay on the host."""
    return name not in HOST_ONLY_NAMES and not is_reserved_name(name)


def _first(values: Mapping[str, Sensitive[str]], names: Iterable[str]) -> str | None:
    return next((values[name].reveal() for name in names if name in values), None)
