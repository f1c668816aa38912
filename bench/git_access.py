"""Clones and pushes with the real Git, beside `git http-backend` behind a small CGI server.

A push to an agent also checks its files, writes them to the workspace and makes both durable.
"""

import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

from bench.processes import read_memory
from bench.table import Row, median_ms
from tests.conformance.git_objects import git
from tests.journeys.server_process import up

_FILES, _LARGE = 10_000, 60 * 1024**2
_ROUNDS = 5
_CHUNK = 256 * 1024
_BACKEND = {"GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": "bench", "PATH": os.environ["PATH"]}
_SETTINGS = {"safe.directory": "*", "http.receivepack": "true", "receive.fsckObjects": "true"}


def run(folder: Path) -> Sequence[Row]:
    rows: list[Row] = []
    numbers = count()
    with up(folder / "data", "--no-first-agent") as server, _run_backend(folder / "backend") as backend:
        port = server.url.rpartition(":")[2]
        idle = read_memory(server.pid, "VmRSS")
        for name, work in (("10,000 files", _many_files(folder)), ("60 MiB in one file", _large_file(folder))):
            agent = server.create(name, "hermes")
            address = f"agents.localhost:{port}/v0/agents/{agent['agentId']}/git"
            ours, theirs = f"http://x:{agent['gatewayToken']}@{address}", f"{backend}/{work.name}"
            git(folder / "backend", "init", "-q", "--bare", "-b", "main", work.name)
            for url in (ours, theirs):
                git(work, "push", "-q", url, "main")

            def clone(url: str) -> None:
                git(folder, "clone", "-q", "--bare", url, f"clone{next(numbers)}")

            def push(url: str, work: Path = work) -> None:
                git(work, "fetch", "-q", url, "main")
                git(work, "reset", "-q", "--hard", "FETCH_HEAD")
                (work / "changed").write_text(str(next(numbers)))
                git(work, "add", "changed")
                git(work, "commit", "-qm", "change")
                git(work, "push", "-q", url, "main")

            for verb, action, goal in (("clone", clone, "<= 1.1 x"), ("commit, fetch and push", push, "reported")):
                mine, reference = (median_ms(partial(action, url), _ROUNDS) for url in (ours, theirs))
                rows.append(Row(f"git: {verb}, {name}", mine, "ms", "git http-backend", reference, goal))
        peak = read_memory(server.pid, "VmHWM") - idle
    return [*rows, Row("git: memory of the server above idle", peak, "MB", "limit", 80.0, "< 80 MB")]


def _many_files(folder: Path) -> Path:
    work = folder / "many"
    for number in range(_FILES):
        file = work / f"d{number // 100}" / f"f{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(512) + b"x" * 512)
    return _commit_all(work)


def _large_file(folder: Path) -> Path:
    work = folder / "large"
    work.mkdir()
    (work / "file").write_bytes(os.urandom(_LARGE))
    return _commit_all(work)


def _commit_all(work: Path) -> Path:
    git(work, "init", "-q", "-b", "main")
    git(work, "add", "-A")
    git(work, "commit", "-qm", "all")
    return work


@contextmanager
def _run_backend(folder: Path) -> Iterator[str]:
    """Serve the repositories in a folder with `git http-backend`; yield the URL."""
    folder.mkdir()
    handler = type("Handler", (_BackendHandler,), {"folder": folder})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class _BackendHandler(BaseHTTPRequestHandler):
    """A CGI server for one program (RFC 3875)."""

    protocol_version = "HTTP/1.1"
    folder: Path

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        environment = {
            **_BACKEND,
            "GIT_PROJECT_ROOT": str(self.folder),
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
            **{f"GIT_CONFIG_KEY_{number}": name for number, name in enumerate(_SETTINGS)},
            **{f"GIT_CONFIG_VALUE_{number}": value for number, value in enumerate(_SETTINGS.values())},
        }
        with subprocess.Popen(
            ["git", "http-backend"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment
        ) as backend:
            feeding = threading.Thread(target=self._feed, args=(backend,))
            feeding.start()
            self._respond(backend)
            feeding.join()

    do_POST = do_GET  # noqa: N815 - the name that the server looks for

    def _feed(self, backend: "subprocess.Popen[bytes]") -> None:
        assert backend.stdin is not None
        with backend.stdin as stdin:
            if self.headers.get("Transfer-Encoding") != "chunked":
                stdin.write(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                return
            while size := int(self.rfile.readline(), 16):
                stdin.write(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()

    def _respond(self, backend: "subprocess.Popen[bytes]") -> None:
        assert backend.stdout is not None
        fields: dict[str, str] = {}
        while line := backend.stdout.readline().decode().strip():
            name, _, value = line.partition(": ")
            fields[name] = value
        self.send_response(int(fields.pop("Status", "200 OK").split()[0]))
        for name, value in {**fields, "Transfer-Encoding": "chunked"}.items():
            self.send_header(name, value)
        self.end_headers()
        while chunk := backend.stdout.read1(_CHUNK):  # type: ignore[attr-defined] - it is buffered
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, *_: object) -> None:
        """Stay silent."""
