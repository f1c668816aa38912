"""Runs the command line in this process or on a pseudo-terminal, against a scripted HTTP server."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from typer import testing
from typer.testing import CliRunner, Result

from roost.cli.main import cli, create_program

PROGRAM = create_program()
PROGRAM.load_commands()
# Building the commands takes 50 ms, once for each run otherwise.
testing._get_command = lambda _: PROGRAM  # pyright: ignore[reportPrivateImportUsage] - the runner has no other way

FakeAnswer = tuple[int, Any] | bytes


def run(*arguments: str, input: str | None = None, **environment: str) -> Result:  # noqa: A002 - as in subprocess
    return CliRunner().invoke(cli, arguments, input=input, env=environment)


def run_on_terminal(code: str, *, columns: int = 80) -> str:
    """Run Python code on a pseudo-terminal and return its output."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "COLUMNS": str(columns), "TERM": "xterm-256color"}
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        seen = b""
        try:
            while block := os.read(ours, 65536):
                seen += block
        except OSError:  # on Linux, reading a closed terminal raises EIO
            pass
        os.close(ours)
    assert process.returncode == 0, seen
    return seen.decode().replace("\r\n", "\n")


class FakeServer(ThreadingHTTPServer):
    """Answers by method and path, records requests, and sends strings as text and other values as JSON.

    Bytes are the whole answer, in place of a response; then the connection is closed.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: dict[str, FakeAnswer | list[FakeAnswer]] = {}
        self.headers: dict[str, str] = {}
        self.deployment: Any = {"domain": "localhost"}
        self.requests: list[tuple[str, Mapping[str, str], Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def environment(self) -> dict[str, str]:
        return {"ROOST_URL": self.url, "ROOST_TOKEN": "key"}

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):  # a command may end before it has read all
            super().handle_error(request, client_address)

    def run(self, *arguments: str, input: str | None = None) -> Result:  # noqa: A002 - as in subprocess
        return run(*arguments, input=input, **self.environment)

    def bodies(self, request_line: str) -> list[Any]:
        return [body for line, _, body in self.requests if line == request_line]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # a WebSocket's opening request has no other
    server: FakeServer

    def _answer(self) -> None:
        line = f"{self.command} {self.path}"
        if line == "GET /.well-known/roost":
            self._send(200, self.server.deployment)
            return
        sent = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        is_form = self.headers.get("Content-Type", "").startswith("multipart/")
        body = sent if is_form else json.loads(sent) if sent else None
        self.server.requests.append((line, dict(self.headers), body))
        answer = self.server.answers.get(line, (404, {"error": "Not found"}))
        if isinstance(answer, list):
            answer = answer.pop(0) if len(answer) > 1 else answer[0]
        if isinstance(answer, bytes):
            self.wfile.write(answer)
            self.close_connection = True
        else:
            self._send(*answer)

    def _send(self, status: int, body: Any) -> None:
        content = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        for name, value in self.server.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - the names that the base class looks for

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def fake_server() -> Iterator[FakeServer]:
    with FakeServer() as made:
        thread = Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield made
        finally:
            made.shutdown()
            thread.join()
