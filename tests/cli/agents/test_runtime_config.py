"""`roost config`: what is asked of the server, what is shown of its answer, and how the command ends."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal import FakeServer

CONFIG = "/v0/agents/a1/config"


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    server.answers["GET /v0/agents"] = (200, {"agents": [{"agentId": "a1", "name": "Ada"}]})
    server.answers[f"GET {CONFIG}"] = (200, {"config": "{\n  // mine\n}"})
    server.answers[f"PUT {CONFIG}"] = (200, {"success": True, "message": "Config written"})
    server.answers[f"POST {CONFIG}/validate"] = (200, {"valid": True, "output": "Valid"})
    return server


def test_show_prints_the_configuration(ada: FakeServer) -> None:
    assert ada.run("config", "show", "Ada").stdout == "{\n  // mine\n}\n"
    assert json.loads(ada.run("config", "show", "a1", "-o", "json").stdout) == {"config": "{\n  // mine\n}"}


def test_set_from_a_file_and_from_standard_input(ada: FakeServer, tmp_path: Path) -> None:
    file = tmp_path / "openclaw.json"
    file.write_text("{a: 1}")
    assert ada.run("config", "set", "Ada", str(file)).stdout == "Config written\n"
    assert ada.run("config", "set", "Ada", "-", input="{a: 2}").exit_code == 0
    assert ada.bodies(f"PUT {CONFIG}") == [{"config": "{a: 1}"}, {"config": "{a: 2}"}]


def test_set_what_the_engine_does_not_take(ada: FakeServer) -> None:
    ada.answers[f"PUT {CONFIG}"] = (400, {"error": "Invalid JSON"})
    ada.headers["X-Error-Detail"] = json.dumps("gateway.bind: Invalid input")
    refused = ada.run("config", "set", "Ada", "-", input="{}")
    assert (refused.exit_code, refused.stderr) == (2, "Error: Invalid JSON: gateway.bind: Invalid input\n")


def test_validate_checks_a_file_or_the_present_one(ada: FakeServer, tmp_path: Path) -> None:
    assert ada.run("config", "validate", "Ada").stdout == "Valid\n"
    assert ada.run("config", "validate", "Ada", "-", input="x").exit_code == 0
    assert ada.bodies(f"POST {CONFIG}/validate") == [None, {"config": "x"}]
    ada.answers[f"POST {CONFIG}/validate"] = (200, {"valid": False, "output": "a: wrong\nb: too"})
    spoilt = ada.run("config", "validate", "Ada")
    assert (spoilt.exit_code, spoilt.stdout) == (1, "a: wrong\nb: too\n")
    assert json.loads(ada.run("config", "validate", "Ada", "-o", "json").stdout)["valid"] is False


def test_a_file_that_cannot_be_read(ada: FakeServer, tmp_path: Path) -> None:
    (tmp_path / "bytes").write_bytes(b"\xff")
    for name in ("missing", "bytes", "."):
        assert ada.run("config", "set", "Ada", str(tmp_path / name)).exit_code == 2
    assert ada.bodies(f"PUT {CONFIG}") == []
