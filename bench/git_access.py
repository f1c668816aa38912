"""Clones and pushes with the real Git, beside `git http-backend` behind a small CGI server.

A push to an agent also checks its files, writes them to the workspace and makes both durable. A push to the backend
syncs nothing if it is small; a further backend also has work trees, and makes repository and work tree durable.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from shutil import rmtree

from bench.processes import read_memory
from bench.row import Row
from bench.timing import RUNS, measure_seconds, take_turns, time_in_turns
from tests.conformance.git_backend import run_backend
from tests.conformance.git_objects import git
from tests.journeys.server_process import ServerProcess, up

_FILES, _LARGE, _HUGE, _REFERENCES = 10_000, 60 * 1024**2, 10**9, 2_000
_FIRST_PUSHES, _HUGE_ROUNDS, _SECONDS = 3, 2, 600
_REFERENCE = "git http-backend"
_DURABLE = "with a durable work tree"
_DURABLE_SETTINGS = {"core.fsync": "all", "receive.denyCurrentBranch": "updateInstead"}
_SYNC_HOOK = "#!/bin/sh\nexec sync -f .\n"
_SHORTFALL = (
    "The disk's, because a small push to the backend syncs nothing and writes no work tree; the rest is the kernel's "
    "and Git's, for two sandboxes and three hooks."
)
_CLONE_SHORTFALL = "The runs are on both sides of the goal: the sandbox takes about 10 ms, which is the goal's margin."
_FIRST_SHORTFALL = (
    "What the backend takes with a durable work tree is the disk's. Of what is above it the sandboxes and the creation "
    "of the repository are a part; it is not taken apart further."
)


def run(folder: Path) -> Iterator[Row]:
    with _run_servers(folder) as servers:
        idle = read_memory(servers.server.pid, "VmRSS")
        for name, files, size in (
            ("10,000 files", _FILES, 1024),
            ("60 MiB in one file", 1, _LARGE),
            ("2,000 references", 100, 1024),
        ):
            work = _fill(folder / name, files, size)
            repositories = [servers.create(f"{name}, {number}") for number in range(_FIRST_PUSHES)]
            yield _first_push(work, name, repositories)
            urls = repositories[-1]
            if "references" in name:
                servers.tag_main(urls)
            yield _compare_clones(folder, name, urls)
            pushes = take_turns(*(partial(_time_push, work, url) for url in urls))
            yield _push_row(f"git: push of one change, {name}", pushes, _SHORTFALL)
        peak = read_memory(servers.server.pid, "VmHWM") - idle
        yield Row("git: memory of the server above idle", peak, "MB", goal="< 80 MB")


def run_large(folder: Path) -> Iterator[Row]:
    """Measure the first push of 1 GB of files, half of which is random, and clones of it."""
    work = _fill(folder / "huge", 250, _HUGE // 250)
    with _run_servers(folder) as servers:
        urls = servers.create("huge")
        yield _first_push(work, "1 GB", [urls])
        yield _compare_clones(folder, "1 GB", urls, _HUGE_ROUNDS)


def _first_push(work: Path, name: str, repositories: Sequence[Sequence[str]]) -> Row:
    """Push to empty repositories; each has its URLs at all servers."""

    def push(url: str) -> float:
        return measure_seconds(lambda: git(work, "push", "-q", url, "main", seconds=_SECONDS)) * 1000

    pushes = list(zip(*(map(push, urls) for urls in repositories), strict=True))
    return _push_row(f"git: first push, {name}", pushes, _FIRST_SHORTFALL)


def _push_row(name: str, pushes: Sequence[Sequence[float]], shortfall: str) -> Row:
    ours, theirs, durable = pushes
    others = {f"{_REFERENCE} {_DURABLE}": durable}
    return Row(name, ours, "ms", _REFERENCE, theirs, "<= 1.3 x", others, shortfall)


def _compare_clones(folder: Path, name: str, urls: Sequence[str], runs: int = RUNS) -> Row:
    ours, theirs = time_in_turns(*(partial(_clone, folder, url) for url in urls[:2]), rounds=1, runs=runs)
    return Row(f"git: clone, {name}", ours, "ms", _REFERENCE, theirs, "<= 1.1 x", shortfall=_CLONE_SHORTFALL)


def _clone(folder: Path, url: str) -> None:
    clone = folder / "clone"
    git(folder, "clone", "-q", "--bare", url, clone, seconds=_SECONDS)
    rmtree(clone)


def _time_push(work: Path, url: str) -> float:
    """Commit a change; return the milliseconds of its push."""
    git(work, "fetch", "-q", url, "main")
    git(work, "reset", "-q", "--hard", "FETCH_HEAD")
    (work / "changed").write_bytes(os.urandom(10))
    git(work, "add", "changed")
    git(work, "commit", "-qm", "change")
    return measure_seconds(lambda: git(work, "push", "-q", url, "main")) * 1000


@dataclass(frozen=True)
class _Servers:
    """Our server, `git http-backend`, and one with durable work trees."""

    server: ServerProcess
    folder: Path
    backend: str
    durable: str

    def create(self, name: str) -> tuple[str, str, str]:
        """Create an empty repository at all servers, and return its URLs."""
        agent = self.server.create(name, "hermes")
        address = f"agents.localhost:{self.server.url.rpartition(':')[2]}/v0/agents/{agent['agentId']}/git"
        name = agent["agentId"]
        git(self.folder / "backend", "init", "-q", "--bare", "-b", "main", name)
        git(self.folder / "durable", "init", "-q", "-b", "main", name)
        hook = self.folder / "durable" / name / ".git/hooks/post-receive"
        hook.write_text(_SYNC_HOOK)
        hook.chmod(0o755)
        return f"http://x:{agent['gatewayToken']}@{address}", f"{self.backend}/{name}", f"{self.durable}/{name}"

    def tag_main(self, urls: Sequence[str]) -> None:
        """Give all repositories many references, which no push to an agent can make."""
        name = urls[1].rpartition("/")[2]
        for repository in (self.folder / server / name for server in ("data/git", "backend", "durable")):
            commit = git(repository, "rev-parse", "main")
            lines = "".join(f"create refs/tags/t{number} {commit}\n" for number in range(_REFERENCES))
            git(repository, "update-ref", "--stdin", data=lines.encode())
            git(repository, "pack-refs")


@contextmanager
def _run_servers(folder: Path) -> Iterator[_Servers]:
    with (
        up(folder / "data", "--no-first-agent") as server,
        run_backend(folder / "backend") as backend,
        run_backend(folder / "durable", **_DURABLE_SETTINGS) as durable,
    ):
        yield _Servers(server, folder, backend, durable)


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
    git(work, "config", "gc.auto", "0")  # a collection in the background would run during the first push only
    git(work, "commit", "-qm", "all")
    git(work, "repack", "-adq")
    return work
