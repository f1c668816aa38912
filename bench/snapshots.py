"""Snapshots of a workspace of 10,000 files over HTTP, compared with Git in the same container and with SHA-256.

A snapshot is answered before its commit is made, so each measurement waits for the commits before it.
"""

import hashlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

import httpx2 as httpx

from bench.row import Row
from bench.timing import RUNS, measure_seconds, take_turns
from tests.journeys.server_process import until, up

_FILES, _FOLDERS, _FILE_BYTES = 10_000, 100, 20_000
_MB = 1e6
_FILL = f"""
import os
for folder in range({_FOLDERS}):
    os.makedirs(f"work/{{folder}}", exist_ok=True)
    for file in range({_FILES // _FOLDERS}):
        with open(f"work/{{folder}}/{{file}}", "wb") as out:
            out.write(os.urandom({_FILE_BYTES}))
"""
_CHANGE = f"for i in $(seq {_FILES // 100}); do echo $(date +%N) >> work/$((i % {_FOLDERS}))/$i; done"
_LARGE_FILES, _LARGE_BYTES = 10, 20_000_000
_FILL_LARGE = f"mkdir large; for i in $(seq {_LARGE_FILES}); do head -c {_LARGE_BYTES} /dev/urandom > large/$i; done"
_WORK_SECONDS, _AUTOMATIC_DELAY = 30, 1
_WORK = f"""
import os, time
end, count = time.monotonic() + {_WORK_SECONDS}, 0
while time.monotonic() < end:
    sum(range(1_000_000))
    with open(f"work/{{count % {_FOLDERS}}}/{{count % {_FILES // _FOLDERS}}}", "wb") as out:
        out.write(os.urandom({_FILE_BYTES}))
    count += 1
print(count)
"""
"""Computes and writes without a rest, so that an automatic snapshot is taken after every ten delays."""
_READ = """
import hashlib, os, time
began = time.perf_counter()
with open(os.path.expanduser("~/pack"), "wb") as pack:
    for folder, _, names in os.walk("work"):
        for name in names:
            with open(f"{folder}/{name}", "rb", buffering=0) as file:
                data = file.read()
            hashlib.sha256(data).digest()
            pack.write(data)
    pack.flush()
    os.fsync(pack.fileno())
print(time.perf_counter() - began)
os.unlink(os.path.expanduser("~/pack"))
"""
"""Does in one thread only what a first snapshot cannot leave out."""
_FIRST = (
    "One thread that only reads the files, hashes them and writes them to one durable file is slower than the goal: "
    "the kernel's time to open and read so many files, and the disk's to write them, is not in the reference."
)
_LARGE = (
    "One thread that only reads the files, hashes them and writes them to one durable file is slower than the goal: "
    "most of its time is the disk's. A snapshot also sends the bytes from the container to the server."
)
_CHANGED = (
    "The look for changes among all files is what a snapshot without any takes. What was changed is durable in the "
    "answer; the loose objects of a commit are not."
)
_RESET = (
    "The kernel and the disk take what the last reference says. The rest is Python's: the server checks each file "
    "against its hash and sends it, the warden writes it."
)
_RECEIVE = f"""
import os, time
os.chdir(os.path.expanduser("~"))
began = time.perf_counter()
with open("stream", "rb") as stream:
    for folder in range({_FOLDERS}):
        os.makedirs(f"received/{{folder}}")
        for file in range({_FILES // _FOLDERS}):
            with open(f"received/{{folder}}/{{file}}", "wb", buffering=0) as out:
                out.write(stream.read({_FILE_BYTES}))
os.sync()
print(time.perf_counter() - began)
"""
"""Does in one thread only what a reset cannot leave out."""
_WORK_SHORTFALL = "Two runs of 30 s are compared, and between such runs the machine varies by more than that."
_GIT = "git -c user.name=a -c user.email=a"


def run(folder: Path) -> Iterator[Row]:
    with _agent(folder / "data") as client:
        yield from _measure(client)
    undisturbed, disturbed = (_work(folder / str(delay), delay) for delay in (3600, _AUTOMATIC_DELAY))
    name = f"work of an agent, an automatic snapshot every {10 * _AUTOMATIC_DELAY} s"
    yield Row(name, disturbed, "steps/s", "without", undisturbed, ">= 0.95 x", shortfall=_WORK_SHORTFALL)


@contextmanager
def _agent(data: Path, delay: int = 60) -> Generator[httpx.Client]:
    with up(data, "--no-first-agent", ROOST_SNAPSHOT_DELAY=str(delay)) as server:
        agent = server.create("bench", "hermes")
        with server.agent_client(agent) as client:
            yield client


def _work(data: Path, delay: int) -> float:
    """Return how many steps a second an agent makes, with automatic snapshots after that delay."""
    with _agent(data, delay) as client:
        _shell(client, f"python3 - <<'END'\n{_FILL}END\nsleep 0.2")
        _sync(client)
        return int(_shell(client, f"python3 - <<'END'\n{_WORK}END")) / _WORK_SECONDS


