"""Clones and pushes with the real Git, beside `git http-backend` behind a small CGI server.

A push to an agent also checks its files, writes them to the workspace and makes both durable.
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
_HUGE_ROUNDS, _SECONDS = 2, 600
_REFERENCE = "git http-backend"


def run(folder: Path) -> Iterator[Row]:
    with _run_both(folder) as both:
        idle = read_memory(both.server.pid, "VmRSS")
        for name, files, size in (
            ("10,000 files", _FILES, 1024),
            ("60 MiB in one file", 1, _LARGE),
            ("2,000 references", 100, 1024),
        ):
            work = _fill(folder / name, files, size)
            urls = both.create(name)
            yield _first_push(work, name, urls)
            if "references" in name:
                both.tag_main(urls)
            yield _compare_clones(folder, name, urls)
            ours, theirs = take_turns(*(partial(_time_push, work, url) for url in urls))
            yield Row(f"git: push of one change, {name}", ours, "ms", _REFERENCE, theirs, "<= 1.3 x")
        peak = read_memory(both.server.pid, "VmHWM") - idle
        yield Row("git: memory of the server above idle", peak, "MB", goal="< 80 MB")


def run_large(folder: Path) -> Iterator[Row]:
    """Measure the first push of 1 GB of files, half of which is random, and clones of it."""
    work = _fill(folder / "huge", 250, _HUGE // 250)
    with _run_both(folder) as both:
        urls = both.create("huge")
        yield _first_push(work, "1 GB", urls)
        yield _compare_clones(folder, "1 GB", urls, _HUGE_ROUNDS)


def _first_push(work: Path, name: str, urls: Sequence[str]) -> Row:
    push = partial(git, work, "push", "-q", seconds=_SECONDS)
    ours, theirs = (measure_seconds(lambda url=url: push(url, "main")) * 1000 for url in urls)
    return Row(f"git: first push, {name}", ours, "ms", _REFERENCE, theirs, "<= 1.3 x")


def _compare_clones(folder: Path, name: str, urls: Sequence[str], runs: int = RUNS) -> Row:
    ours, theirs = time_in_turns(*(partial(_clone, folder, url) for url in urls), rounds=1, runs=runs)
    return Row(f"git: clone, {name}", ours, "ms", _REFERENCE, theirs, "<= 1.1 x")


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
class _BothServers:
    """Our server and `git http-backend`."""

    server: ServerProcess
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
    with up(folder / "data", "--no-first-agent") as server, run_backend(folder / "backend") as backend:
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
