"""The way to a server: which one is meant, what its refusals are as exit codes, and answers that are none."""

import json
import socket
from pathlib import Path
from threading import Thread

import pytest

from tests.cli.terminal import FakeServer, fake_server, run
from tests.platforms.tls import Authority

ADA = {"agentId": "a1", "name": "Ada", "status": "running", "statusReason": None, "gatewayToken": None}


def leave_session(folder: Path, **session: str) -> None:
    (folder / "cli.json").write_text(json.dumps(session))


def test_the_server_of_the_data_folder(server: FakeServer, tmp_path: Path) -> None:
    leave_session(tmp_path, url=server.url, token="left", domain="localhost")
    server.answers["GET /v0/agents"] = (200, {"agents": [ADA]})
    listed = run("agents", "list", "--data", str(tmp_path))
    assert listed.exit_code == 0
    assert "Ada" in listed.stdout
    assert server.requests[0][1]["Authorization"] == "Bearer left"


def test_the_environment_names_another(server: FakeServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leave_session(tmp_path, url="http://127.0.0.1:1", token="left", domain="localhost")
    monkeypatch.setenv("ROOST_DATA", str(tmp_path))
    server.answers["GET /v0/agents"] = (200, {"agents": []})
    assert server.run("agents", "list").exit_code == 0
    assert server.requests[0][1]["Authorization"] == "Bearer key"


def test_a_flag_and_the_environment_that_name_two_servers_are_refused(server: FakeServer, tmp_path: Path) -> None:
    leave_session(tmp_path, url="http://127.0.0.1:1", token="left", domain="localhost")
    refused = server.run("agents", "delete", "Ada", "--yes", "--data", str(tmp_path))
    assert (refused.exit_code, "--data" in refused.stderr, server.requests) == (2, True, [])


def test_a_certificate_that_is_not_accepted_is_named(server: FakeServer, tmp_path: Path) -> None:
    authority = Authority("Own authority")
    server.socket = authority.server("localhost").wrap_socket(server.socket, server_side=True)
    server.answers["GET /v0/agents"] = (200, {"agents": [ADA]})
    there = {"ROOST_URL": f"https://localhost:{server.server_port}", "ROOST_TOKEN": "key"}
    refused = run("agents", "list", **there)
    assert refused.exit_code == 3
    assert "certificate" in refused.stderr
    assert "unable to get local issuer certificate" in refused.stderr
    assert "SSL_CERT_FILE" in refused.stderr
    trusted = tmp_path / "authority.pem"
    trusted.write_bytes(authority.certificate)
    assert run("agents", "list", **there, SSL_CERT_FILE=str(trusted)).exit_code == 0
    wrong = run("agents", "list", **there, SSL_CERT_FILE=str(tmp_path / "missing.pem"))
    assert (wrong.exit_code, "missing.pem" in wrong.stderr) == (2, True)


@pytest.mark.parametrize("name", ["localhost", "agents.localhost", "a1.agents.localhost"])
def test_names_below_localhost_are_this_machine(server: FakeServer, name: str) -> None:
    """Resolvers of many systems do not know them."""
    server.answers["GET /v0/agents"] = (200, {"agents": [ADA]})
    url = f"http://{name}:{server.server_port}"
    assert run("agents", "list", ROOST_URL=url, ROOST_TOKEN="key").exit_code == 0
    assert server.requests[0][1]["Host"] == f"{name}:{server.server_port}"
    refused = run("exec", "Ada", "true", ROOST_URL=url, ROOST_TOKEN="key")
    assert refused.stderr == "Error: Not found\n"


def test_a_name_below_localhost_is_the_one_of_the_certificate(server: FakeServer, tmp_path: Path) -> None:
    authority = Authority("Own authority")
    server.socket = authority.server("agents.localhost").wrap_socket(server.socket, server_side=True)
    server.answers["GET /v0/agents"] = (200, {"agents": [ADA]})
    (tmp_path / "authority.pem").write_bytes(authority.certificate)
    there = {"ROOST_URL": f"https://agents.localhost:{server.server_port}", "ROOST_TOKEN": "key"}
    assert run("agents", "list", **there, SSL_CERT_FILE=str(tmp_path / "authority.pem")).exit_code == 0


def test_no_server_answers_for_three_reasons(server: FakeServer) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://agents.localhost:{closed.getsockname()[1]}"
        refused = run("agents", "list", ROOST_URL=url, ROOST_TOKEN="key")
    assert refused.stderr == f"Error: No server answers at {url}: it refuses connections. Start one with `roost up`.\n"
    unknown = run("agents", "list", ROOST_URL="http://roost.invalid", ROOST_TOKEN="key")
    assert unknown.stderr.startswith("Error: No server answers at http://roost.invalid: its name cannot be resolved. ")
    plain = run("agents", "list", ROOST_URL=f"https://localhost:{server.server_port}", ROOST_TOKEN="key")
    assert plain.stderr.endswith(
        "the encrypted connection failed. If it serves no HTTPS, its address begins with http://.\n"
    )
    server.answers["GET /v0/agents"] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
    assert "is not Roost" in server.run("agents", "list").stderr


@pytest.mark.parametrize("answer", [{}, [], {"error": "x"}])
def test_a_server_that_tells_no_domain_is_not_roost(server: FakeServer, answer: object) -> None:
    server.deployment = answer
    refused = server.run("files", "list")
    assert (refused.exit_code, "is not Roost" in refused.stderr, server.requests) == (3, True, [])


def test_short_messages_have_a_hint(server: FakeServer) -> None:
    server.answers["GET /v0/agents"] = (400, {"error": "Any text"})
    server.headers["X-Error-Code"] = "invalid_engine_version"
    refused = server.run("agents", "list")
    assert refused.stderr == "Error: Any text: `roost versions AGENT` lists the versions\n"
    server.headers["X-Error-Code"] = "unknown_to_this_version"
    assert server.run("agents", "list").stderr == "Error: Any text\n"


@pytest.mark.parametrize("half", [{"ROOST_URL": "http://127.0.0.1:1"}, {"ROOST_TOKEN": "key"}])
def test_half_a_name_is_no_other_server(server: FakeServer, tmp_path: Path, half: dict[str, str]) -> None:
    """A delete that was meant for a server far away must not reach the one here."""
    leave_session(tmp_path, url=server.url, token="left", domain="localhost")
    refused = run("agents", "delete", "Ada", "--yes", "--data", str(tmp_path), **half)
    assert refused.exit_code == 2
    assert "ROOST_TOKEN" in refused.stderr
    assert server.requests == []


def test_no_server_yet(tmp_path: Path) -> None:
    refused = run("agents", "list", "--data", str(tmp_path))
    assert refused.exit_code == 3
    assert "roost up" in refused.stderr


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"url": 1}', "null", "\0"])
def test_a_damaged_session(tmp_path: Path, content: str) -> None:
    (tmp_path / "cli.json").write_text(content)
    refused = run("agents", "list", "--data", str(tmp_path))
    assert refused.exit_code == 3
    assert "damaged" in refused.stderr


