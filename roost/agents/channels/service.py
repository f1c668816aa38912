"""Channels of an agent: what there is, what it does now, and changing it so that what is kept and what runs agree.

A change is kept first and then brought to the running gateway: at once where the engine can do that, by a restart of
the gateway where it cannot. If that fails, what was there before is put back, in the book and in the gateway. An agent
that does not run has the change at its next start.
"""

import asyncio
from collections.abc import Mapping
from weakref import WeakValueDictionary

from roost.agents.channels.errors import ChannelConfigurationFailed, ChannelRemovalFailed, UnsupportedChannel
from roost.agents.channels.model import (
    LABELS,
    Channel,
    ChannelChange,
    ChannelOverview,
    ChannelRequest,
    ChannelRestarts,
    ChannelStatus,
    redact_state,
)
from roost.agents.channels.repository import ChannelRepository
from roost.agents.channels.validator import ChannelValidator, supported_channels
from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent, AgentState
from roost.agents.registry.repository import AgentRepository
from roost.core import clock, log
from roost.core.db import Database
from roost.core.periodic import Backoff
from roost.core.problem import Problem
from roost.drivers.engine.abilities.channels import CHANNELS, ChannelState, HotChannelAbility
from roost.identity import tenants
from roost.identity.caller import Plan

_STATUS_SECONDS = 5.0
_LOOK_AGAIN = 0.2
_START_GRACE = 30.0
_LATER = "; it takes effect when the agent starts"

_log = log.get_logger("channels")


class ChannelService:
    def __init__(
        self,
        db: Database,
        book: ChannelRepository,
        intake: ChannelValidator,
        roster: AgentRepository,
        reach: AgentRuntimes,
        restarts: ChannelRestarts,
    ) -> None:
        self._db = db
        self._book = book
        self._intake = intake
        self._roster = roster
        self._reach = reach
        self._restarts = restarts
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def get_overview(self, agent_id: str) -> ChannelOverview:
        """Raises AgentGone."""
        agent = await self._roster.get(agent_id)
        channels = await self._book.get_channels(agent_id)
        states = await self._get_states(agent)
        shown = {
            name: ChannelStatus(channel, redact_state(states.get(name), channel)) for name, channel in channels.items()
        }
        return ChannelOverview(shown, agent.engine_version)

    async def configure(self, agent_id: str, name: str, order: ChannelRequest) -> ChannelChange:
        """Raises what `Intake.take` raises, TokenInUse, ConfigurationFailed, AgentGone."""
        async with self._lock(agent_id):
            agent = await self._roster.get(agent_id)
            engine = self._reach.get_engine(agent.engine)
            present = (await self._book.get_channels(agent_id)).get(name)
            able = supported_channels(engine, agent.engine_version)
            taken = await self._intake.validate(name, order, present, await self._get_plan(agent), able)
            await self._book.save(agent_id, taken.channel)
            try:
                now = await self._apply(agent_id)
            except Problem as problem:
                await self._roll_back(agent_id, name, present, problem)
                raise ChannelConfigurationFailed from problem
        advice = engine.channels.advice(name) if engine.channels else None
        message = f"{LABELS[name]} is configured" + ("" if now else _LATER)
        return ChannelChange(message, taken.channel.bot_name, taken.warning or advice)

    async def remove(self, agent_id: str, name: str) -> ChannelChange:
        """Idempotent. Raises UnsupportedChannel, RemovalFailed, AgentGone."""
        if name not in CHANNELS:
            raise UnsupportedChannel
        async with self._lock(agent_id):
            await self._roster.get(agent_id)
            present = (await self._book.get_channels(agent_id)).get(name)
            if present is None:
                return ChannelChange(f"{LABELS[name]} is not configured")
            await self._book.remove(agent_id, name)
            try:
                now = await self._apply(agent_id)
            except Problem as problem:
                await self._roll_back(agent_id, name, present, problem)
                raise ChannelRemovalFailed from problem
        return ChannelChange(f"{LABELS[name]} is removed" + ("" if now else _LATER))

    async def _apply(self, agent_id: str) -> bool:
        """Bring what is in the book to the agent's gateway; whether it runs at all. Raises Problem."""
        agent = await self._wait_until_started(agent_id)
        if agent.state is not AgentState.RUNNING:
            return False
        await self._apply_to_gateway(agent_id)
        return True

    async def _apply_to_gateway(self, agent_id: str) -> None:
        engine, inside = await self._reach.get_context(agent_id)
        if isinstance(engine.channels, HotChannelAbility):
            await engine.channels.apply(inside, await self._book.get_setups(agent_id))
        else:
            await self._restarts(agent_id)

    async def _wait_until_started(self, agent_id: str) -> Agent:
        """The agent once it is not starting: a start under way may have asked for its channels before the change."""
        agent = await self._roster.get(agent_id)
        deadline = clock.monotonic_seconds() + self._reach.get_engine(agent.engine).start_deadline + _START_GRACE
        backoff = Backoff(_LOOK_AGAIN)
        while agent.state is AgentState.STARTING and clock.monotonic_seconds() < deadline:
            await backoff.pause()
            agent = await self._roster.get(agent_id)
        return agent

    async def _roll_back(self, agent_id: str, name: str, before: Channel | None, why: Problem) -> None:
        """What the gateway does not take back either, it gets at its next start."""
        _log.warning("a gateway did not take its channels", agent=agent_id, channel=name, reason=why.message)
        try:
            if before is None:
                await self._book.remove(agent_id, name)
            else:
                await self._book.save(agent_id, before)
            await self._apply_to_gateway(agent_id)
        except Problem as problem:
            _log.warning("a gateway did not take its channels back", agent=agent_id, reason=problem.message)

    async def _get_states(self, agent: Agent) -> Mapping[str, ChannelState]:
        """What the running gateway says; nothing of one that does not answer at once."""
        engine, inside = await self._reach.get_context(agent.id)
        if engine.channels is None or agent.state is not AgentState.RUNNING:
            return {}
        try:
            async with asyncio.timeout(_STATUS_SECONDS):
                return await engine.channels.status(inside)
        except (Problem, TimeoutError):
            return {}

    async def _get_plan(self, agent: Agent) -> Plan:
        return (await self._db.read(lambda connection: tenants.get_tenant(connection, agent.tenant_id))).plan

    def _lock(self, agent_id: str) -> asyncio.Lock:
        """One change of an agent's channels at a time."""
        return self._locks.setdefault(agent_id, asyncio.Lock())
