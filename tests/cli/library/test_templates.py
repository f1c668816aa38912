"""`roost templates`, and `roost agents create --template`."""

import json
from pathlib import Path

from roost.drivers.git.remote_contract import RemoteRefused
from tests.cli.terminal import FakeServer, run

TEMPLATE = {
    "templateId": "t1",
    "slug": "reader",
    "name": "Reader",
    "category": "other",
    "authorName": "Ada",
    "version": 2,
    "status": "published",
    "description": "Reads",
    "engine": None,
    "gitUrl": "https://git.example/r.git",
    "gitCommitSha": "c0ffee",
    "snapshotCid": "bafy",
    "files": 3,
    "readme": "# Reader\x1b[31m",
    "requiredSecrets": [{"name": "KEY", "description": "A key", "required": True}],
}
AGENT = {"agentId": "a1", "name": "Reader", "status": "not_running", "gatewayToken": "rst_gw_x"}


def test_list_follows_pages(server: FakeServer) -> None:
    first = "GET /v0/public-templates?q=read&limit=100"
    server.answers[first] = (200, {"templates": [TEMPLATE], "nextCursor": "x y"})
    server.answers[f"{first}&cursor=x+y"] = (200, {"templates": [TEMPLATE], "nextCursor": None})
    lines = server.run("templates", "list", "--search", "read").stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["reader", "Reader"]] * 2
    server.answers["GET /v0/templates?limit=100"] = (200, {"templates": [TEMPLATE], "nextCursor": None})
    assert json.loads(server.run("templates", "list", "--mine", "-o", "json").stdout) == [TEMPLATE]


def test_show_prints_a_template(server: FakeServer) -> None:
    server.answers["GET /v0/templates/reader"] = (200, {"template": TEMPLATE})
    shown = server.run("templates", "show", "reader").stdout
    assert "Secret KEY (required): A key" in shown
    assert "# Reader" in shown
    assert "\x1b" not in shown
    assert json.loads(server.run("templates", "show", "reader", "-o", "json").stdout) == TEMPLATE
    assert server.run("templates", "show", "other").exit_code == 5


def test_submit_update_and_archive(server: FakeServer) -> None:
    server.answers["POST /v0/templates"] = (201, {"success": True, "template": TEMPLATE})
    assert "c0ffee" in server.run("templates", "submit", "https://git.example/r.git", "--ref", "v1", "--draft").stdout
    assert server.bodies("POST /v0/templates") == [
        {"gitUrl": "https://git.example/r.git", "ref": "v1", "public": False}
    ]
    server.answers["GET /v0/templates/reader"] = (200, {"template": TEMPLATE})
    server.answers["PUT /v0/templates/t1"] = (200, {"success": True, "template": TEMPLATE})
    server.answers["DELETE /v0/templates/t1"] = (200, {"success": True, "message": "Template archived"})
    assert server.run("templates", "update", "reader", "--publish").exit_code == 0
    assert server.bodies("PUT /v0/templates/t1") == [{"public": True}]
    assert server.run("templates", "archive", "reader", input="n\n").exit_code == 1
    assert server.run("templates", "archive", "reader", "--yes").stdout == "Template archived\n"


def test_create_says_what_is_missing(server: FakeServer) -> None:
    item = {"type": "secret", "name": "KEY", "required": True, "reason": "Attach", "description": "A key"}
    answer = {"success": True, "agent": AGENT, "missing": [item, {**item, "type": "route", "required": False}]}
    server.answers["POST /v0/agents"] = (201, answer)
    made = server.run("agents", "create", "--template", "reader", "--attach-secrets")
    assert server.bodies("POST /v0/agents") == [{"templateId": "reader", "attachSecrets": True}]
    assert made.exit_code == 0
    assert made.stderr.splitlines() == [
        "Required secret KEY: A key",
        "  roost secrets create KEY && roost secrets attach a1 KEY",
        "Optional route KEY: A key",
        "  Attach",
    ]
    assert server.run("agents", "create").exit_code == 2


def test_check_needs_no_server(tmp_path: Path) -> None:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace/AGENTS.md").write_text("# A\n")
    (tmp_path / "README.md").write_text("# A\n")
    manifest = {"version": 1, "agent": {"name": "A"}, "template": {"slug": "a", "authorName": "B"}, "other": 1}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    done = run("templates", "check", str(tmp_path))
    assert (done.exit_code, done.stdout.splitlines()) == (
        0,
        ["Warning: other: unknown field, ignored", "The template is valid; its workspace has 1 files."],
    )
    (tmp_path / "workspace/away").symlink_to("/etc/passwd")
    done = run("templates", "check", str(tmp_path), "-o", "json")
    assert done.exit_code == 2
    assert [fault["path"] for fault in json.loads(done.stdout)["errors"]] == ["workspace/away"]
    done = run("templates", "check", str(tmp_path / "absent"))
    assert isinstance(done.exception, RemoteRefused)