def test_a_session_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "cli.json").mkdir()
    assert run("agents", "list", "--data", str(tmp_path)).exit_code == 4


def test_refused_connection_names_the_address() -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    refused = run("agents", "list", ROOST_URL=f"http://127.0.0.1:{port}", ROOST_TOKEN="key")
    assert refused.exit_code == 3
    assert f"127.0.0.1:{port}" in refused.stderr


@pytest.mark.parametrize("url", ["example", "ftp://example", "http://x:port"])
def test_malformed_address_is_wrong_usage(url: str) -> None:
    assert run("agents", "list", ROOST_URL=url, ROOST_TOKEN="key").exit_code == 2


@pytest.mark.parametrize("body", ["<html>", "", "\ufeff"])
def test_something_else_answers(server: FakeServer, body: str) -> None:
    server.answers["GET /v0/agents"] = (200, body)
    refused = server.run("agents", "list")
    assert refused.exit_code == 3
    assert "not Roost" in refused.stderr


@pytest.mark.parametrize(("status", "code"), [(400, 2), (403, 4), (404, 5), (409, 1), (429, 1), (500, 1), (503, 1)])
def test_refusals_in_the_servers_words(server: FakeServer, status: int, code: int) -> None:
    server.answers["GET /v0/agents"] = (status, {"error": "No, [bold]thank you"})
    refused = server.run("agents", "list")
    assert refused.exit_code == code
    assert refused.stderr == "Error: No, [bold]thank you\n"
    assert refused.stdout == ""


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ({"error": {"message": "as OpenAI says it"}}, "as OpenAI says it"),
        ({"error": {"code": 7}}, "7"),
        ({"error": "it failed", "agent": {"statusReason": "because"}}, "it failed. because"),
        ({"error": "it failed", "agent": 7}, "500"),
        ({}, "500"),
        ([], "500"),
        (None, "500"),
        ("no JSON", "500"),
    ],
)
def test_refusals_of_every_shape(server: FakeServer, body: object, told: str) -> None:
    server.answers["GET /v0/agents"] = (500, body)
    refused = server.run("agents", "list")
    assert refused.exit_code == 1
    assert told in refused.stderr


