"""A hundred tasks of twenty Hermes agents, due in one moment, with the server killed between: how late each begins."""

import statistics
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx2 as httpx

from bench.table import Row
from tests.journeys.server_process import Up, until, up

_AGENTS, _EACH = 20, 5
_AHEAD = timedelta(seconds=60)
_PATIENCE = 600.0
_LIMIT_MS = 5000.0


def run(folder: Path) -> Sequence[Row]:
    with up(folder / "data", "--no-first-agent") as server, ThreadPoolExecutor(4) as hands:
        agents = list(hands.map(server.create, map("a{}".format, range(_AGENTS)), ["hermes"] * _AGENTS))
        due = datetime.now(UTC) + _AHEAD
        with server.client() as client:
            list(hands.map(partial(_make, client, due), agents * _EACH))
        if datetime.now(UTC) >= due:
            raise SystemExit("The tasks were not made in time for their time; the machine is busy.")
        server.kill()
        until(lambda: datetime.now(UTC) > due)
        server.start()
        late = [ms for agent in agents for ms in until(partial(_late, server, agent, due), _PATIENCE, 2.0)]
    if len(late) != _AGENTS * _EACH:
        raise SystemExit(f"{_AGENTS * _EACH} tasks ran {len(late)} times.")
    goal = "each once, within 5 s"
    return [
        Row("100 tasks due at once, begin late by, p50", statistics.median(late), "ms", "limit", _LIMIT_MS, goal),
        Row("100 tasks due at once, begin late by, the last", max(late), "ms", "limit", _LIMIT_MS, goal),
    ]


def _make(client: httpx.Client, due: datetime, agent: dict[str, Any]) -> None:
    body = {"name": "bench", "schedule": due.isoformat(), "payload": "Say hello."}
    client.post(f"/v0/agents/{agent['agentId']}/tasks", json=body).raise_for_status()


def _late(server: Up, agent: dict[str, Any], due: datetime) -> list[float]:
    """By how much each run of the agent's tasks began too late, when all are over; else nothing."""
    path = f"/v0/agents/{agent['agentId']}/tasks"
    with server.client() as client:
        tasks = client.get(path).json().get("tasks", [])
        histories = [client.get(f"{path}/{task['id']}/runs").json().get("runs", []) for task in tasks]
    if len(tasks) != _EACH or not all(runs and all(run["status"] != "running" for run in runs) for runs in histories):
        return []
    began = [datetime.fromisoformat(run["startedAt"]) for runs in histories for run in runs]
    return [(at - due) / timedelta(milliseconds=1) for at in began]
