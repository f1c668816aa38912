"""`roost devices`: what is asked of the server, what is shown of its answer, and how the command ends."""

import json

import pytest

from tests.cli.terminal import FakeServer

WAITING = {
    "status": "pending",
    "requestId": "r1",
    "deviceId": "d1",
    "displayName": "\x1b[1mphone",
    "remoteIp": "192.0.2.1",
}
PAIRED = {"status": "paired", "deviceId": "d2", "platform": "android"}
DEVICES = "/v0/agents/a1/devices"


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    server.answers["GET /v0/agents"] = (200, {"agents": [{"agentId": "a1", "name": "Ada"}]})
    listed = {"pending": [WAITING], "paired": [PAIRED], "supported": True, "message": None}
    server.answers[f"GET {DEVICES}"] = (200, listed)
    return server


def test_list_shows_waiting_and_paired_devices(ada: FakeServer) -> None:
    head, waiting, paired = ada.run("devices", "list", "Ada").stdout.splitlines()
    assert head.split()[:3] == ["STATUS", "REQUEST", "ID"]
    assert waiting.split() == ["pending", "r1", "d1", "phone", "192.0.2.1"]
    assert paired.split() == ["paired", "d2", "android"]
    assert json.loads(ada.run("devices", "list", "a1", "-o", "json").stdout)["pending"] == [WAITING]


def test_an_engine_without_devices_says_so(ada: FakeServer) -> None:
    ada.answers[f"GET {DEVICES}"] = (200, {"pending": [], "paired": [], "supported": False, "message": "No pairing"})
    listed = ada.run("devices", "list", "Ada")
    assert (listed.exit_code, listed.stderr) == (0, "No pairing\n")


def test_approve_accepts_one_request(ada: FakeServer) -> None:
    ada.answers[f"POST {DEVICES}/r1/approve"] = (
        200,
        {"success": True, "requestId": "r1", "message": "Device approved"},
    )
    assert ada.run("devices", "approve", "Ada", "r1").stdout == "Device approved\n"
    ada.answers[f"POST {DEVICES}/a%2Fb/approve"] = (404, {"error": "Device request not found"})
    unknown = ada.run("devices", "approve", "Ada", "a/b")
    assert (unknown.exit_code, unknown.stderr) == (5, "Error: Device request not found\n")


def test_approve_all_fails_if_one_fails(ada: FakeServer) -> None:
    ada.answers[f"POST {DEVICES}/approve-all"] = (200, {"approved": ["r1"], "failed": [], "message": "1 approved"})
    done = ada.run("devices", "approve-all", "Ada")
    assert (done.exit_code, done.stdout) == (0, "1 approved\n")
    failed = {"requestId": "r2", "success": False, "error": "CLI error"}
    ada.answers[f"POST {DEVICES}/approve-all"] = (
        200,
        {"approved": [], "failed": [failed], "message": "0 approved, 1 failed"},
    )
    done = ada.run("devices", "approve-all", "Ada")
    assert (done.exit_code, done.stderr) == (1, "Error: r2: CLI error\n")
    whole = ada.run("devices", "approve-all", "Ada", "-o", "json")
    assert (whole.exit_code, json.loads(whole.stdout)["failed"]) == (1, [failed])
