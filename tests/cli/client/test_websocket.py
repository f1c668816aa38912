"""WebSockets of commands: a server that refuses one, and one that answers with something else."""

import json

import pytest

from tests.cli.terminal import FakeServer

COMMANDS = [
    (("exec", "Ada", "true"), "/v0/agents/a1/console/exec?command=true&timeoutSeconds=60"),
    (("logs", "Ada", "-f"), "/v0/agents/a1/logs"),
]
ANSWERS = [
    b"",
    b"220 mail.example ESMTP\r\n",
    b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
    b"HTTP/1.1 302 Found\r\nLocation: https://example.invalid/\r\nContent-Length: 0\r\n\r\n",
]


@pytest.fixture(autouse=True)
def _ada(server: FakeServer) -> None:
    server.answers["GET /v0/agents"] = (200, {"agents": [{"agentId": "a1", "name": "Ada"}]})


@pytest.mark.parametrize(("command", "path"), COMMANDS)
@pytest.mark.parametrize("answer", ANSWERS)
def test_an_answer_that_is_no_handshake(server: FakeServer, command: tuple[str, ...], path: str, answer: bytes) -> None:
    server.answers[f"GET {path}"] = answer
    failed = server.run(*command)
    assert (failed.exit_code, failed.stdout) == (3, "")
    assert failed.stderr.startswith(f"Error: The connection to {server.url} failed: ")
    assert failed.stderr.count("\n") == 1


@pytest.mark.parametrize(("command", "path"), COMMANDS)
@pytest.mark.parametrize(("status", "code"), [(400, 2), (404, 5), (503, 1)])
def test_a_refusal_with_its_detail(
    server: FakeServer, command: tuple[str, ...], path: str, status: int, code: int
) -> None:
    server.headers["X-Error-Detail"] = json.dumps("the detail")
    server.answers[f"GET {path}"] = (status, {"error": "Refused"})
    refused = server.run(*command)
    assert (refused.exit_code, refused.stderr) == (code, "Error: Refused: the detail\n")
