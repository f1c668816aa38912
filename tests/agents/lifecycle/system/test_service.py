"""Checks for the operator: within a time, one run at a time, and the results of one run for a while."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from roost import app, config
from roost.agents.lifecycle.system import service
from roost.agents.lifecycle.system.model import CheckResult
from roost.agents.lifecycle.system.service import SystemService
from roost.identity import tenants
from roost.identity.caller import Caller, CallerKind
from roost.identity.model import DEFAULT_TENANT

OK: CheckResult = {"part": "git", "status": "ok", "detail": "git version 2"}


class PausedChecks:
    """Checks of which the second waits for `released`."""

    def __init__(self) -> None:
        self.runs = 0
        self.released = asyncio.Event()

    async def run(self, report: Callable[[CheckResult], None]) -> None:
        self.runs += 1
        report(OK)
        await self.released.wait()
        report({"part": "models", "status": "ok", "detail": "scripted"})


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[tuple[Caller, Callable[[PausedChecks], SystemService]]]:
    db = app.open_database(config.load_settings({"ROOST_DATA": str(tmp_path / "data")}))
    caller = Caller(CallerKind.SERVICE, db.run(lambda connection: tenants.ensure_tenant(connection, DEFAULT_TENANT)).id)

    def build(checks: PausedChecks) -> SystemService:
        rest: dict[str, Any] = dict.fromkeys(
            ("agents", "versions", "software", "host_id", "read_disk", "read_readiness")
        )
        return SystemService(db, run_checks=checks.run, **rest)

    yield caller, build
    db.close()


async def test_checks_that_hang_leave_the_others_and_are_not_started_twice(operator, monkeypatch) -> None:
    monkeypatch.setattr(service, "CHECK_SECONDS", 0.05)
    monkeypatch.setattr(service, "_RECENT_SECONDS", 0)
    (caller, build), checks = operator, PausedChecks()
    system = build(checks)
    for _ in range(2):
        first, unfinished = await system.check(caller)
        assert (first, unfinished["part"], unfinished["status"]) == (OK, "checks", "fail")
        assert "after 'git'" in unfinished["detail"]
    checks.released.set()
    assert [one["part"] for one in await system.check(caller)] == ["git", "models"]
    assert checks.runs == 1
    await system.check(caller)
    assert checks.runs == 2


async def test_callers_at_the_same_time_share_a_run(operator) -> None:
    (caller, build), checks = operator, PausedChecks()
    system = build(checks)
    checks.released.set()
    found = await asyncio.gather(*(system.check(caller) for _ in range(3)), system.check(caller))
    assert [len(one) for one in found] == [2, 2, 2, 2]
    assert checks.runs == 1


async def test_a_run_that_fails_is_not_the_next_one(operator) -> None:
    class Failing(PausedChecks):
        async def run(self, report: Callable[[CheckResult], None]) -> None:
            if not self.runs:
                self.runs += 1
                raise OSError
            await super().run(report)

    (caller, build), checks = operator, Failing()
    system = build(checks)
    with pytest.raises(OSError):
        await system.check(caller)
    checks.released.set()
    assert len(await system.check(caller)) == 2
