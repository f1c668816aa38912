"""The agent's own view: who it is, how it is, and the token with which it acts on its owner's behalf."""

from collections.abc import Callable

from roost.agents.lifecycle.detail import Details
from roost.agents.platform.errors import TokenFailed
from roost.agents.roster.model import Agent, Profile
from roost.agents.roster.service import Roster
from roost.core import log
from roost.core.seal import Unsealable
from roost.identity.platform import Issued, Platform

_log = log.get("platform")


class SelfService:
    def __init__(self, roster: Roster, details: Details, platform: Platform, origin: Callable[[str], str]) -> None:
        self._roster = roster
        self._details = details
        self._platform = platform
        self._origin = origin

    async def token(self, agent_id: str) -> Issued:
        """Raises TokenFailed when the key that signs cannot be opened."""
        try:
            return await self._platform.issue(agent_id)
        except Unsealable as error:
            _log.exception("the signing key cannot be opened")
            raise TokenFailed from error

    async def identity(self, agent_id: str) -> tuple[Agent, str]:
        """The agent and its public address. Raises AgentGone."""
        return await self._roster.get(agent_id), self._origin(agent_id)

    async def describe(self, agent_id: str, change: Callable[[Profile], Profile]) -> tuple[Agent, str]:
        """What people see of the agent, changed. Raises AgentGone and what `change` raises."""
        return await self._roster.describe(agent_id, change), self._origin(agent_id)

    async def status(self, agent_id: str) -> tuple[Agent, str, int | None]:
        """The agent, and what its warden says of its gateway now. Raises AgentGone."""
        agent = await self._roster.get(agent_id)
        return agent, *await self._details.process(agent)
