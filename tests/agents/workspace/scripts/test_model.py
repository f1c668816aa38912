"""Status of a script, from its row and the processes of the container."""

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from roost.agents.workspace.scripts import model
from roost.agents.workspace.scripts.model import BUILD, START, ScriptState, ScriptStatus
from roost.warden_client.client import ProcessStatus

NOW = datetime(2026, 1, 2, tzinfo=UTC)
RUNNING = ScriptStatus(ScriptState.RUNNING)


def started(state: str, code: int | None = None) -> Mapping[str, ProcessStatus]:
    return {"start": ProcessStatus(state, 7 if state == "running" else None, code, NOW, 1)}  # type: ignore[arg-type] - a literal


@pytest.mark.parametrize(
    ("processes", "state", "reason"),
    [
        (started("running"), ScriptState.RUNNING, None),
        (started("backoff", 3), ScriptState.FAILED, "It ended with code 3 and is restarted"),
        (started("exited", 0), ScriptState.FAILED, "It ended with code 0"),
        ({}, ScriptState.PENDING, "The agent's container was restarted"),
        (None, ScriptState.PENDING, "The agent is not running"),
    ],
)
def test_a_start_script_that_was_launched(
    processes: Mapping[str, ProcessStatus] | None, state: ScriptState, reason: str | None
) -> None:
    seen = model.current_status(START, RUNNING, processes)
    assert (seen.state, seen.reason) == (state, reason)


@pytest.mark.parametrize("state", [ScriptState.SUCCESS, ScriptState.FAILED, ScriptState.NOT_CONFIGURED])
def test_finished_states_stay_as_they_are(state: ScriptState) -> None:
    for name in (BUILD, START):
        for processes in (None, started("running")):
            assert model.current_status(name, ScriptStatus(state), processes) == ScriptStatus(state)


def test_a_build_keeps_its_status_while_the_container_runs() -> None:
    assert model.current_status(BUILD, RUNNING, {}) == RUNNING
    assert model.current_status(BUILD, RUNNING, None).state is ScriptState.PENDING


def test_the_subject_leads_back_to_the_agent() -> None:
    assert model.operation_subject("a1") != "a1"
    assert model.subject_agent_id(model.operation_subject("a1")) == "a1"
