"""`roost vectors`: requests to the server, and the shown answers."""

import json
from typing import Any

import pytest

from roost.cli.storage import vectors
from tests.cli.terminal import FakeServer

FILE, GROUP = "0e6a0a3e-0000-4000-8000-000000000001", "0e6a0a3e-0000-4000-8000-000000000002"
PATH = f"/v3/vectorize/files/{FILE}"


def record(**fields: Any) -> dict[str, Any]:
    row = {"file_id": FILE, "name": "n.txt", "cid": "c", "state": "indexed", "chunks": 3, "chunks_done": 3}
    return {**row, "model": "m", "reason": None, "updated_at": None, **fields}


def shown(**fields: Any) -> tuple[int, Any]:
    return 200, {"data": record(**fields)}


def named(server: FakeServer, kind: str, name: str, *ids: str) -> None:
    rows = [{"id": found, "name": name} for found in ids] + [{"id": "x", "name": f"{name} more"}]
    page = {"data": {kind: rows, "next_page_token": None}}
    server.answers[f"GET /v3/{kind}/private?name={name}&limit=100"] = (200, page)


def test_add_by_id_and_by_name_waits(server: FakeServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_POLL_SECONDS", 0)
    named(server, "files", "n.txt", FILE)
    server.answers[f"POST {PATH}"] = (200, {"success": True})
    server.answers[f"GET {PATH}"] = [shown(state="queued", chunks=0), shown(state="indexing"), shown()]
    row = server.run("vectors", "add", FILE).stdout.splitlines()[1]
    assert row.split() == [FILE, "n.txt", "indexed", "3"]
    assert json.loads(server.run("vectors", "add", "n.txt", "-o", "json").stdout) == [record()]


def test_add_a_group_and_see_what_failed(server: FakeServer) -> None:
    named(server, "groups", "docs", GROUP)
    rows = {"data": {"files": [record(state="none")], "next_page_token": ""}}
    server.answers[f"GET /v3/vectorize/groups/{GROUP}/files?limit=100"] = (200, rows)
    server.answers[f"POST {PATH}"] = (400, {"error": {"code": 400, "message": "The file has no text"}})
    server.answers[f"GET {PATH}"] = shown(state="failed", reason="The file has no text")
    done = server.run("vectors", "add", "--group", "docs")
    assert (done.exit_code, "The file has no text" in done.stdout) == (1, True)
    assert "none" in server.run("vectors", "show", "--group", GROUP).stdout


def test_a_group_has_all_its_files(server: FakeServer) -> None:
    page, last = [record()] * 10_000, [record(name="last.txt")]
    files = f"GET /v3/vectorize/groups/{GROUP}/files?limit=100"
    server.answers[files] = (200, {"data": {"files": page, "next_page_token": "t"}})
    server.answers[f"{files}&pageToken=t"] = (200, {"data": {"files": last, "next_page_token": ""}})
    rows = json.loads(server.run("vectors", "show", "--group", GROUP, "-o", "json").stdout)
    assert (len(rows), rows[-1]["name"]) == (10_001, "last.txt")


def test_a_refused_request_is_an_error(server: FakeServer) -> None:
    server.answers[f"POST {PATH}"] = (400, {"error": {"code": 400, "message": "A folder has no text"}})
    server.answers[f"GET {PATH}"] = shown(state="none")
    done = server.run("vectors", "add", FILE)
    assert (done.exit_code, done.stderr) == (1, "Error: A folder has no text\n")


def test_show_and_remove(server: FakeServer) -> None:
    server.answers[f"GET {PATH}"], server.answers[f"DELETE {PATH}"] = shown(), (200, {"success": True})
    assert "state        indexed" in server.run("vectors", "show", FILE).stdout
    assert server.run("vectors", "remove", FILE).stdout == "Removed.\n"
    assert server.run("vectors", "show").exit_code == 2
    assert server.run("vectors", "add").exit_code == 2


def test_query_prints_matches_on_one_line(server: FakeServer) -> None:
    match = {"file_id": FILE, "cid": "c", "name": "n.txt", "score": 0.51234, "text": "one\ntwo", "begin": 0, "end": 7}
    answer = {"count": 1, "matches": [match], "outdated_files": 2}
    line = f"POST /v3/vectorize/groups/{GROUP}/query"
    server.answers[line] = [
        (200, {"data": answer}),
        (200, {"data": answer}),
        (200, {"data": {**answer, "matches": []}}),
    ]
    done = server.run("vectors", "query", GROUP, "boiler", "--limit", "3")
    assert done.stdout == f"0.512  n.txt  {FILE}\n       one\n       two\n\n"
    assert "2 files have vectors of another model" in done.stderr
    assert json.loads(server.run("vectors", "query", GROUP, "boiler", "-o", "json").stdout) == answer
    assert "Nothing was found" in server.run("vectors", "query", GROUP, "boiler").stdout
    assert server.bodies(line)[0] == {"text": "boiler", "limit": 3}


def test_grant_and_revoke(server: FakeServer) -> None:
    named(server, "groups", "docs", GROUP)
    server.answers["GET /v0/agents"] = (200, {"agents": [{"agentId": "a1", "name": "Ada"}]})
    for method in ("PUT", "DELETE"):
        server.answers[f"{method} /v3/vectorize/groups/{GROUP}/agents/a1"] = (200, {"data": None})
    assert server.run("vectors", "grant", "docs", "Ada", "-y").stdout == "Ada may search docs.\n"
    assert server.run("vectors", "revoke", "docs", "a1", "-y").stdout == "a1 may not search docs.\n"


@pytest.mark.parametrize(
    ("ids", "code", "message"), [((), 5, "There is no private group"), (("a", "b"), 2, "2 groups")]
)
def test_names_that_are_not_one_group(server: FakeServer, ids: tuple[str, ...], code: int, message: str) -> None:
    named(server, "groups", "docs", *ids)
    done = server.run("vectors", "query", "docs", "boiler")
    assert (done.exit_code, message in done.stderr) == (code, True)
