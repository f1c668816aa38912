"""An agent's identity, status, and the token with which it acts for its owner."""

from collections.abc import Callable
from dataclasses import dataclass

from roost.agents.lifecycle.workflows.details import AgentDetails
from roost.agents.registry.model import Agent, AgentProfile
from roost.agents.registry.repository import AgentProfiles, AgentRepository
from roost.core import log
from roost.core.problem import Problem
from roost.core.seal import UnsealFailed
from roost.identity.caller import Caller, CallerKind
from roost.identity.platform_tokens import IssuedPlatformToken, PlatformTokens


class PlatformTokenFailed(Problem):
    message = "Token generation failed"


_log = log.get_logger("platform")


@dataclass(frozen=True)
class AgentSelfService:
    _agents: AgentRepository
    _details: AgentDetails
    _platform: PlatformTokens
    _origin: Callable[[str], str]
    _profiles: AgentProfiles

    async def issue_token(self, caller: Caller, agent_id: str) -> IssuedPlatformToken:
        """Issue a platform token. Raises PlatformTokenFailed if the signing key cannot be decrypted."""
        try:
            return await self._platform.issue(agent_id, is_inside=caller.kind is CallerKind.RELAY)
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
        return await self._profiles.update(agent_id, change), self._origin(agent_id)

    async def get_status(self, agent_id: str) -> tuple[Agent, str, int | None]:
        """Return the agent, and the status and id of its gateway's process. Raises AgentNotFound."""
        agent = await self._agents.get(agent_id)
        return agent, *await self._details.get_process(agent)
