"""A server makes a verdict once, and one at a time."""

import asyncio
import threading
from unittest.mock import Mock

import pytest

from roost.agents.library.skills import checker
from roost.agents.library.skills.bundle import Bundle
from roost.agents.library.skills.checker import SkillChecker
from roost.agents.library.skills.verdict import Verdict, VerdictLevel
from roost.agents.library.skills.verdict.rules import rules_version
from tests.agents.library.skills.skills_env import make_bundle


class CountingCheck:
    """In place of the check: counts the calls, and how many run at once."""

    def __init__(self) -> None:
        self.calls, self.running, self.most = 0, 0, 0
        self.go = threading.Event()

    def __call__(self, _: Bundle) -> Verdict:
        self.calls, self.running = self.calls + 1, self.running + 1
        self.most = max(self.most, self.running)
        assert self.go.wait(20)
        self.running -= 1
        return Verdict(VerdictLevel.REVIEW, (), rules_version())


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch) -> CountingCheck:
    counting = CountingCheck()
    monkeypatch.setattr(checker, "check_bundle", counting)
    return counting


async def test_the_same_files_are_checked_once_for_all_tenants(check: CountingCheck) -> None:
    check.go.set()
    made = SkillChecker(Mock(), Mock())
    for tenant in ("a", "b", "a"):
        assert (await made.check(tenant, make_bundle())).level is VerdictLevel.REVIEW
    assert check.calls == 1
    await made.check("a", make_bundle(text="Other words."))
    assert check.calls == 2


async def test_a_stored_verdict_of_the_present_rules_is_taken(check: CountingCheck) -> None:
    check.go.set()
    made = SkillChecker(Mock(), Mock())
    stored = Verdict(VerdictLevel.CLEAN, (), rules_version())
    assert await made.check("a", make_bundle(), stored) is stored
    assert check.calls == 0
    old = Verdict(VerdictLevel.CLEAN, (), "0-of-old-rules")
    assert (await made.check("a", make_bundle(), old)).level is VerdictLevel.REVIEW


async def test_checks_of_one_tenant_take_turns_also_when_callers_leave(check: CountingCheck) -> None:
    made = SkillChecker(Mock(), Mock())
    waiting = [asyncio.create_task(made.check("a", make_bundle(text=str(number)))) for number in range(4)]
    while not check.calls:
        await asyncio.sleep(0)
    waiting[0].cancel()
    check.go.set()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert (check.calls, check.most) == (4, 1)
