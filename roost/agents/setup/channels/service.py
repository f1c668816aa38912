"""Channels of an agent: listing them and changing them, stored and in the running gateway.

A change is stored first and then applied to the running gateway: at once if the engine supports that, otherwise by a
restart of the gateway. If that fails, the previous channel is restored, in the database and in the gateway. A stopped
agent gets the change at its next start.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from roost.agents.registry.agent_runtimes import AgentRuntimes
from roost.agents.registry.model import Agent, AgentState
from roost.agents.setup.channels.model import (
    LABELS,
    Channel,
    ChannelApprovalFailed,
    ChannelChange,
    ChannelConfigurationFailed,
    ChannelOverview,
    ChannelRemovalFailed,
    ChannelRequest,
    ChannelStatus,
    PairingUnsupported,
    TooManyChannelWatches,
    UnsupportedChannel,
    redact_state,
)
from roost.agents.setup.channels.repository import ChannelRepository
from roost.agents.setup.channels.validator import ChannelValidator, supported_channels
from roost.core import clock, log
from roost.core.db import Database, DataChange, write_change
from roost.core.periodic import Backoff
from roost.core.problem import Problem
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.channels import (
    CHANNELS,
    ChannelAbility,
    ChannelState,
    HotChannelAbility,
    PairingAbility,
    PairingCodeAbility,
    PairingRequestNotFound,
)
from roost.drivers.engine.contract import EngineFailed
from roost.identity import tenants
from roost.warden_client.errors import ContainerNotRunning, DialRefused, WardenFailed

_STATUS_SECONDS = 5.0
_POLL_SECONDS = 0.2
_START_GRACE_SECONDS = 30.0
_WATCH_SECONDS = 1.5
_MAX_WATCHES = 16
_AT_NEXT_START = "; it takes effect when the agent starts"

_log = log.get_logger("channels")


@dataclass
class ChannelService:
    """Lists and changes channels; `_restart` returns once the gateway responds, and raises a Problem if it does not."""

    _db: Database
    _channels: ChannelRepository
    _validator: ChannelValidator
    _runtimes: AgentRuntimes
    _restart: Callable[[str], Awaitable[object]]
    _watches: Counter[str] = field(default_factory=Counter[str], init=False)
    _locks: WeakValueDictionary[str, asyncio.Lock] = field(default_factory=WeakValueDictionary, init=False)

    async def get_overview(self, agent_id: str) -> ChannelOverview:
        """Return the agent's channels and their status. Raises AgentNotFound."""
        agent = await self._runtimes.agents.get(agent_id)
        channels = await self._channels.get_channels(agent_id)
        states = await self._get_states(agent)
        shown = {name: ChannelStatus(one, redact_state(states.get(name), one)) for name, one in channels.items()}
        return ChannelOverview(shown, agent.engine_version)

    async def configure(self, agent_id: str, name: str, request: ChannelRequest) -> ChannelChange:
        """Configure a channel.

        Raises the errors of `ChannelValidator.validate`, BotTokenInUse, ChannelConfigurationFailed, AgentNotFound.
        """
        async with self._lock(agent_id):
            agent = await self._runtimes.agents.get_here(agent_id)
            engine = self._runtimes.get_engine(agent.engine)
            present = (await self._channels.get_channels(agent_id)).get(name)
            supported = supported_channels(engine, agent.engine_version)
            tenant = await self._db.read(lambda connection: tenants.get_tenant(connection, agent.tenant_id))
            validated = await self._validator.validate(name, request, present, tenant.plan, supported, agent_id)
            await self._channels.save(agent_id, validated.channel)
            try:
                is_running = await self._apply(agent_id)
            except Problem as problem:
                await self._roll_back(agent_id, name, present, problem)
                raise ChannelConfigurationFailed from problem
        advice = engine.channels.advice(name) if engine.channels else None
        message = f"{LABELS[name]} is configured" + ("" if is_running else _AT_NEXT_START)
        return ChannelChange(message, validated.channel.bot_name, validated.warning or advice)

    async def remove(self, agent_id: str, name: str) -> ChannelChange:
        """Remove a channel; idempotent. Raises UnsupportedChannel, ChannelRemovalFailed, AgentNotFound."""
        if name not in CHANNELS:
            raise UnsupportedChannel
        async with self._lock(agent_id):
            await self._runtimes.agents.get_here(agent_id)
            present = (await self._channels.get_channels(agent_id)).get(name)
            if present is None:
                return ChannelChange(f"{LABELS[name]} is not configured")
            await self._channels.remove(agent_id, name)
            try:
                is_running = await self._apply(agent_id)
            except Problem as problem:
                await self._roll_back(agent_id, name, present, problem)
                raise ChannelRemovalFailed from problem
        return ChannelChange(f"{LABELS[name]} is removed" + ("" if is_running else _AT_NEXT_START))

    async def approve_request(self, agent_id: str, name: str, request_id: str) -> None:
        """Let the sender of a pairing request write to the bot; `request_id` is its id, or the code that the bot sent.

        Raises AgentNotFound, UnsupportedChannel, PairingUnsupported, PairingRequestNotFound, ChannelApprovalFailed.
        """
        await self._runtimes.agents.get_here(agent_id)
        if name not in await self._channels.get_channels(agent_id):
            raise UnsupportedChannel
        engine, context = await self._runtimes.get_context(agent_id)
        try:
            await _approve(engine.channels, context, name, request_id)
        except (EngineFailed, DialRefused, ContainerNotRunning, WardenFailed) as problem:
            _log.warning("channel.approval_failed", agent=agent_id, channel=name, reason=problem.message)
            raise ChannelApprovalFailed from problem
        data = {"action": "approved"}
        await write_change(self._db, DataChange("channel", "changed", name, agent_id=agent_id, data=data))

    @asynccontextmanager
    async def watch(self, agent_id: str) -> AsyncGenerator[AsyncGenerator[ChannelOverview]]:
        """Watch the channels, and yield their overview at first and when it changes.

        Engines push no messages, so the gateway is polled as long as a client watches.
        Raises AgentNotFound, AgentOnOtherHost, TooManyChannelWatches.
        """
        await self._runtimes.agents.get_here(agent_id)
        if self._watches[agent_id] >= _MAX_WATCHES:
            raise TooManyChannelWatches
        self._watches[agent_id] += 1
        try:
            async with aclosing(self._poll_overview(agent_id)) as overviews:
                yield overviews
        finally:
            self._watches[agent_id] -= 1
            self._watches += Counter()  # drops counts of zero

    async def _poll_overview(self, agent_id: str) -> AsyncGenerator[ChannelOverview]:
        last: ChannelOverview | None = None
        interval = Backoff(_WATCH_SECONDS)
        while True:
            found = await self.get_overview(agent_id)
            if found != last:
                yield found
            last = found
            await interval.pause()

    async def _apply(self, agent_id: str) -> bool:
        """Apply the stored channels to the agent's gateway; return whether it runs. Raises Problem."""
        agent = await self._wait_until_started(agent_id)
        if agent.state is not AgentState.RUNNING:
            return False
        await self._apply_to_gateway(agent_id)
        return True

    async def _apply_to_gateway(self, agent_id: str) -> None:
        engine, context = await self._runtimes.get_context(agent_id)
        if isinstance(engine.channels, HotChannelAbility):
            await engine.channels.apply(context, await self._channels.get_setups(agent_id))
        else:
            await self._restart(agent_id)

    async def _wait_until_started(self, agent_id: str) -> Agent:
        """Wait for a start in progress, which may have read the channels before the change."""
        agent = await self._runtimes.agents.get(agent_id)
        seconds = self._runtimes.get_engine(agent.engine).start_deadline + _START_GRACE_SECONDS
        deadline = clock.monotonic_seconds() + seconds
        backoff = Backoff(_POLL_SECONDS)
        while agent.state is AgentState.STARTING and clock.monotonic_seconds() < deadline:
            await backoff.pause()
            agent = await self._runtimes.agents.get(agent_id)
        return agent

    async def _roll_back(self, agent_id: str, name: str, previous: Channel | None, reason: Problem) -> None:
        """Restore the previous channel; if the gateway rejects it too, it applies at the next start."""
        _log.warning("channel.apply_failed", agent=agent_id, channel=name, reason=reason.message)
        try:
            if previous is None:
                await self._channels.remove(agent_id, name)
            else:
                await self._channels.save(agent_id, previous)
            await self._apply_to_gateway(agent_id)
        except Problem as problem:
            _log.warning("channel.rollback_failed", agent=agent_id, reason=problem.message)

    async def _get_states(self, agent: Agent) -> Mapping[str, ChannelState]:
        """Ask the running gateway for the channels' states; return none if it does not respond in time."""
        try:
            engine, context = await self._runtimes.get_context(agent.id)
            if engine.channels is None or agent.state is not AgentState.RUNNING:
                return {}
            async with asyncio.timeout(_STATUS_SECONDS):
                return await engine.channels.status(context)
        except (Problem, TimeoutError):
            return {}

    def _lock(self, agent_id: str) -> asyncio.Lock:
        return self._locks.setdefault(agent_id, asyncio.Lock())


async def _approve(ability: ChannelAbility | None, agent: AgentContext, name: str, request: str) -> None:
    """Approve a request by its id, or by its code if the engine lists no such id."""
    ways: list[Callable[[AgentContext, str, str], Awaitable[None]]] = []
    if isinstance(ability, PairingAbility):
        ways.append(ability.approve_request)
    if isinstance(ability, PairingCodeAbility):
        ways.append(ability.approve_code)
    if not ways:
        raise PairingUnsupported
    for approve in ways:
        with suppress(PairingRequestNotFound):
            await approve(agent, name, request)
            return
    raise PairingRequestNotFound
