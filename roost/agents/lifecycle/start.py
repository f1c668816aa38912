"""The operation behind launch, restart and recovery: an agent's box and gateway, up from whatever state they are in."""

from typing import Any

from roost.agents.lifecycle.gateway import GatewayStarter
from roost.agents.lifecycle.model import NEW_BOX, Relays, Trust, box_spec
from roost.agents.roster.errors import AgentGone
from roost.agents.roster.model import Agent, AgentState
from roost.agents.roster.reach import Reach
from roost.agents.roster.service import Roster
from roost.core import log
from roost.core.problem import Problem
from roost.drivers.runtime.contract import Limits, Runtime
from roost.work import Claim

_log = log.get("lifecycle")


class Start:
    """Handles `agent.start`; the payload `NEW_BOX` asks for a new box as well (other engine version)."""

    def __init__(
        self,
        roster: Roster,
        reach: Reach,
        runtime: Runtime,
        relays: Relays,
        gateways: GatewayStarter,
        limits: Limits,
        trust: Trust,
    ) -> None:
        self._roster = roster
        self._reach = reach
        self._runtime = runtime
        self._relays = relays
        self._gateways = gateways
        self._limits = limits
        self._trust = trust

    async def __call__(self, operation: Claim) -> dict[str, Any]:
        """Idempotent: can be cut off anywhere and run again."""
        try:
            agent = await self._roster.get(operation.subject)
        except AgentGone:  # it was deleted before its turn came
            return {}
        try:
            await self._bring_up(agent, fresh_box=operation.payload == NEW_BOX)
        except Exception as error:
            reason = error.message if isinstance(error, Problem) else "Internal error"
            _log.warning("agent failed to start", agent=agent.id, engine=agent.engine, reason=reason)
            await operation.guard(lambda connection: self._roster.move(connection, agent.id, AgentState.FAILED, reason))
            raise
        await operation.guard(lambda connection: self._roster.move(connection, agent.id, AgentState.RUNNING))
        _log.info("agent is running", agent=agent.id, engine=agent.engine, version=agent.engine_version)
        return {}

    async def _bring_up(self, agent: Agent, *, fresh_box: bool) -> None:
        mounts = self._reach.engine(agent.engine).mounts(agent.engine_version)
        if fresh_box:
            await self._runtime.stop(agent.id)
        await self._relays.open(agent.id)
        await self._runtime.start(box_spec(agent.id, mounts, self._limits, self._trust))
        await self._gateways.start(agent)
