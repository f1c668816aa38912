"""`roost secrets`: values come by file, pipe or prompt and are never shown; names stand for ids."""

import json
from pathlib import Path

import pytest

from tests.cli.terminal import FakeServer, run

TOKEN = {
    "id": "s1",
    "userId": "t",
    "name": "TOKEN",
    "type": "secret",
    "createdAt": "2026-01-02T03:04:05.000006Z",
    "updatedAt": "2026-01-02T03:04:05.000006Z",
    "agents": [{"agentId": "a1", "name": "Ada"}],
}
PLACE = {**TOKEN, "id": "s2", "name": "PLACE", "type": "variable", "value": "here", "agents": []}
LIST = "GET /v0/secrets"


@pytest.fixture
def kept(server: FakeServer) -> FakeServer:
    server.answers[LIST] = (200, {"secrets": [PLACE, TOKEN], "secretLimit": 100})
    server.answers["GET /v0/agents"] = (200, {"agents": [{"agentId": "a1", "name": "Ada"}]})
    server.answers["POST /v0/secrets"] = (201, {"success": True, "secret": TOKEN})
    server.answers["PUT /v0/secrets/s1"] = (200, {"success": True, "secret": TOKEN})
    server.answers["DELETE /v0/secrets/s2"] = (200, {"success": True})
    server.answers["GET /v0/agents/a1/secrets"] = (200, {"secrets": [{**TOKEN, "synced": False}]})
    server.answers["POST /v0/agents/a1/secrets"] = (200, {"success": True, "attached": 2})
    server.answers["DELETE /v0/agents/a1/secrets/s1"] = (200, {"success": True})
    return server


def test_list_shows_secrets_and_their_agents(kept: FakeServer) -> None:
    head, first, second = kept.run("secrets", "list").stdout.splitlines()
    assert head.split("  ")[0] == "NAME"
    assert first.split()[:2] == ["PLACE", "variable"]
    assert second.split()[:3] == ["TOKEN", "secret", "Ada"]
    assert json.loads(kept.run("secrets", "list", "-o", "json").stdout) == [PLACE, TOKEN]
    (own,) = json.loads(kept.run("secrets", "list", "--agent", "Ada", "-o", "json").stdout)
    assert own["synced"] is False


@pytest.mark.parametrize(
    ("typed", "value"), [("hush\n", "hush"), ("hush\r\n", "hush"), ("hush", "hush"), ("a\nb\n\n", "a\nb\n")]
)
def test_create_takes_the_value_from_a_pipe_or_a_file(kept: FakeServer, tmp_path: Path, typed: str, value: str) -> None:
    (tmp_path / "value").write_bytes(typed.encode())
    for arguments in ([], ["--value-file", str(tmp_path / "value")]):
        made = kept.run("secrets", "create", "TOKEN", *arguments, input=None if arguments else typed)
        assert made.exit_code == 0, made.stderr
        assert value not in made.stdout + made.stderr
    assert kept.bodies("POST /v0/secrets") == [{"name": "TOKEN", "value": value, "type": "secret"}] * 2
    kept.run("secrets", "create", "TOKEN", "--variable", input="x")
    assert kept.bodies("POST /v0/secrets")[2]["type"] == "variable"


def test_no_argument_is_a_value(kept: FakeServer) -> None:
    assert kept.run("secrets", "create", "TOKEN", "hush").exit_code == 2
    assert kept.run("secrets", "update", "TOKEN", "hush").exit_code == 2
    assert kept.requests == []


def test_a_value_that_cannot_be_read(kept: FakeServer, tmp_path: Path) -> None:
    missing = kept.run("secrets", "create", "TOKEN", "--value-file", str(tmp_path / "none"))
    assert (missing.exit_code, "none" in missing.stderr) == (2, True)
    (tmp_path / "binary").write_bytes(b"\xff")
    binary = kept.run("secrets", "create", "TOKEN", "--value-file", str(tmp_path / "binary"))
    assert (binary.exit_code, "UTF-8" in binary.stderr) == (2, True)
    assert kept.bodies("POST /v0/secrets") == []


def test_delete_by_name(kept: FakeServer) -> None:
    assert kept.run("secrets", "delete", "PLACE", "--yes").stdout == "Deleted.\n"
    nobody = kept.run("secrets", "delete", "NONE", "--yes")
    assert (nobody.exit_code, "roost secrets list" in nobody.stderr) == (5, True)


def test_attach_and_detach_tell_of_the_restart(kept: FakeServer) -> None:
    attached = kept.run("secrets", "attach", "Ada", "TOKEN", "s2")
    assert attached.stdout.splitlines()[0] == "Attached 2."
    assert "roost agents restart Ada" in attached.stdout
    assert kept.bodies("POST /v0/agents/a1/secrets") == [{"secretIds": ["s1", "s2"]}]
    assert "roost agents restart Ada" in kept.run("secrets", "detach", "Ada", "TOKEN").stdout
    kept.answers["GET /v0/agents/a1/secrets"] = (200, {"secrets": [{**TOKEN, "synced": True}]})
    assert "restart" not in kept.run("secrets", "attach", "Ada", "TOKEN").stdout


def test_an_agent_that_waits_for_a_secret_needs_no_restart(kept: FakeServer) -> None:
    waiting = {"agentId": "a1", "name": "Ada", "status": "not_running"}
    kept.answers["GET /v0/agents"] = (200, {"agents": [waiting]})
    assert kept.run("secrets", "attach", "Ada", "TOKEN").stdout == "Attached 2.\n"


def test_rotate_key_needs_no_server(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path / "data")]
    (tmp_path / "data").mkdir()
    run("keys", "create", *data)
    before = (tmp_path / "data" / "keys" / "kek").read_text().strip()
    rotated = run("secrets", "rotate-key", *data)
    assert rotated.exit_code == 0, rotated.stderr
    assert rotated.stdout.startswith("Re-encrypted 1 values")
    assert before not in (tmp_path / "data" / "keys" / "kek").read_text()
    again = run("secrets", "rotate-key", *data, ROOST_KEK="ab" * 32)
    assert again.exit_code != 0


def test_update_names_agents_to_restart(kept: FakeServer) -> None:
    updated = kept.run("secrets", "update", "TOKEN", input="new\n")
    assert updated.stdout.splitlines()[0] == "Updated."
    assert "roost agents restart Ada" in updated.stdout
    assert kept.bodies("PUT /v0/secrets/s1") == [{"value": "new"}]
