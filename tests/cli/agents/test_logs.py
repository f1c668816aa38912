"""`roost logs`: the last lines, and those that come, over connections that break."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import pytest
from typer.testing import Result
from websockets.datastructures import Headers
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from tests.cli.terminal import FakeServer, run

ADA = {"agentId": "a1", "name": "Ada"}
Script = Callable[[ServerConnection], None]


def message(number: int, text: str = "") -> dict[str, str]:
    moment = f"2026-01-02T03:04:{number:02}.000006Z"
    return {"timestamp": moment, "level": "WARN", "source": "gateway/ws", "message": text or f"line {number}"}


class LogStreamServer:
    """A server whose n-th log stream goes as the n-th script says; each then ends."""

    def __init__(self, *scripts: Script) -> None:
        self.scripts = list(scripts)
        self.asked: list[tuple[str, str]] = []
        self.url = ""

    def answer(self, connection: ServerConnection, request: Request) -> Response | None:
        self.asked.append((request.path, request.headers["Authorization"]))
        if request.path == "/v0/agents":
            return self._said(connection, 200, {"agents": [ADA]})
        return None if self.scripts else self._said(connection, 404, {"error": "Agent not found"})

    def handle(self, connection: ServerConnection) -> None:
        self.scripts.pop(0)(connection)

    def run(self, *arguments: str) -> Result:
        return run("logs", "Ada", "-f", *arguments, ROOST_URL=self.url, ROOST_TOKEN="key")

    def _said(self, connection: ServerConnection, status: int, body: Any) -> Response:
        content = json.dumps(body).encode()
        return Response(status, "", Headers({"Content-Length": str(len(content)), "Connection": "close"}), content)


@contextmanager
def streams(*scripts: Script) -> Iterator[LogStreamServer]:
    made = LogStreamServer(*scripts)
    with serve(made.handle, "127.0.0.1", 0, process_request=made.answer) as server:
        made.url = f"http://127.0.0.1:{server.socket.getsockname()[1]}"
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()


def sends_messages(*messages: dict[str, str], code: int = 1012, reason: str = "") -> Script:
    def script(connection: ServerConnection) -> None:
        for one in messages:
            connection.send(json.dumps(one))
        connection.close(code, reason)

    return script


@pytest.mark.parametrize("verb", [("logs",), ("agents", "logs")])
def test_the_last_lines(server: FakeServer, verb: tuple[str, ...]) -> None:
    server.answers["GET /v0/agents"] = (200, {"agents": [ADA]})
    server.answers["GET /v0/agents/a1/logs"] = (200, {"logs": "one\ntwo"})
    server.answers["GET /v0/agents/a1/logs?level=warn&source=gateway%2Fws"] = (200, {"logs": "three"})
    assert server.run(*verb, "Ada").stdout == "one\ntwo\n"
    assert server.run(*verb, "Ada", "--level", "warn", "--source", "gateway/ws").stdout == "three\n"


def test_lines_are_followed_over_connections_and_told_once() -> None:
    twice = message(2, "the same moment")
    first = sends_messages(message(1), message(2), twice)
    second = sends_messages(message(1), message(2), twice, message(2, "another"), message(3))
    with streams(first, second) as server:
        ran = server.run("--level", "warn")
    texts = [line.split("  ")[-1] for line in ran.stdout.splitlines()]
    assert texts == ["line 1", "line 2", "the same moment", "another", "line 3"]
    assert ran.stdout.startswith("2026-01-02T03:04:01.000006Z  WARN   gateway/ws ")
    assert server.asked[-1] == ("/v0/agents/a1/logs?level=warn", "Bearer key")
    assert (ran.exit_code, ran.stderr.splitlines()[-1]) == (5, "Error: Agent not found")
    assert ran.stderr.count("reconnecting") == 2


def test_a_message_a_line_for_scripts() -> None:
    with streams(sends_messages(message(1), message(2), code=1008, reason="Unauthorized")) as server:
        ran = server.run("-o", "json")
    assert [json.loads(line) for line in ran.stdout.splitlines()] == [message(1), message(2)]
    assert (ran.exit_code, ran.stderr) == (4, "Error: Unauthorized\n")


def test_missing_agent_or_server_has_an_exit_code(server: FakeServer) -> None:
    server.answers["GET /v0/agents"] = (200, {"agents": []})
    assert server.run("logs", "Ada", "-f").exit_code == 5
    assert run("logs", "Ada", "-f", ROOST_URL="http://127.0.0.1:1", ROOST_TOKEN="key").exit_code == 3


def test_ctrl_c_ends_it_quietly() -> None:
    def endless(connection: ServerConnection) -> None:
        connection.send(json.dumps(message(1)))
        connection.recv()

    with streams(endless) as server:
        environment = {**os.environ, "ROOST_URL": server.url, "ROOST_TOKEN": "key"}
        command = [sys.executable, "-m", "roost", "logs", "Ada", "-f"]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout
            assert process.stderr
            try:
                assert b"line 1" in process.stdout.readline()
                process.send_signal(signal.SIGINT)
                assert process.stderr.read() == b""
                assert process.wait(20) == 130
            finally:
                process.kill()
