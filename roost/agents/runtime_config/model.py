"""Encoding of a submitted configuration, and the callables that apply one."""

import json
from collections.abc import Awaitable
from typing import Any, Protocol

from roost.agents.registry.model import Agent
from roost.agents.runtime_config.errors import ConfigTooLarge, InvalidConfig
from roost.drivers.engine.abilities.configuration import TEXT_LIMIT
from roost.drivers.engine.contract import GatewaySetup


class GatewaySetups(Protocol):
    """Returns the current setup of the agent's gateway, which contains the platform's keys."""

    def __call__(self, agent: Agent) -> Awaitable[GatewaySetup]: ...


class ConfigRestarts(Protocol):
    """Restarts the agent's gateway and returns once it responds; raises a Problem if it does not."""

    def __call__(self, agent_id: str) -> Awaitable[object]: ...


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
