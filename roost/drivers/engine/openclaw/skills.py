"""OpenClaw's skills: it reads the folder `skills` of its workspace whenever it is asked."""

from collections.abc import Sequence

from roost.drivers.engine import task_json
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.skills import SkillAbility
from roost.drivers.engine.openclaw.rpc import OpenClawRpc
from roost.drivers.model.json_access import as_object, as_string


class OpenClawSkills(SkillAbility):
    def __init__(self, port: int) -> None:
        self._port = port

    async def list(self, agent: AgentContext) -> Sequence[str]:
        async with OpenClawRpc.open(agent.warden.dial, self._port, agent.token) as rpc:
            found = as_object(await rpc.call("skills.status"))
        return [as_string(skill.get("name")) for skill in task_json.parse_objects(found.get("skills"))]

    async def refresh(self, agent: AgentContext) -> None:
        """Do nothing, because the gateway reads the folder each time."""
