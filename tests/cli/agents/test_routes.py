"""`roost routes`: what is asked of the server, what is shown of its answer, and how the command ends."""

import json

import pytest

from tests.cli.terminal import FakeServer

PATH = "/v0/agents/a1/port-forwarding"
SITE = {"pathPrefix": "/site", "port": 3000, "protected": False}
ADMIN = {"pathPrefix": "/admin", "port": 4000, "protected": True}


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    agent = {"agentId": "a1", "name": "Ada", "url": "http://a1.agents.localhost"}
    server.answers["GET /v0/agents"] = (200, {"agents": [agent]})
    server.answers[f"GET {PATH}"] = (200, {"mappings": [ADMIN, SITE]})
    server.answers[f"PUT {PATH}"] = (200, {"success": True, "mappings": [ADMIN, SITE]})
    return server


def test_list_shows_routes_and_open_ones(ada: FakeServer) -> None:
    listed = ada.run("routes", "list", "Ada")
    head, *lines = listed.stdout.splitlines()
    assert listed.stderr.startswith("/site needs no token: anyone can use what the program there does")
    assert head.split() == ["PATH", "PREFIX", "PORT", "PROTECTED", "URL"]
    assert lines[1].split() == ["/site", "3000", "false", "http://a1.agents.localhost/site"]
    as_json = ada.run("routes", "list", "a1", "-o", "json")
    assert (json.loads(as_json.stdout), as_json.stderr) == ([ADMIN, SITE], "")
    ada.answers[f"GET {PATH}"] = (200, {"mappings": []})
    none = ada.run("routes", "list", "Ada")
    assert (none.stdout, none.stderr) == ("", "No routes: all paths outside /v0 are the gateway's.\n")


def test_set_replaces_all_routes(ada: FakeServer) -> None:
    done = ada.run("routes", "set", "Ada", "/site=3000:open", "/admin=4000")
    assert "http://a1.agents.localhost/admin" in done.stdout
    assert ada.bodies(f"PUT {PATH}")[-1] == {"mappings": [SITE, ADMIN]}
    ada.answers[f"PUT {PATH}"] = (200, {"success": True, "mappings": []})
    assert ada.run("routes", "set", "Ada", "--none", "-y").exit_code == 0
    assert ada.bodies(f"PUT {PATH}")[-1] == {"mappings": []}
    ada.answers[f"PUT {PATH}"] = (400, {"error": "port must be from 1025 to 65535, got 80"})
    refused = ada.run("routes", "set", "Ada", "/site=80", "-y")
    assert (refused.exit_code, refused.stderr) == (2, "Error: port must be from 1025 to 65535, got 80\n")


@pytest.mark.parametrize(
    "words", [[], ["/a=3000", "--none"], ["/a"], ["=3000"], ["/a=x"], ["/a=3000:closed"], ["/a=³"], ["/a=65536"]]
)
def test_malformed_routes_send_nothing(ada: FakeServer, words: list[str]) -> None:
    assert ada.run("routes", "set", "Ada", *words).exit_code == 2
    assert ada.requests == []
