"""Secrets and variables: rules for names, sizes and conflicts."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from roost.agents.setup.secrets.errors import ConflictingSecrets, InvalidSecret
from roost.agents.setup.secrets.providers import HOST_ONLY_NAMES, PROVIDER_OF, PROVIDERS
from roost.agents.setup.secrets.refused_names import is_reserved_name
from roost.core.sensitive import Sensitive
from roost.identity.caller import Plan

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