def _measure(client: httpx.Client) -> Iterator[Row]:
    _shell(client, f"python3 - <<'END'\n{_FILL}END\nsleep 0.2")
    size, name = _FILES * _FILE_BYTES, f"{_FILES:,} files of {_FILE_BYTES / 1000:g} KB"
    sha256 = "sha256 of as many bytes"
    first = measure_seconds(lambda: _sync(client))
    minimal = {"read, sha256 and one durable file, in one thread": size / _run_minimal(client, _READ) / _MB}
    hashed = _measure_sha256(size)
    yield Row(f"first snapshot of {name}", size / first / _MB, "MB/s", sha256, hashed, ">= 0.4 x", minimal, _FIRST)
    with_commit = first + measure_seconds(lambda: _wait_for_commit(client))
    unchanged = [measure_seconds(lambda: _sync(client)) for _ in range(RUNS)]
    yield Row("snapshot, nothing changed, p50", unchanged, "s", goal="<= 0.2 s")
    changed = [_change(client, lambda: _sync(client)) for _ in range(RUNS)]
    cid = _sync(client)["snapshotCid"]
    _wait_for_commit(client)
    begin = f"git init -q work && cd work && git add -A && {_GIT} commit -qm first"
    first_by_git = measure_seconds(lambda: _shell(client, begin))
    yield Row("first snapshot", first, "s", "git init, add and commit", first_by_git, "<= 0.6 x")
    yield Row("first snapshot with its commit", with_commit, "s", "git init, add and commit", first_by_git, "<= 1 x")
    commit = f"cd work && git add -A && {_GIT} commit -qm next"
    committed = [_change(client, lambda: _shell(client, commit)) for _ in range(RUNS)]
    others = {"nothing changed": unchanged}
    name = "snapshot, 1 % changed, p50"
    yield Row(name, changed, "s", "git add -A && git commit", committed, "<= 1 x", others, _CHANGED)
    _shell(client, "mv work/.git ~/repository")
    _shell(client, "cat work/*/* > ~/stream")
    ways = (lambda: _restore(client, cid), lambda: _check_out(client), lambda: _receive(client))
    restored, checked_out, received = take_turns(*ways)
    reference = "git checkout into a new folder, and sync"
    others = {"the files written from a stream, and sync": received}
    yield Row("reset of a deleted workspace", restored, "s", reference, checked_out, "<= 1.5 x", others, _RESET)
    _shell(client, _FILL_LARGE)
    size = _LARGE_FILES * _LARGE_BYTES
    large = size / measure_seconds(lambda: _sync(client)) / _MB
    name = f"snapshot of {_LARGE_FILES} new files of {_LARGE_BYTES / _MB:g} MB"
    program = _READ.replace('"work"', '"large"')
    minimal = {"read, sha256 and one durable file, in one thread": size / _run_minimal(client, program) / _MB}
    yield Row(name, large, "MB/s", sha256, _measure_sha256(size), ">= 0.5 x", minimal, _LARGE)


def _change(client: httpx.Client, action: Callable[[], object]) -> float:
    _wait_for_commit(client)
    _shell(client, _CHANGE)
    return measure_seconds(action)


def _shell(client: httpx.Client, command: str) -> str:
    """Run a command in the container, and return its output."""
    body = {"command": command, "timeoutSeconds": 300}
    result = client.post("/v0/console/exec", json=body).raise_for_status().json()
    if result["exitCode"]:
        raise RuntimeError(f"a command failed: {result['stderr']}")
    return result["stdout"]


def _run_minimal(client: httpx.Client, program: str) -> float:
    """Run a program that prints how many seconds its work took."""
    return float(_shell(client, f"python3 - <<'END'\n{program}END"))


def _sync(client: httpx.Client) -> dict[str, Any]:
    return client.post("/v0/snapshots/sync").raise_for_status().json()


def _wait_for_commit(client: httpx.Client) -> None:
    until(lambda: client.get("/v0/snapshots").raise_for_status().json()["snapshots"][0]["commitSha"])


def _restore(client: httpx.Client, cid: str) -> float:
    _shell(client, "rm -rf work && sync -f .")
    reset = {"snapshotCid": cid}
    return measure_seconds(lambda: client.post("/v0/snapshots/reset", json=reset).raise_for_status())


def _check_out(client: httpx.Client) -> float:
    """Check out outside of the workspace, durably as a reset is, into a folder of its own.

    In place of deleted files, ext4 makes new ones ten times as slowly; `core.fsync` does not cover a work tree.
    """
    folder = _shell(client, "mktemp -d -p ~").strip()
    checkout = f"git --git-dir ~/repository --work-tree {folder} checkout -qf HEAD -- . && sync -f {folder}"
    return measure_seconds(lambda: _shell(client, checkout))


def _receive(client: httpx.Client) -> float:
    _shell(client, "rm -rf ~/received && sync -f ~")
    return _run_minimal(client, _RECEIVE)


def _measure_sha256(size: int) -> float:
    """Return the speed of SHA-256 in MB/s."""
    data = bytes(size)
    return size / median(measure_seconds(lambda: hashlib.sha256(data)) for _ in range(3)) / _MB
