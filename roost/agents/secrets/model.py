"""Secrets and variables: what they are called, how large they may be, and which of them exclude each other."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from roost.agents.secrets.errors import ConflictingSecrets, InvalidSecret
from roost.agents.secrets.providers import HOST_ONLY_NAMES, PROVIDER_OF, PROVIDERS
from roost.agents.secrets.refused_names import is_reserved_name
from roost.core.sensitive import Sensitive
from roost.identity.caller import Plan

NAME_LIMIT = 128
VALUE_LIMIT = 64 * 1024
SECRET_LIMIT: Mapping[Plan, int] = {Plan.FREE: 10, Plan.PAID: 100}
AGENT_BYTES_LIMIT = 128 * 1024
"""Bytes that all secrets of one agent may have together: they have to fit into the environment of a program."""

_NAME = re.compile(r"[A-Z_][A-Z0-9_]*")


class SecretKind(StrEnum):
    SECRET = "secret"  # noqa: S105 - the word of the contract, not a password
    VARIABLE = "variable"  # its value may be read again


@dataclass(frozen=True)
class Secret:
    """`version` counts the values that it has had."""

    id: str
    tenant_id: str
    name: str
    kind: SecretKind
    version: int
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True)
class SecretWithAgents:
    """A secret of a tenant with the names of the agents that have it, by id; `value` is a variable's alone."""

    secret: Secret
    agents: Mapping[str, str]
    value: Sensitive[str] | None


@dataclass(frozen=True)
class AttachedSecret:
    """A secret of an agent; `synced` when what the agent uses at this moment is its current value."""

    secret: Secret
    synced: bool


@dataclass(frozen=True)
class ProviderKey:
    """A credential of a model provider that an agent has. `name` is the secret's (`OPENAI_API_KEY`), `provider` the id
    in `providers.py`, `base_url` the value of an attached `<PROVIDER>_BASE_URL`: what a tenant wrote, not checked.
    """

    provider: str
    name: str
    value: Sensitive[str]
    base_url: str | None = None


@dataclass(frozen=True)
class GatewayEnvironment:
    """What a gateway gets at a start, and which versions these are: secret id -> version."""

    values: Mapping[str, Sensitive[str]]
    versions: Mapping[str, int]


def validate_secret_name(name: str) -> str:
    """Raises InvalidSecret for what is no name of a variable, or one that steers programs or the platform."""
    if not name:
        raise InvalidSecret("Secret name is required")
    if len(name) > NAME_LIMIT:
        raise InvalidSecret(f"Secret name must be at most {NAME_LIMIT} characters")
    if not _NAME.fullmatch(name):
        raise InvalidSecret("Secret name must match [A-Z_][A-Z0-9_]*")
    if is_reserved_name(name):
        raise InvalidSecret(f"Secret name {name} is reserved")
    return name


def validate_secret_value(value: str) -> Sensitive[str]:
    """Raises InvalidSecret when it is empty, or longer than 64 KiB in UTF-8."""
    if not value:
        raise InvalidSecret("Secret value is required")
    if "\0" in value:  # no environment can hold it
        raise InvalidSecret("Secret value must not contain NUL")
    if len(value.encode()) > VALUE_LIMIT:
        raise InvalidSecret(f"Secret value must be at most {VALUE_LIMIT // 1024} KiB")
    return Sensitive(value)


def check_conflicts(names: Iterable[str]) -> None:
    """Raises ConflictingSecrets when two of an agent's secrets are credentials of one provider."""
    providers = [provider.id for name in names if (provider := PROVIDER_OF.get(name))]
    if len(providers) != len(set(providers)):
        raise ConflictingSecrets


def provider_keys(values: Mapping[str, Sensitive[str]]) -> Sequence[ProviderKey]:
    """The credentials of model providers among an agent's secrets, by name."""
    return [
        ProviderKey(provider.id, name, values[name], _first(values, provider.base_urls))
        for provider in PROVIDERS
        if provider.models
        for name in provider.names
        if name in values
    ]


def check_size(values: Mapping[str, int]) -> None:
    """Raises InvalidSecret when an agent's secrets, name -> bytes, are too much for an environment."""
    if sum(len(name) + size for name, size in values.items()) > AGENT_BYTES_LIMIT:
        raise InvalidSecret(f"An agent's secrets can have at most {AGENT_BYTES_LIMIT // 1024} KiB together")


def reaches_agent(name: str) -> bool:
    """Whether it is put into the agent's environment: credentials of model providers stay on the host."""
    return name not in HOST_ONLY_NAMES and not is_reserved_name(name)


def _first(values: Mapping[str, Sensitive[str]], names: Iterable[str]) -> str | None:
    return next((values[name].reveal() for name in names if name in values), None)
