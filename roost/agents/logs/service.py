"""The last lines of an agent's logs: plain text, with our credentials masked."""

from roost.agents.roster.reach import Reach
from roost.agents.roster.service import Roster
from roost.core import clock
from roost.core.log import redact
from roost.core.plain import plain
from roost.drivers.runtime.contract import BoxGone

LINE_LIMIT = 100
_LINE_CHARS = 16 * 1024 + 16  # as long as an honest warden makes them


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
            return agent.reason or ""
        last = lines[-LINE_LIMIT:]
        return "\n".join(f"{clock.iso(line.time)} [{shown(line.source)}] {shown(line.text)}" for line in last)


def shown(text: str) -> str:
    """A line that an agent wrote, as people may see it: cut, masked, and without what would steer a terminal."""
    return redact(plain(text[:_LINE_CHARS]))
