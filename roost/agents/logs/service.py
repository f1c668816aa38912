"""The last lines of an agent's logs, masked."""

import re

from roost.agents.roster.reach import Reach
from roost.agents.roster.service import Roster
from roost.core import clock
from roost.core.log import redact
from roost.drivers.runtime.contract import BoxGone

LINE_LIMIT = 100

_ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")


class Logs:
    def __init__(self, roster: Roster, reach: Reach) -> None:
        self._roster = roster
        self._reach = reach

    async def tail(self, agent_id: str) -> str:
        """The last 100 lines, oldest first, as one text; of an agent without a container, why it has none.

        Raises AgentGone.
        """
        agent = await self._roster.get(agent_id)
        try:
            lines = await self._reach.warden(agent_id).logs(limit=LINE_LIMIT)
        except BoxGone:
            return redact(agent.reason or "")
        return "\n".join(redact(f"{clock.iso(line.time)} [{line.source}] {plain(line.text)}") for line in lines)


def plain(text: str) -> str:
    """A line without colours, and without control characters that would steer a terminal (ECMA-48)."""
    return "".join(
        sign if sign.isprintable() or sign == "\t" else "\N{REPLACEMENT CHARACTER}" for sign in _ESCAPES.sub("", text)
    )