def test_a_key_that_is_not_accepted_says_where_it_came_from(server: FakeServer, tmp_path: Path) -> None:
    server.answers["GET /v0/agents"] = (401, {"error": "Unauthorized"})
    leave_session(tmp_path, url=server.url, token="left", domain="localhost")
    for refused, advice in (
        (server.run("agents", "list"), "check ROOST_TOKEN"),
        (run("agents", "list", "--data", str(tmp_path)), "`roost up` makes another key"),
    ):
        assert (refused.exit_code, refused.stdout) == (4, "")
        assert refused.stderr.startswith("Error: Unauthorized: the server does not accept the key; ")
        assert advice in refused.stderr


def test_a_missing_permission_says_what_to_do(server: FakeServer) -> None:
    server.answers["GET /v0/agents"] = (403, {"error": "Permission denied: the key needs the scope org:read"})
    server.headers["X-Error-Code"] = "permission_denied"
    assert "org:read; your key is limited" in server.run("agents", "list").stderr


def test_a_redirect_is_not_followed_and_the_key_stays(server: FakeServer) -> None:
    with fake_server() as other:
        server.headers = {"Location": f"{other.url}/v0/agents"}
        server.answers["GET /v0/agents"] = (307, "")
        refused = server.run("agents", "list")
        assert (refused.exit_code, f"redirects to {other.url}" in refused.stderr) == (3, True)
        server.headers = {}
        server.answers["GET /v0/agents"] = (200, {"agents": [ADA]})
        server.headers = {"Location": f"{other.url}/export"}
        server.answers["GET /v0/agents/a1/export"] = (307, "")
        assert f"redirects to {other.url}" in server.run("agents", "export", "Ada", "-o", "-").stderr
        server.headers = {}
        location = f"Location: {other.url.replace('http', 'ws')}/taken".encode()
        server.answers["GET /v0/agents/a1/logs"] = b"HTTP/1.1 307 Moved\r\n" + location + b"\r\n\r\n"
        assert server.run("logs", "Ada", "-f").exit_code != 0
        assert all("Authorization" not in headers for _, headers, _ in other.requests)


def test_an_address_that_is_not_known() -> None:
    refused = run("agents", "list", ROOST_URL="https://roost.invalid", ROOST_TOKEN="key")
    assert (refused.exit_code, "https://roost.invalid: its name cannot be resolved. " in refused.stderr) == (3, True)


def test_agents_by_id_and_by_name(server: FakeServer) -> None:
    twins = [{**ADA, "agentId": "a2", "name": "Twin"}, {**ADA, "agentId": "a3", "name": "Twin"}]
    named_like_an_id = {**ADA, "agentId": "a4", "name": "a1"}
    server.answers["GET /v0/agents"] = (200, {"agents": [named_like_an_id, ADA, *twins]})
    for agent_id in ("a1", "a3"):
        server.answers[f"GET /v0/agents/{agent_id}/logs"] = (200, {"logs": agent_id})
    assert server.run("agents", "logs", "Ada").stdout == "a1\n"
    assert server.run("agents", "logs", "a1").stdout == "a1\n"
    assert server.run("agents", "logs", "a3").stdout == "a3\n"
    ambiguous = server.run("agents", "logs", "Twin")
    assert (ambiguous.exit_code, "2 agents" in ambiguous.stderr, "a2, a3" in ambiguous.stderr) == (2, True, True)
    near = server.run("agents", "logs", "ads")
    assert (near.exit_code, near.stderr) == (
        5,
        "Error: There is no agent 'ads'. Did you mean Ada? `roost agents list` shows all.\n",
    )
    missing = server.run("agents", "logs", "Nobody")
    assert (missing.exit_code, "Nobody" in missing.stderr) == (5, True)


def test_a_connection_that_breaks(server: FakeServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def hang_up() -> None:
            connection, _ = listener.accept()
            connection.recv(65536)
            connection.close()

        thread = Thread(target=hang_up)
        thread.start()
        broken = run(
            "agents", "list", ROOST_URL=f"http://127.0.0.1:{listener.getsockname()[1]}", ROOST_TOKEN="very-secret"
        )
        thread.join()
    assert broken.exit_code == 3
    assert "very-secret" not in broken.stderr + broken.stdout
