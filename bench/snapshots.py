"""Snapshots of a workspace of 10,000 files over HTTP, compared with Git in the same container and with SHA-256."""

import hashlib
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import httpx2 as httpx

from bench.table import Row
from tests.journeys.server_process import up

_FILES, _FOLDERS, _FILE_BYTES = 10_000, 100, 20_000
_ROUNDS = 5
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
_GIT = "git -c user.name=a -c user.email=a"


def run(folder: Path) -> Sequence[Row]:
    with up(folder / "data", "--no-first-agent") as server:
        agent = server.create("bench", "hermes")
        with server.agent_client(agent) as client:
            return _measure(client)


def _measure(client: httpx.Client) -> Sequence[Row]:
    _shell(client, f"python3 - <<'END'\n{_FILL}END\nsleep 0.2")
    first = _seconds(lambda: _sync(client))
    unchanged = median([_seconds(lambda: _sync(client)) for _ in range(_ROUNDS)])
    changed = median([_change(client, lambda: _sync(client)) for _ in range(_ROUNDS)])
    cid = _sync(client)["snapshotCid"]
    _shell(client, f"git init -q work && cd work && git add -A && {_GIT} commit -qm first")
    commit = f"cd work && git add -A && {_GIT} commit -qm next"
    committed = median([_change(client, lambda: _shell(client, commit)) for _ in range(_ROUNDS)])
    _shell(client, "rm -rf work")
    restored = _seconds(lambda: _reset(client, cid))
    size = _FILES * _FILE_BYTES
    rate, limit = size / first / _MB, _measure_sha256(size)
    name = f"{_FILES:,} files of {_FILE_BYTES / 1000:g} KB"
    return [
        Row(f"first snapshot of {name}", rate, "MB/s", "sha256 of as many bytes", limit, ">= 50 %"),
        Row("snapshot, 1 % changed, p50", changed, "s", "git add -A && git commit", committed, "<= 1 s"),
        Row("snapshot, nothing changed, p50", unchanged, "s", "limit", 0.2, "<= 0.2 s"),
        Row("reset of a deleted workspace", restored, "s", "limit", 2.0, "<= 2 s"),
    ]


def _change(client: httpx.Client, action: Callable[[], object]) -> float:
    _shell(client, _CHANGE)
    return _seconds(action)


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def _shell(client: httpx.Client, command: str) -> None:
    body = {"command": command, "timeoutSeconds": 300}
    result = client.post("/v0/console/exec", json=body).raise_for_status().json()
    if result["exitCode"]:
        raise SystemExit(f"A command failed: {result['stderr']}")


def _sync(client: httpx.Client) -> dict[str, Any]:
    return client.post("/v0/snapshots/sync").raise_for_status().json()


def _reset(client: httpx.Client, cid: str) -> None:
    client.post("/v0/snapshots/reset", json={"snapshotCid": cid}).raise_for_status()


def _measure_sha256(size: int) -> float:
    """Return the speed of SHA-256 in MB/s."""
    data = bytes(size)
    return size / median([_seconds(lambda: hashlib.sha256(data)) for _ in range(3)]) / _MB
