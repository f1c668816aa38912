"""The migration of work that keeps failing."""

from roost import work
from roost.core.db import Database
from roost.work.faults import list_faults


async def test_work_of_an_agent_and_what_keeps_failing(upgraded: Database) -> None:
    commit = await upgraded.read(lambda c: work.get_operation(c, "commit"))
    assert (commit.kind, commit.subject) == ("agent.commit", "a1/git")
    (fault,) = await upgraded.read(lambda c: list_faults(c, "a1"))
    assert (fault.kind, fault.failures, fault.reason) == ("agent.snapshot", 3, "x" * 1000)
