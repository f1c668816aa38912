"""The configuration of an agent's engine: the engine reads, validates and writes it.

The platform's keys never change. A write returns once the running gateway applies it, after a restart if necessary. The
next start would write the same file, so it survives restarts of gateway and server, and a new container.
"""

import asyncio
import hashlib
import json
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any
from weakref import WeakValueDictionary

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent
from roost.core import log
from roost.core.entity_tags import is_precondition_failed
from roost.core.problem import InvalidInput, PayloadTooLarge, Problem, ResourceConflict
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.configuration import (
    TEXT_LIMIT,
    ConfigurationAbility,
    ConfigurationRejected,
    ConfigurationVerdict,
    ConfigurationWritten,
    Expectation,
)
from roost.drivers.engine.contract import EngineFailed, GatewaySetup
from roost.warden_client import errors as warden_errors
from roost.warden_client.errors import ContainerNotRunning

LoadSetup = Callable[[Agent], Awaitable[GatewaySetup]]
"""Returns the current setup of the agent's gateway, which contains the platform's keys."""
RestartAgent = Callable[[str], Awaitable[object]]
"""Restarts the agent's gateway and returns once it responds; raises a Problem if it does not."""


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


class InvalidConfig(InvalidInput):
    """The configuration is malformed, or the engine rejects it; then `detail` is its own message."""

    message = "Invalid JSON"


class ConfigTooLarge(PayloadTooLarge):
    message = "A configuration can have at most 512 KiB"


class ConfigUnsupported(ResourceConflict):
    message = "This agent's engine has no configuration"


class ConfigReadFailed(Problem):
    message = "Failed to read config"


class ConfigWriteFailed(Problem):
    message = "Failed to write config"


class ConfigValidationFailed(Problem):
    message = "Validation command failed"


_log = log.get_logger("runtime_config")
_FAILURES = (
    EngineFailed,
    ContainerNotRunning,
    warden_errors.DialRefused,
    warden_errors.WardenFailed,
    warden_errors.ExecRefused,
    # the agent replaced the file
    warden_errors.WardenFileNotFound,
    warden_errors.WardenFileTooLarge,
    warden_errors.WardenNotAFile,
    warden_errors.PathRefused,
)


class RuntimeConfigService:
    def __init__(self, runtimes: AgentRuntimes, load_setup: LoadSetup, restart: RestartAgent) -> None:
        self._runtimes = runtimes
        self._load_setup = load_setup
        self._restart_agent = restart
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def read(self, agent_id: str) -> str:
        """Return the engine's file without secrets. Raises AgentNotFound, ConfigUnsupported, ConfigReadFailed."""
        ability, context = await self._ability(agent_id)
        async with _engine_failures(agent_id, ConfigReadFailed):
            return await ability.read(context)

    async def validate(self, agent_id: str, config: Any = None) -> ConfigurationVerdict:
        """Have the engine validate a configuration, or the current file, which may be invalid.

        Raises AgentNotFound, ConfigUnsupported, ConfigValidationFailed; InvalidConfig for a submitted configuration.
        """
        ability, context = await self._ability(agent_id)
        text = None if config is None else encode_config(config)
        return await self._validate(ability, context, agent_id, text)

    async def write(self, agent_id: str, config: Any, is_expected: Expectation | None = None) -> None:
        """Replace the user's part of the file, if `is_expected` accepts the present text.

        Raises AgentNotFound, ConfigUnsupported, InvalidConfig, ConfigurationChanged, ConfigWriteFailed.
        """
        ability, context = await self._ability(agent_id)
        text = encode_config(config)
        await self._validate(ability, context, agent_id, text)
        async with self._locks.setdefault(agent_id, asyncio.Lock()):
            async with _engine_failures(agent_id, ConfigWriteFailed):
                setup = await self._load_setup(await self._runtimes.agents.get(agent_id))
                try:
                    written = await ability.write(context, setup, text, is_expected)
                except ConfigurationRejected as refusal:
                    raise InvalidConfig(detail=refusal.message) from refusal
            if not written.live:
                await self._restart(agent_id, written)

    async def _restart(self, agent_id: str, written: ConfigurationWritten) -> None:
        """Restart the gateway; roll back a configuration that prevents its start. Raises ConfigWriteFailed."""
        try:
            await self._restart_agent(agent_id)
        except Problem as problem:
            _log.warning("configuration.rolled_back", agent=agent_id, reason=problem.message)
            async with _engine_failures(agent_id, ConfigWriteFailed):
                await written.undo()
            with suppress(Problem):  # the agent's own record says why it does not run
                await self._restart_agent(agent_id)
            raise ConfigWriteFailed from problem

    async def _validate(
        self, ability: ConfigurationAbility, context: AgentContext, agent_id: str, text: str | None
    ) -> ConfigurationVerdict:
        async with _engine_failures(agent_id, ConfigValidationFailed):
            verdict = await ability.check(context, text)
        if text is None or verdict.valid:
            return verdict
        raise InvalidConfig(detail=verdict.output)

    async def _ability(self, agent_id: str) -> tuple[ConfigurationAbility, AgentContext]:
        engine, context = await self._runtimes.get_context(agent_id)
        if engine.configuration is None:
            raise ConfigUnsupported
        return engine.configuration, context


@asynccontextmanager
async def _engine_failures(agent_id: str, failure: type[Problem]) -> AsyncGenerator[None]:
    """Convert failures of the engine into `failure`; log the reason for the operator."""
    try:
        yield
    except _FAILURES as problem:
        _log.warning("configuration.request_failed", agent=agent_id, reason=problem.message)
        raise failure from problem
