"""Hermes's skills: a link in its own folder of skills leads to those of the workspace.

Its setting for further folders is read from the user's file only, which the platform does not change. Hermes follows
the link, but keeps what it found for 30 s unless its own folder has changed.
"""

from collections.abc import Mapping

from roost.drivers.engine import task_json
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.skills import SkillAbility
from roost.drivers.engine.gateway_http import send_json
from roost.drivers.model.json_access import as_string
from roost.drivers.runtime.contract import HOME, WORKSPACE

_FOLDER = ".hermes/skills"
_LINK, _TARGET = f"{HOME}/{_FOLDER}/workspace", f"{WORKSPACE}/skills"
_TOUCHED = f"{_FOLDER}/.roost"
LINK_WORKSPACE = f'[ -e "{_LINK}" ] || [ -L "{_LINK}" ] || ln -s "{_TARGET}" "{_LINK}"'
"""Shell command that makes the link unless something has its name; the folder exists."""
CREATE_FOLDER = f'mkdir -p "{HOME}/{_FOLDER}"'


class HermesSkills(SkillAbility):
    def __init__(self, port: int) -> None:
        self._port = port

    async def list(self, agent: AgentContext) -> Mapping[str, None]:
        _, found = await send_json(agent.warden.dial, self._port, "GET /v1/skills", agent.token)
        return dict.fromkeys(as_string(skill.get("name")) for skill in task_json.parse_objects(found.get("data")))

    async def refresh(self, agent: AgentContext) -> None:
        await agent.warden.write(_TOUCHED, b"", root="home", mode=0o600)
