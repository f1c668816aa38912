"""Clones and pushes with the real Git, beside `git http-backend` behind a small CGI server.

A push to an agent also checks its files, writes them to the workspace and makes both durable.
"""

import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from shutil import rmtree
from statistics import median

from bench.processes import read_memory
from bench.table import Row, median_ms
from tests.conformance.git_objects import git
from tests.journeys.server_process import Up, up

_FILES, _LARGE, _HUGE, _REFERENCES = 10_000, 60 * 1024**2, 10**9, 2_000
_ROUNDS, _HUGE_ROUNDS, _SECONDS = 5, 2, 600
_CHUNK = 256 * 1024
_BACKEND = {"GIT_HTTP_EXPORT_ALL": "1", "REMOTE_USER": "bench", "PATH": os.environ["PATH"]}
_SETTINGS = {"safe.directory": "*", "http.receivepack": "true", "receive.fsckObjects": "true"}


def run(folder: Path) -> Sequence[Row]:
    rows: list[Row] = []
    with _run_both(folder) as both:
        idle = read_memory(both.server.pid, "VmRSS")
        for name, files, size in (
            ("10,000 files", _FILES, 1024),
            ("60 MiB in one file", 1, _LARGE),
            ("2,000 references", 100, 1024),
        ):
            work = _fill(folder / name, files, size)
            urls = both.create(name)
            for url in urls:
                git(work, "push", "-q", url, "main")
            if "references" in name:
                both.tag_main(urls)
            rows += [
                _compare(f"clone, {name}", partial(_clone, folder), urls, "<= 1.1 x"),
                _compare(f"commit, fetch and push, {name}", partial(_push, work), urls, "reported"),
            ]
        peak = read_memory(both.server.pid, "VmHWM") - idle
    return [*rows, Row("git: memory of the server above idle", peak, "MB", "limit", 80.0, "< 80 MB")]


def run_large(folder: Path) -> Sequence[Row]:
    """Measure the first push of 1 GB of files, half of which is random, and clones of it."""
    work = _fill(folder / "huge", 250, _HUGE // 250)
    with _run_both(folder) as both:
        urls = both.create("huge")
        ours, theirs = (
            median_ms(partial(git, work, "push", "-q", url, "main", seconds=_SECONDS), 1, warm=0) for url in urls
        )
        return [
            Row("git: first push, 1 GB", ours, "ms", "git http-backend", theirs, "reported"),
            _compare("clone, 1 GB", partial(_clone, folder), urls, "<= 1.1 x", _HUGE_ROUNDS),
        ]


def _compare(name: str, action: Callable[[str], object], urls: Sequence[str], goal: str, rounds: int = _ROUNDS) -> Row:
    """Measure an action at both servers in turns."""
    times = [[median_ms(partial(action, url), 1, warm=0) for url in urls] for _ in range(rounds + 1)][1:]
    ours, theirs = map(median, zip(*times, strict=True))
    return Row(f"git: {name}", ours, "ms", "git http-backend", theirs, goal)


def _clone(folder: Path, url: str) -> None:
    clone = folder / "clone"
    git(folder, "clone", "-q", "--bare", url, clone, seconds=_SECONDS)
    rmtree(clone)


def _push(work: Path, url: str) -> None:
    git(work, "fetch", "-q", url, "main")
    git(work, "reset", "-q", "--hard", "FETCH_HEAD")
    (work / "changed").write_bytes(os.urandom(10))
    git(work, "add", "changed")
    git(work, "commit", "-qm", "change")
    git(work, "push", "-q", url, "main")


@dataclass(frozen=True)
class _BothServers:
    """Our server and `git http-backend`."""

    server: Up
    folder: Path
    backend: str

    def create(self, name: str) -> tuple[str, str]:
        """Create an empty repository at both, and return its URLs."""
        agent = self.server.create(name, "hermes")
        address = f"agents.localhost:{self.server.url.rpartition(':')[2]}/v0/agents/{agent['agentId']}/git"
        git(self.folder / "backend", "init", "-q", "--bare", "-b", "main", agent["agentId"])
        return f"http://x:{agent['gatewayToken']}@{address}", f"{self.backend}/{agent['agentId']}"

    def tag_main(self, urls: Sequence[str]) -> None:
        """Give both repositories many references, which no push to an agent can make."""
        name = urls[1].rpartition("/")[2]
        for repository in (self.folder / "data/git" / name, self.folder / "backend" / name):
            commit = git(repository, "rev-parse", "main")
            lines = "".join(f"create refs/tags/t{number} {commit}\n" for number in range(_REFERENCES))
            git(repository, "update-ref", "--stdin", data=lines.encode())
            git(repository, "pack-refs")


@contextmanager
def _run_both(folder: Path) -> Iterator[_BothServers]:
    with up(folder / "data", "--no-first-agent") as server, _run_backend(folder / "backend") as backend:
        yield _BothServers(server, folder, backend)


def _fill(work: Path, files: int, size: int) -> Path:
    """Commit files, half random and half text."""
    for number in range(files):
        file = work / f"d{number // 100}" / f"f{number}"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(os.urandom(size // 2) + b"x" * (size // 2))
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
