"""OpenClaw's skills: it reads the folder `skills` of its workspace whenever it is asked."""

from collections.abc import Mapping
from typing import Any

from roost.core.sanitize import sanitize_line
from roost.drivers.engine import gateway_json
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.skills import SkillAbility
from roost.drivers.engine.openclaw.rpc import OpenClawRpc
from roost.drivers.model.json_access import as_list, as_object, as_string

_OFF = ("disabled", "blockedByAllowlist", "blockedByAgentFilter")
_MISSING = {"bins": "program", "anyBins": "alternative program", "env": "variable", "config": "setting", "os": "system"}
_FAULT_LENGTH = 500


class OpenClawSkills(SkillAbility):
    async def list(self, agent: AgentContext) -> Mapping[str, str | None]:
        async with OpenClawRpc.open(agent.warden.dial, agent.token) as rpc:
            found = as_object(await rpc.call("skills.status"))
        return {as_string(one.get("name")): _find_fault(one) for one in gateway_json.parse_objects(found.get("skills"))}

    async def refresh(self, agent: AgentContext) -> None:
        """Do nothing, because the gateway reads the folder each time."""


def _find_fault(skill: Mapping[str, Any]) -> str | None:
    """Return why OpenClaw does not use a skill that it lists; None if it does."""
    off = "its configuration turns it off" if any(skill.get(key) is True for key in _OFF) else ""
    if not off and skill.get("eligible") is not False:
        return None
    missing = as_object(skill.get("missing"))
    lacks = [f"the {kind} `{as_string(name)}`" for key, kind in _MISSING.items() for name in as_list(missing.get(key))]
    lack = f"{', '.join(lacks)} {'are' if len(lacks) > 1 else 'is'} missing" if lacks else "it gives no reason"
    return sanitize_line(f"OpenClaw does not use it: {off or lack}")[:_FAULT_LENGTH]
