"""`roost versions` and `roost update`: what is asked of the server, what is shown, and how the command ends."""

import json

import pytest

from tests.cli.terminal import FakeServer

FOUND = {
    "currentVersion": "1.0.0",
    "availableVersions": ["1.1.0", "1.0.0"],
    "availableVersionsPerEngine": {"fake": ["1.1.0", "1.0.0"]},
    "engine": "fake",
}
UPDATE = "POST /v0/agents/a1/update"


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    server.answers["GET /v0/agents"] = (200, {"agents": [{"agentId": "a1", "name": "Ada"}]})
    server.answers["GET /v0/agents/a1/available-agent-versions"] = (200, FOUND)
    server.answers["GET /v0/agents/a1/update"] = (
        200,
        {"currentVersion": "1.0.0", "latestVersion": "1.1.0", "updateAvailable": True},
    )
    done = {"success": True, "previousVersion": "1.0.0", "newVersion": "1.1.0", "output": "Updated"}
    server.answers[UPDATE] = (200, done)
    return server


def test_versions_of_the_engine_are_listed(ada: FakeServer) -> None:
    rows = [line.split() for line in ada.run("versions", "Ada").stdout.splitlines()]
    assert rows == [["VERSION", "ENGINE", "CURRENT"], ["1.1.0", "fake"], ["1.0.0", "fake", "yes"]]
    assert json.loads(ada.run("versions", "Ada", "-o", "json").stdout) == FOUND


def test_check_changes_nothing(ada: FakeServer) -> None:
    checked = ada.run("update", "Ada", "--check")
    assert "latestVersion    1.1.0" in checked.stdout
    assert ada.bodies(UPDATE) == []
    assert ada.run("update", "Ada", "--check", "--to", "1").exit_code == 2


def test_update_takes_a_version(ada: FakeServer) -> None:
    assert ada.run("update", "Ada").stdout == "Updated\n"
    assert ada.run("update", "Ada", "--to", "1.1.0").exit_code == 0
    assert ada.bodies(UPDATE) == [{}, {"tag": "1.1.0"}]


def test_an_update_that_does_not_hold_ends_with_1(ada: FakeServer) -> None:
    back = {"success": False, "previousVersion": "1.0.0", "newVersion": "1.0.0", "output": "1.1.0 did not work"}
    ada.answers[UPDATE] = (200, back)
    failed = ada.run("update", "Ada")
    assert (failed.exit_code, failed.stderr.splitlines()[-1]) == (1, "Error: 1.1.0 did not work")
    as_json = ada.run("update", "Ada", "-o", "json")
    assert (as_json.exit_code, json.loads(as_json.stdout)) == (1, back)
