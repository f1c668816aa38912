"""`roost workspace`: list, delete, move, mkdir, watch; other commands that one request makes, by what they send."""

import json

import pytest

from roost.cli.client import message_stream
from tests.cli.terminal import FakeServer

AGENT = "/v0/agents/a1"
ENTRY = {"kind": "file", "size": 1, "executable": False, "modifiedAt": "2026-01-02T03:04:05.000000Z"}


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    server.answers["GET /v0/agents"] = (200, {"agents": [{"agentId": "a1", "name": "Ada"}]})
    return server


def test_all_pages_of_a_folder(ada: FakeServer) -> None:
    path = f"GET {AGENT}/files/list?path=docs&recursive=true"
    ada.answers[path] = (200, {"entries": [{"path": "docs/a", **ENTRY}], "nextCursor": "c 1"})
    ada.answers[f"{path}&cursor=c+1"] = (200, {"entries": [{"path": "docs/b", **ENTRY}], "nextCursor": None})
    listed = json.loads(ada.run("workspace", "list", "Ada", "docs", "-r", "-o", "json").stdout)
    assert [entry["path"] for entry in listed] == ["docs/a", "docs/b"]


@pytest.mark.parametrize(
    ("command", "request_line", "body"),
    [
        (["workspace", "delete", "Ada", "a b", "--yes"], f"DELETE {AGENT}/files?path=a+b&recursive=false", None),
        (["workspace", "move", "Ada", "a", "b"], f"POST {AGENT}/files/move", {"path": "a", "target": "b"}),
        (["workspace", "mkdir", "Ada", "a"], f"POST {AGENT}/files/folder", {"path": "a"}),
        (
            ["agents", "update", "Ada", "--name", "Bea", "--emoji", ""],
            f"PATCH {AGENT}/platform/metadata",
            {"name": "Bea", "emoji": None},
        ),
        (["agents", "status", "Ada"], f"GET {AGENT}/status", None),
        (["agents", "engines"], "GET /v0/agents/engines", None),
        (["snapshots", "status", "Ada"], f"GET {AGENT}/snapshots/sync", None),
        (["templates", "refs", "https://x"], "POST /v0/templates/refs", {"gitUrl": "https://x"}),
        (["versions"], "GET /v0/available-agent-versions", None),
        (["pins", "remove", "p/1"], "DELETE /v3/files/public/pin_by_cid/p%2F1", None),
        (
            ["pins", "add", "baf", "-k", "a=b"],
            "POST /v3/files/public/pin_by_cid",
            {"cid": "baf", "keyvalues": {"a": "b"}},
        ),
        (["pins", "list", "--status", "expired"], "GET /v3/files/public/pin_by_cid?status=expired&limit=100", None),
        (["swaps", "set", "baf", "bag"], "PUT /v3/files/private/swap/baf", {"swap_cid": "bag"}),
        (["swaps", "show", "baf", "--public"], "GET /v3/files/public/swap/baf", None),
        (["swaps", "delete", "baf", "--yes"], "DELETE /v3/files/private/swap/baf", None),
        (["gateways", "check", "media"], "GET /v3/gateways/exists/media", None),
        (["vectors", "groups"], "GET /v3/vectorize/groups", None),
        (
            ["files", "upload-link", "--max-size", "9", "--expires", "60"],
            "POST /v3/files/sign",
            {"network": "private", "max_file_size": 9, "expires": 60},
        ),
    ],
)
def test_a_command_is_one_request(ada: FakeServer, command: list[str], request_line: str, body: object) -> None:
    lists = {name: [] for name in ("engines", "groups", "jobs", "branches", "tags")}
    data = {"groups": [], "jobs": [], "next_page_token": "", "id": "x"}
    answer = {"agent": {}, "defaultBranch": None, "availableVersionsPerEngine": {}, **lists}
    ada.answers[request_line] = (200, {**answer, "data": [] if "swaps" in command and "show" in command else data})
    done = ada.run(*command)
    assert (done.exit_code, done.stderr, ada.bodies(request_line)) == (0, "", [body])


def test_nothing_to_change(ada: FakeServer) -> None:
    refused = ada.run("agents", "update", "Ada")
    assert (refused.exit_code, "--vibe" in refused.stderr, ada.requests) == (2, True, [])


CHANGES = ': watching\n\ndata: {"paths": ["a", "b"], "complete": true}\n\n'
WATCH_ENDS = (200, 'event: error\ndata: {"error": "Unauthorized"}\n\n')


def test_changes_are_followed_over_connections_and_gaps_are_told(
    ada: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(message_stream, "sleep", pauses.append)
    busy, broken = (503, {"error": "The server is starting"}), b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\n"
    ada.answers[f"GET {AGENT}/files/watch"] = [(200, CHANGES), busy, b"", busy, broken, (200, CHANGES), WATCH_ENDS]
    ended = ada.run("workspace", "watch", "Ada")
    gap = "(and others: list the files again)\n"
    assert ended.stdout == f"a\nb\n{gap}{gap}a\nb\n{gap}"
    told = "The change stream ended; reconnecting ...\n"
    assert (ended.exit_code, ended.stderr) == (1, f"{told}{told}{told}Error: Unauthorized\n")
    assert pauses == [1, 2, 4, 8, 1, 1]


def test_a_watch_that_is_refused_is_not_tried_again(ada: FakeServer) -> None:
    ada.answers[f"GET {AGENT}/files/watch"] = [(200, CHANGES), (404, {"error": "Agent not found"})]
    assert ada.run("workspace", "watch", "Ada").exit_code == 5
    ada.answers[f"GET {AGENT}/files/watch"] = WATCH_ENDS
    ended = ada.run("workspace", "watch", "Ada", "-o", "json")
    assert (ended.exit_code, ended.stdout, ended.stderr) == (1, "", "Error: Unauthorized\n")
    for answer, code in (((503, {"error": "busy"}), 1), (b"", 3)):
        ada.answers[f"GET {AGENT}/files/watch"] = answer
        ended = ada.run("workspace", "watch", "Ada")
        assert (ended.exit_code, "reconnecting" in ended.stderr) == (code, False)


def test_plugins_with_their_gateways(ada: FakeServer) -> None:
    ada.answers |= {
        "GET /v3/gateways?pageSize=100": (200, {"data": {"rows": [{"id": "g1", "domain": "media"}]}}),
        "GET /v3/gateways/plugins": (200, {"data": [{"gateway_id": "g1", "plugin_id": 2}]}),
        "GET /v3/gateways/plugins/marketplace": (200, {"data": [{"id": 1, "name": "one"}, {"id": 2, "name": "two"}]}),
    }
    rows = json.loads(ada.run("gateways", "plugins", "-o", "json").stdout)
    assert [row["gateways"] for row in rows] == [[], ["media"]]
