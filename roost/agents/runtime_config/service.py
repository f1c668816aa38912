"""The configuration of an agent's engine: the engine reads, judges and writes it, the platform's keys stay.

A write is answered when the running gateway works by it; where that takes a restart, there is one. It is the file that
the next start would write, too, so it survives restarts of gateway and server, and a new box.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.repository import AgentRepository
from roost.agents.runtime_config import model
from roost.agents.runtime_config.errors import (
    ConfigReadFailed,
    ConfigUnsupported,
    ConfigValidationFailed,
    ConfigWriteFailed,
    InvalidConfig,
)
from roost.agents.runtime_config.model import ConfigRestarts, GatewaySetups
from roost.core import log
from roost.core.problem import Problem
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.configuration import (
    ConfigurationAbility,
    ConfigurationRejected,
    ConfigurationVerdict,
    ConfigurationWritten,
)
from roost.drivers.engine.contract import EngineFailed
from roost.drivers.runtime import warden_client
from roost.drivers.runtime.contract import ContainerNotRunning

_log = log.get_logger("runtime_config")
_NO_ANSWER = (
    *(
        EngineFailed,
        ContainerNotRunning,
        warden_client.DialRefused,
        warden_client.WardenFailed,
        warden_client.ExecRefused,
    ),
    *(
        warden_client.WardenFileNotFound,
        warden_client.WardenFileTooLarge,
        warden_client.WardenNotAFile,
        warden_client.PathRefused,
    ),  # what an agent put in its place
)


class RuntimeConfigService:
    def __init__(
        self, roster: AgentRepository, reach: AgentRuntimes, setups: GatewaySetups, restarts: ConfigRestarts
    ) -> None:
        self._roster = roster
        self._reach = reach
        self._setups = setups
        self._restarts = restarts

    async def read(self, agent_id: str) -> str:
        """The engine's file, without secrets. Raises AgentGone, NoConfiguration, ReadFailed."""
        ability, inside = await self._ability(agent_id)
        async with _answered(agent_id, ConfigReadFailed):
            return await ability.read(inside)

    async def validate(self, agent_id: str, config: Any = None) -> ConfigurationVerdict:
        """What the engine says of a configuration, or of the file as it is, which may be invalid.

        Raises AgentGone, NoConfiguration, ValidationFailed; InvalidConfig when what was sent is not valid.
        """
        ability, inside = await self._ability(agent_id)
        text = None if config is None else model.written(config)
        return await self._judged(ability, inside, agent_id, text)

    async def write(self, agent_id: str, config: Any) -> None:
        """Replace the user's part of the file. Raises AgentGone, NoConfiguration, InvalidConfig, WriteFailed."""
        ability, inside = await self._ability(agent_id)
        text = model.written(config)
        await self._judged(ability, inside, agent_id, text)
        async with _answered(agent_id, ConfigWriteFailed):
            setup = await self._setups(await self._roster.get(agent_id))
            try:
                written = await ability.write(inside, setup, text)
            except ConfigurationRejected as refusal:
                raise InvalidConfig(f"{InvalidConfig.message}: {refusal.message}") from refusal
        if not written.live:
            await self._restart(agent_id, written)

    async def _restart(self, agent_id: str, written: ConfigurationWritten) -> None:
        """A configuration with which the gateway does not start is taken back. Raises WriteFailed."""
        try:
            await self._restarts(agent_id)
        except Problem as problem:
            _log.warning("configuration taken back", agent=agent_id, reason=problem.message)
            async with _answered(agent_id, ConfigWriteFailed):
                await written.undo()
            with suppress(Problem):  # the agent's own record says why it does not run
                await self._restarts(agent_id)
            raise ConfigWriteFailed from problem

    async def _judged(
        self, ability: ConfigurationAbility, inside: AgentContext, agent_id: str, text: str | None
    ) -> ConfigurationVerdict:
        async with _answered(agent_id, ConfigValidationFailed):
            verdict = await ability.check(inside, text)
        if text is None or verdict.valid:
            return verdict
        raise InvalidConfig(f"{InvalidConfig.message}: {verdict.output}" if verdict.readable else None)

    async def _ability(self, agent_id: str) -> tuple[ConfigurationAbility, AgentContext]:
        engine, inside = await self._reach.get_context(agent_id)
        if engine.configuration is None:
            raise ConfigUnsupported
        return engine.configuration, inside


@asynccontextmanager
async def _answered(agent_id: str, failure: type[Problem]) -> AsyncGenerator[None]:
    """An engine that gives no usable answer fails the request; the reason is the operator's to read."""
    try:
        yield
    except _NO_ANSWER as problem:
        _log.warning("no answer about the configuration", agent=agent_id, reason=problem.message)
        raise failure from problem
