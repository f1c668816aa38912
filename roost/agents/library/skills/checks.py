"""Check the stored versions again when the rules of the check have changed.

Several servers of one database may all run this task.
"""

from datetime import timedelta

from roost.agents.library.skills.service import SkillService
from roost.agents.library.skills.verdict.rules import rules_version
from roost.core import log
from roost.core.periodic import PeriodicTask
from roost.core.problem import Problem

INTERVAL = timedelta(hours=1)
_BATCH_SIZE = 100
_log = log.get_logger("skills")


class SkillChecks:
    """The periodic task; its first run is at the server's start."""

    def __init__(self, library: SkillService) -> None:
        self._library = library
        self._task = PeriodicTask("skill checks", self.check_outdated, INTERVAL.total_seconds())

    def start(self) -> None:
        self._task.start()

    async def stop(self) -> None:
        """Idempotent. The next start does the rest of a run that was cancelled."""
        await self._task.stop()

    async def check_outdated(self) -> int:
        """Check all versions that were checked by other rules; return their number."""
        after, count, current = "", 0, rules_version()
        while versions := await self._library.list_outdated(current, after, _BATCH_SIZE):
            after = versions[-1].id
            for version in versions:
                try:
                    verdict = await self._library.check_again(version)
                except Problem as problem:
                    _log.warning("skill.check_failed", cid=version.cid, reason=problem.message)
                    continue
                count += 1
                if verdict.level is not version.verdict.level:
                    _log.warning("skill.verdict_changed", cid=version.cid, verdict=verdict.level)
        return count
