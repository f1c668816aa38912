"""Changes of an agent's profile, of which its gateway reads the model at its start."""

from collections.abc import Awaitable, Callable

from roost.agents.registry.model import Agent, AgentProfile, AgentState
from roost.agents.registry.repository import AgentRepository


class AgentProfiles:
    def __init__(self, agents: AgentRepository, restart: Callable[[str], Awaitable[object]]) -> None:
        self._agents = agents
        self._restart = restart

    async def update(
        self, agent_id: str, change: Callable[[AgentProfile], AgentProfile], *, restart: bool = False
    ) -> Agent:
        """Change the profile and return the agent; another model, or `restart`, restarts a gateway that runs.

        Raises AgentNotFound, the errors of `change`, and those of a restart.
        """
        before = await self._agents.get(agent_id)
        after = await self._agents.update_profile(agent_id, change)
        if (restart or after.profile.model != before.profile.model) and after.state is AgentState.RUNNING:
            await self._restart(agent_id)
        return await self._agents.get(agent_id)
