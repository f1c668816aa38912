"""`roost domains`: what is asked of the server, what is shown of its answer, and how the command ends."""

import json

import pytest

from tests.cli.terminal import FakeServer

PATH = "/v0/agents/a1/domains"
PENDING = {
    "id": "d1",
    "domain": "app.example.com",
    "url": "http://app.example.com",
    "targetPort": 3000,
    "protected": False,
    "status": "pending_ownership",
    "reason": "Add the TXT record _roost-verify.app.example.com with the value v",
}
ACTIVE = PENDING | {"status": "active", "reason": None}


@pytest.fixture
def ada(server: FakeServer) -> FakeServer:
    agent = {"agentId": "a1", "name": "Ada", "url": "http://a1.agents.localhost"}
    server.answers["GET /v0/agents"] = (200, {"agents": [agent]})
    server.answers[f"GET {PATH}"] = (200, {"domains": [PENDING]})
    server.answers[f"POST {PATH}"] = (201, {"success": True, "domain": PENDING})
    server.answers[f"POST {PATH}/d1/verify"] = (200, {"success": True, "domain": ACTIVE})
    server.answers[f"PUT {PATH}/d1"] = (200, {"success": True, "domain": ACTIVE})
    server.answers[f"DELETE {PATH}/d1"] = (200, {"success": True, "message": "app.example.com is gone"})
    challenge = {"success": True, "domain": "app.example.com", "type": "TXT", "name": "_roost-verify.app.example.com"}
    server.answers[f"POST {PATH}/challenge"] = (200, challenge | {"value": "v"})
    return server


def test_add_prints_the_record_to_set(ada: FakeServer) -> None:
    done = ada.run("domains", "add", "Ada", "--domain", "app.example.com", "--port", "3000", "--open", "-y")
    assert "_roost-verify.app.example.com" in done.stdout
    assert "roost domains verify Ada app.example.com" in done.stdout
    expected = {"customDomain": "app.example.com", "targetPort": 3000, "protected": False}
    assert ada.bodies(f"POST {PATH}")[-1] == expected
    ada.run("domains", "add", "Ada", "--subdomain", "ada")
    assert ada.bodies(f"POST {PATH}")[-1] == {"subdomain": "ada", "protected": True}
    ada.answers[f"POST {PATH}"] = (409, {"error": "Domain already registered"})
    refused = ada.run("domains", "add", "Ada", "--subdomain", "ada")
    assert refused.exit_code != 0
    assert refused.stderr == "Error: Domain already registered\n"


@pytest.mark.parametrize("options", [[], ["--subdomain", "ada", "--domain", "app.example.com"]])
def test_add_needs_one_name(ada: FakeServer, options: list[str]) -> None:
    assert ada.run("domains", "add", "Ada", *options).exit_code == 2
    assert ada.requests == []


def test_list_shows_domains_and_open_ones(ada: FakeServer) -> None:
    listed = ada.run("domains", "list", "Ada")
    assert "pending_ownership" in listed.stdout
    assert listed.stderr.startswith("app.example.com needs no token: anyone can use what the program there does")
    assert json.loads(ada.run("domains", "list", "Ada", "-o", "json").stdout) == [PENDING]
    ada.answers[f"GET {PATH}"] = (200, {"domains": []})
    assert ada.run("domains", "list", "Ada").stderr == "No domains.\n"
    assert json.loads(ada.run("domains", "list", "Ada", "-o", "json").stdout) == []


def test_challenge_verify_update_and_remove(ada: FakeServer) -> None:
    assert "_roost-verify.app.example.com" in ada.run("domains", "challenge", "Ada", "app.example.com").stdout
    assert ada.run("domains", "verify", "Ada", "App.Example.com.").stdout.startswith("app.example.com is active")
    assert json.loads(ada.run("domains", "verify", "Ada", "d1", "-o", "json").stdout) == ACTIVE
    ada.run("domains", "update", "Ada", "d1", "--protected", "-y")
    assert ada.bodies(f"PUT {PATH}/d1")[-1] == {"protected": True}
    assert ada.run("domains", "remove", "Ada", "d1", "-y").stdout == "app.example.com is gone\n"
    missing = ada.run("domains", "remove", "Ada", "b.example.com")
    assert "roost domains list Ada" in missing.stderr
    assert missing.exit_code != 0
