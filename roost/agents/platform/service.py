"""The agent's own view: who it is, how it is, and the token with which it acts on its owner's behalf."""

from collections.abc import Callable

from roost.agents.lifecycle.details import AgentDetails
from roost.agents.platform.errors import PlatformTokenFailed
from roost.agents.registry.model import Agent, AgentProfile
from roost.agents.registry.repository import AgentRepository
from roost.core import log
from roost.core.seal import UnsealFailed
from roost.identity.platform_tokens import IssuedPlatformToken, PlatformTokens

_log = log.get_logger("platform")


class AgentSelfService:
    def __init__(
        self, roster: AgentRepository, details: AgentDetails, platform: PlatformTokens, origin: Callable[[str], str]
    ) -> None:
        self._roster = roster
        self._details = details
        self._platform = platform
        self._origin = origin

    async def token(self, agent_id: str) -> IssuedPlatformToken:
        """Raises TokenFailed when the key that signs cannot be opened."""
        try:
            return await self._platform.issue(agent_id)
        except UnsealFailed as error:
            _log.exception("the signing key cannot be opened")
            raise PlatformTokenFailed from error

    async def identity(self, agent_id: str) -> tuple[Agent, str]:
        """The agent and its public address. Raises AgentGone."""
        return await self._roster.get(agent_id), self._origin(agent_id)

    async def describe(self, agent_id: str, change: Callable[[AgentProfile], AgentProfile]) -> tuple[Agent, str]:
        """What people see of the agent, changed. Raises AgentGone and what `change` raises."""
        return await self._roster.update_profile(agent_id, change), self._origin(agent_id)

    async def status(self, agent_id: str) -> tuple[Agent, str, int | None]:
        """The agent, and what its warden says of its gateway now. Raises AgentGone."""
        agent = await self._roster.get(agent_id)
        return agent, *await self._details.process(agent)
