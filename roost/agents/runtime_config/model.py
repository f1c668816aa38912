"""What is sent as a configuration, and what this room needs of others to apply one."""

import json
from collections.abc import Awaitable
from typing import Any, Protocol

from roost.agents.registry.model import Agent
from roost.agents.runtime_config.errors import ConfigTooLarge, InvalidConfig
from roost.drivers.engine.abilities.configuration import TEXT_LIMIT
from roost.drivers.engine.contract import GatewaySetup


class GatewaySetups(Protocol):
    """What the agent's gateway would be started with now: the platform's keys come from there."""

    def __call__(self, agent: Agent) -> Awaitable[GatewaySetup]: ...


class ConfigRestarts(Protocol):
    """Starts the agent's gateway anew and returns when it answers. Raises a Problem when it does not."""

    def __call__(self, agent_id: str) -> Awaitable[object]: ...


def written(config: Any) -> str:
    """A configuration as a text: it comes as one, or as a JSON object. Raises InvalidConfig, ConfigTooLarge."""
    if not isinstance(config, str | dict):
        raise InvalidConfig
    text = config if isinstance(config, str) else json.dumps(config, indent=2, ensure_ascii=False)
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidConfig from None
    if size > TEXT_LIMIT:
        raise ConfigTooLarge
    return text
