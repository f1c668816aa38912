"""`roost groups`: what is asked of the server, and what is shown of its answer."""

import json

from tests.cli.terminal import FakeServer

GROUP = {"id": "g1", "name": "letters", "is_public": False, "created_at": "2026-01-02T03:04:05.000006Z"}
ONE = "/v3/groups/private/g1"
DONE = (200, {"data": None})


def test_list_shows_groups_by_network(server: FakeServer) -> None:
    page = {"data": {"groups": [GROUP], "next_page_token": None}}
    server.answers["GET /v3/groups/private?limit=100"] = (200, page)
    server.answers["GET /v3/groups/public?name=l&limit=5"] = (200, page)
    assert server.run("groups", "list").stdout.splitlines()[1].split()[:2] == ["g1", "letters"]
    assert json.loads(server.run("groups", "list", "--public", "--name", "l", "--limit", "5", "-o", "json").stdout) == [
        GROUP
    ]


def test_create_show_update_delete(server: FakeServer) -> None:
    for line in ("POST /v3/groups/public", f"GET {ONE}", f"PUT {ONE}"):
        server.answers[line] = (200, {"data": GROUP})
    server.answers[f"DELETE {ONE}"] = DONE
    assert "name        letters" in server.run("groups", "create", "letters", "--public").stdout
    assert json.loads(server.run("groups", "show", "g1", "-o", "json").stdout) == GROUP
    assert server.run("groups", "update", "g1", "--name", "signs").exit_code == 0
    assert server.run("groups", "delete", "g1", "--yes").stdout == "Deleted.\n"
    assert server.bodies("POST /v3/groups/public") == [{"name": "letters"}]
    assert server.bodies(f"PUT {ONE}") == [{"name": "signs"}]


def test_files_in_and_out(server: FakeServer) -> None:
    for file in ("f1", "f2"):
        server.answers[f"PUT {ONE}/ids/{file}"] = server.answers[f"DELETE {ONE}/ids/{file}"] = DONE
    assert server.run("groups", "add", "g1", "f1", "f2").stdout == "Added 2.\n"
    assert server.run("groups", "remove", "g1", "f1").stdout == "Removed 1.\n"
    assert server.run("groups", "add", "g1", "missing").exit_code == 5


def test_typed_id_is_one_segment_of_the_path(server: FakeServer) -> None:
    server.answers["DELETE /v3/groups/private/g1%2Fids%2Ff1%3Fx"] = DONE
    assert server.run("groups", "delete", "g1/ids/f1?x", "--yes").stdout == "Deleted.\n"
