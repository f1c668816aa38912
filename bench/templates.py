"""Create an agent from a template of 1,000 files, compared with an empty agent; both answer when their gateway runs."""

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx

from bench.row import Row
from tests.conformance.git_backend import run_backend
from tests.conformance.git_objects import git
from tests.journeys.server_process import up

_FILES, _FOLDERS, _FILE_BYTES = 1_000, 20, 4096
_ROUNDS = 5
_ENGINE = "hermes"
_NAME = "reader"


def run(folder: Path) -> Iterator[Row]:
    with (
        run_backend(folder / "served") as url,
        up(folder / "data", "--no-first-agent", ROOST_EGRESS_ALLOW="127.0.0.1/32") as server,
        server.client() as client,
    ):
        _serve_template(folder)
        client.post("/v0/templates", json={"gitUrl": f"{url}/{_NAME}.git"}).raise_for_status()
        empty, full = list[float](), list[float]()
        for _ in range(_ROUNDS):  # in turn, so that other work of the machine meets both
            empty.append(_create(client, {"name": "bench", "engine": _ENGINE}))
            full.append(_create(client, {"templateId": _NAME}))
    yield Row(f"create from a template of {_FILES:,} files, p50", full, "s", "an empty agent", empty, "<= 2 x")


def _serve_template(folder: Path) -> None:
    work = folder / _NAME
    for number in range(_FILES):
        path = work / "workspace" / str(number % _FOLDERS) / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(os.urandom(_FILE_BYTES))
    manifest = {"version": 1, "engine": _ENGINE, "agent": {"name": "Reader"}, "template": {"slug": _NAME}}
    (work / "manifest.json").write_text(json.dumps(manifest))
    (work / "README.md").write_text("# Reader\n")
    git(work, "init", "-q", "-b", "main")
    git(work, "add", "-A")
    git(work, "-c", "user.name=a", "-c", "user.email=a", "commit", "-qm", "Begin")
    git(folder, "clone", "-q", "--bare", work, folder / "served" / f"{_NAME}.git")


def _create(client: httpx.Client, body: dict[str, Any]) -> float:
    began = time.perf_counter()
    answer = client.post("/v0/agents", json=body)
    took = time.perf_counter() - began
    assert answer.status_code == 201, answer.text
    client.delete(f"/v0/agents/{answer.json()['agent']['agentId']}").raise_for_status()
    return took
