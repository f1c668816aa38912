"""Encoding of a submitted configuration, and the callables that apply one."""

import hashlib
import json
from collections.abc import Awaitable
from typing import Any, Protocol

from roost.agents.registry.model import Agent
from roost.agents.setup.runtime_config.errors import ConfigTooLarge, InvalidConfig
from roost.core.entity_tags import is_precondition_failed
from roost.drivers.engine.abilities.configuration import TEXT_LIMIT, Expectation
from roost.drivers.engine.contract import GatewaySetup


class GatewaySetups(Protocol):
    """Returns the current setup of the agent's gateway, which contains the platform's keys."""

    def __call__(self, agent: Agent) -> Awaitable[GatewaySetup]: ...


class ConfigRestarts(Protocol):
    """Restarts the agent's gateway and returns once it responds; raises a Problem if it does not."""

    def __call__(self, agent_id: str) -> Awaitable[object]: ...


def format_etag(config: str) -> str:
    """Return the strong entity tag of a configuration as its user may see it."""
    return f'"{hashlib.sha256(config.encode("utf-8", "replace")).hexdigest()}"'


def expect_tags(if_match: str | None) -> Expectation | None:
    """Return which present configuration `If-Match` allows a write to replace, None for any."""
    if if_match is None:
        return None
    return lambda config: not is_precondition_failed(if_match, format_etag(config))


def encode_config(config: Any) -> str:
    """Convert a configuration, text or JSON object, to text. Raises InvalidConfig, ConfigTooLarge."""
    if not isinstance(config, str | dict):
        raise InvalidConfig
    text = config if isinstance(config, str) else json.dumps(config, indent=2, ensure_ascii=False)
    if not text.strip():  # valid YAML, but no configuration
        raise InvalidConfig
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidConfig from None
    if size > TEXT_LIMIT:
        raise ConfigTooLarge
    return text
