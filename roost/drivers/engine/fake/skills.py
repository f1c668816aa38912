"""The fake engine's skills, which its gateway finds in the workspace."""

from collections.abc import Mapping

from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.skills import SkillAbility
from roost.drivers.engine.gateway_http import send_json
from roost.drivers.model.json_access import as_list, as_string


class FakeSkills(SkillAbility):
    def __init__(self, port: int) -> None:
        self._port = port

    async def list(self, agent: AgentContext) -> Mapping[str, None]:
        _, found = await send_json(agent.warden.dial, self._port, "GET /skills", agent.token)
        return dict.fromkeys(as_string(name) for name in as_list(found.get("skills")))

    async def refresh(self, agent: AgentContext) -> None:
        """Do nothing, because the gateway reads the folder each time."""
