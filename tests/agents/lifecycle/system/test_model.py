"""Which agents are behind, and checks that do not finish."""

from datetime import UTC, datetime

from roost.agents.lifecycle.system.model import CheckResult, find_outdated, unfinished_check
from roost.agents.lifecycle.versions.model import EngineReleases
from roost.agents.registry.model import Agent, AgentProfile, AgentState

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def agent(version: str, engine: str = "openclaw") -> Agent:
    return Agent("a", "t", AgentProfile("Ada"), engine, version, AgentState.RUNNING, None, False, "h", NOW, NOW)


def test_older_versions_of_the_same_engine_are_behind() -> None:
    old, same, newer, other = agent("2026.9.6"), agent("2026.10.1"), agent("2026.11.1"), agent("1.0", "hermes")
    state = find_outdated(
        EngineReleases("openclaw", ["2026.9.6"], ["2026.10.1", "2026.9.6"]), [old, same, newer, other]
    )
    assert (state.outdated, state.latest) == ([old], "2026.10.1")


def test_without_a_known_release_none_is_behind() -> None:
    state = find_outdated(EngineReleases("openclaw", [], []), [agent("1.0")])
    assert (state.outdated, state.latest) == ([], None)


def test_unfinished_checks_name_the_last_that_finished() -> None:
    assert "the checks did not finish within 30 s" in unfinished_check(30, [])["detail"]
    before: list[CheckResult] = [{"part": "git", "status": "ok", "detail": "git version 2"}]
    assert "the checks after 'git' did not finish" in unfinished_check(30, before)["detail"]
