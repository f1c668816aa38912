"""Status of a script, from its row and the processes of the container."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from roost.agents.workspace.scripts import model
from roost.agents.workspace.scripts.model import (
    BUILD,
    START,
    InvalidManifest,
    ManifestScripts,
    ScriptState,
    ScriptStatus,
)
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


def parse(scripts: object) -> ManifestScripts:
    return model.parse_manifest(json.dumps({"version": 1, "scripts": scripts}).encode(), "a.agents.localhost:8642")


def test_both_scripts_with_the_host_filled_in() -> None:
    found = parse({"build": "npm ci", "start": "serve --base http://__AGENT_HOST__/x --host __AGENT_HOST__"})
    assert found.build == "npm ci"
    assert found.start == "serve --base http://a.agents.localhost:8642/x --host a.agents.localhost:8642"
    assert len(found.digest) == 64


def test_a_changed_manifest_is_another_one() -> None:
    assert parse({"build": "a"}).digest != parse({"build": "b"}).digest


@pytest.mark.parametrize("scripts", [None, {}, {"build": ""}, {"build": None, "start": " \n"}, {"other": 7}])
def test_manifest_may_have_no_scripts(scripts: object) -> None:
    found = parse(scripts)
    assert (found.build, found.start) == (None, None)


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "not valid JSON"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe{}", "not valid JSON"),
        (b"[" * 500_000, "not valid JSON"),
        (b'{"a":' * 100_000, "not valid JSON"),
        (b'{"n": ' + b"9" * 10_000 + b"}", "not valid JSON"),
        (b"[]", "not an object"),
        (b"null", "not an object"),
        (b'{"scripts": []}', "scripts is not an object"),
        (b'{"scripts": "npm ci"}', "scripts is not an object"),
        (b'{"scripts": {"build": 7}}', "scripts.build is not a string"),
        (b'{"scripts": {"start": ["a"]}}', "scripts.start is not a string"),
        (b'{"scripts": {"build": "a\\u0000b"}}', "NUL"),
        (b'{"scripts": {"build": "\\ud800"}}', "not valid text"),
        (json.dumps({"scripts": {"start": "x" * 70_000}}).encode(), "longer than 64 KiB"),
        (json.dumps({"scripts": {"start": model.HOST_PLACEHOLDER * 5_000}}).encode(), "longer than 64 KiB"),
    ],
    ids=range(16),
)
def test_malformed_manifests_are_refused_with_a_reason(raw: bytes, reason: str) -> None:
    with pytest.raises(InvalidManifest, match=reason):
        model.parse_manifest(raw, "a.agents.localhost:8642")


def test_a_byte_order_mark_is_no_harm() -> None:
    assert model.parse_manifest(b"\xef\xbb\xbf" + b'{"scripts": {"build": "a"}}', "h").build == "a"
