"""An agent's identity, status, and the token with which it acts for its owner."""

from collections.abc import Awaitable, Callable

from roost.agents.lifecycle.details import AgentDetails
from roost.agents.platform.errors import PlatformTokenFailed
from roost.agents.registry.model import Agent, AgentProfile, AgentState
from roost.agents.registry.repository import AgentRepository
from roost.core import log
from roost.core.seal import UnsealFailed
from roost.identity.platform_tokens import IssuedPlatformToken, PlatformTokens

_log = log.get_logger("platform")


class AgentSelfService:
    def __init__(
        self,
        agents: AgentRepository,
        details: AgentDetails,
        platform: PlatformTokens,
        origin: Callable[[str], str],
        restart: Callable[[str], Awaitable[object]],
    ) -> None:
        self._agents = agents
        self._details = details
        self._platform = platform
        self._origin = origin
        self._restart = restart

    async def issue_token(self, agent_id: str) -> IssuedPlatformToken:
        """Issue a platform token. Raises PlatformTokenFailed if the signing key cannot be decrypted."""
        try:
            return await self._platform.issue(agent_id)
        except UnsealFailed as error:
            _log.exception("signing_key.unseal_failed")
            raise PlatformTokenFailed from error

    async def get_identity(self, agent_id: str) -> tuple[Agent, str]:
        """Return the agent and its public address. Raises AgentNotFound."""
        return await self._agents.get(agent_id), self._origin(agent_id)

    async def update_profile(self, agent_id: str, change: Callable[[AgentProfile], AgentProfile]) -> tuple[Agent, str]:
        """Change the agent's profile; another model restarts a gateway that runs.

        Raises AgentNotFound, the errors of `change`, and those of a restart.
        """
        before = await self._agents.get(agent_id)
        after = await self._agents.update_profile(agent_id, change)
        if after.profile.model != before.profile.model and after.state is AgentState.RUNNING:
            await self._restart(agent_id)
        return await self._agents.get(agent_id), self._origin(agent_id)

    async def get_status(self, agent_id: str) -> tuple[Agent, str, int | None]:
        """Return the agent, and the status and id of its gateway's process. Raises AgentNotFound."""
        agent = await self._agents.get(agent_id)
        return agent, *await self._details.get_process(agent)
