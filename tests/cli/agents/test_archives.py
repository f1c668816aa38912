"""`roost agents export` and `import`: the file, and what is said of the agent that comes out of it."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal import FakeServer

ADA = {"agentId": "a1", "name": "Ada/B", "status": "running", "gatewayToken": "rst_gw_secret"}
EXPORT = "GET /v0/agents/a1/export"
IMPORTED = {
    "agent": ADA,
    "missingSecrets": ["KEY", "NEW"],
    "missingChannels": {"slack": {"enabled": True, "dmPolicy": "open", "allowFrom": ["U1", "U2"]}},
    "skippedTasks": ["Old"],
}


@pytest.fixture
def ada(server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    monkeypatch.chdir(tmp_path)
    server.answers["GET /v0/agents"] = (200, {"agents": [ADA]})
    server.answers[EXPORT] = (200, "the archive")
    return server


def test_an_export_is_private_and_replaces_nothing_unasked(ada: FakeServer, tmp_path: Path) -> None:
    assert ada.run("agents", "export", "a1").stdout == "Exported Ada/B to Ada-B.car (11 bytes).\n"
    target = tmp_path / "Ada-B.car"
    assert (target.read_text(), target.stat().st_mode & 0o777) == ("the archive", 0o600)
    target.write_text("mine")
    assert ada.run("agents", "export", "a1", input="n\n").exit_code == 1
    assert target.read_text() == "mine"
    assert ada.run("agents", "export", "a1", "--yes").exit_code == 0
    assert target.read_text() == "the archive"
    assert ada.run("agents", "export", "a1", "-o", "-").stdout == "the archive"
    ada.answers["GET /v0/agents/a1/snapshots?page=1"] = (
        *(200,),
        {"snapshots": [{"snapshotCid": "bafy1", "label": "first"}], "hasMore": False},
    )
    ada.answers[f"{EXPORT}?snapshotCid=bafy1"] = (200, "the first")
    ada.run("agents", "export", "a1", "-o", "first.car", "--snapshot", "first")
    assert (tmp_path / "first.car").read_text() == "the first"


def test_a_failed_export_leaves_no_file(ada: FakeServer, tmp_path: Path) -> None:
    ada.answers[EXPORT] = (409, {"error": "leak holds the value of the secret KEY"})
    refused = ada.run("agents", "export", "a1")
    assert (refused.exit_code, refused.stderr) == (1, "Error: leak holds the value of the secret KEY\n")
    ada.answers[EXPORT] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nthe\r\n"
    assert ada.run("agents", "export", "a1").exit_code == 3
    assert list(tmp_path.iterdir()) == []


def test_an_import_says_what_is_missing(ada: FakeServer, tmp_path: Path) -> None:
    file = tmp_path / "ada.car"
    file.write_text('"the archive"')
    ada.answers["POST /v0/agents/import?name=B%26C"] = (201, IMPORTED)
    ada.answers["GET /v0/secrets"] = (200, {"secrets": [{"name": "KEY"}]})
    made = ada.run("agents", "import", str(file), "--name", "B&C")
    assert ada.bodies("POST /v0/agents/import?name=B%26C") == ["the archive"]
    assert made.stdout.splitlines() == [
        "Imported Ada/B (a1).",
        "It had these secrets, which you can attach:",
        "  roost secrets attach a1 KEY",
        "  roost secrets create NEW && roost secrets attach a1 NEW",
        "It had these channels, whose tokens are not in the file:",
        "  roost channels set a1 slack (it had the policy 'open' and allowed U1, U2)",
        "Skipped the task Old: the engine refuses it.",
    ]
    shown = ada.run("agents", "import", str(file), "--name", "B&C", "-o", "json")
    assert json.loads(shown.stdout)["missingSecrets"] == ["KEY", "NEW"]
    assert "rst_gw" not in shown.stdout


def test_an_import_that_fails(ada: FakeServer, tmp_path: Path) -> None:
    gone = ada.run("agents", "import", "gone.car")
    assert (gone.exit_code, gone.stderr) == (2, "Error: gone.car: No such file or directory\n")
    file = tmp_path / "ada.car"
    file.write_text('"x"')
    ada.answers["POST /v0/agents/import"] = (400, {"error": "Invalid archive: The CAR is cut off"})
    assert ada.run("agents", "import", str(file)).stderr == "Error: Invalid archive: The CAR is cut off\n"
