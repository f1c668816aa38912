"""Who is the operator, and which agents are behind."""

from datetime import UTC, datetime

import pytest

from roost.agents.registry.model import Agent, AgentProfile, AgentState
from roost.agents.system.model import find_outdated, require_operator
from roost.agents.versions.model import EngineReleases
from roost.identity.caller import Caller, CallerKind, Plan, Role
from roost.identity.errors import PermissionDenied
from roost.identity.model import Tenant

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def agent(version: str, engine: str = "openclaw") -> Agent:
    return Agent("a", "t", AgentProfile("Ada"), engine, version, AgentState.RUNNING, None, False, "h", NOW, NOW)


def tenant(name: str) -> Tenant:
    return Tenant("t", name, Plan.PAID, NOW)


def test_the_operator_is_the_default_tenant_without_limits() -> None:
    require_operator(Caller(CallerKind.SERVICE, "t"), tenant("default"))
    require_operator(Caller(CallerKind.SERVICE, "t", role=Role.OWNER), tenant("default"))
    for caller, name in (
        (Caller(CallerKind.SERVICE, "t"), "acme"),
        (Caller(CallerKind.SERVICE, "t", scopes=frozenset({"org:write", "org:read"})), "default"),
        (Caller(CallerKind.SERVICE, "t", is_counted=True), "default"),
    ):
        with pytest.raises(PermissionDenied):
            require_operator(caller, tenant(name))


def test_older_versions_of_the_same_engine_are_behind() -> None:
    old, same, newer, other = agent("2026.9.6"), agent("2026.10.1"), agent("2026.11.1"), agent("1.0", "hermes")
    state = find_outdated(
        EngineReleases("openclaw", ["2026.9.6"], ["2026.10.1", "2026.9.6"]), [old, same, newer, other]
    )
    assert (state.outdated, state.latest) == ([old], "2026.10.1")


def test_without_a_known_release_none_is_behind() -> None:
    state = find_outdated(EngineReleases("openclaw", [], []), [agent("1.0")])
    assert (state.outdated, state.latest) == ([], None)
