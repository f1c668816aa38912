"""Delay of 100 tasks of 20 Hermes agents that are due at the same time, after a crash of the server."""

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

_AGENTS, _TASKS_OF_AGENT = 20, 5
_LEAD_TIME = timedelta(seconds=60)
_TIMEOUT = 600.0
_LIMIT_MS = 5000.0


def run(folder: Path) -> Sequence[Row]:
    with up(folder / "data", "--no-first-agent") as server, ThreadPoolExecutor(4) as executor:
        agents = list(executor.map(server.create, map("a{}".format, range(_AGENTS)), ["hermes"] * _AGENTS))
        due = datetime.now(UTC) + _LEAD_TIME
        with server.client() as client:
            list(executor.map(partial(_create_task, client, due), agents * _TASKS_OF_AGENT))
        if datetime.now(UTC) >= due:
            raise SystemExit("The tasks were not created before they were due; the machine is busy.")
        server.kill()
        until(lambda: datetime.now(UTC) > due)
        server.start()
        delays = [ms for agent in agents for ms in until(partial(_delays, server, agent, due), _TIMEOUT, 2.0)]
    if len(delays) != _AGENTS * _TASKS_OF_AGENT:
        raise SystemExit(f"{_AGENTS * _TASKS_OF_AGENT} tasks ran {len(delays)} times.")
    goal = "each once, within 5 s"
    return [
        Row("delay of 100 tasks due at once, p50", statistics.median(delays), "ms", "limit", _LIMIT_MS, goal),
        Row("delay of 100 tasks due at once, maximum", max(delays), "ms", "limit", _LIMIT_MS, goal),
    ]


def _create_task(client: httpx.Client, due: datetime, agent: dict[str, Any]) -> None:
    body = {"name": "bench", "schedule": due.isoformat(), "payload": "Say hello."}
    client.post(f"/v0/agents/{agent['agentId']}/tasks", json=body).raise_for_status()


def _delays(server: Up, agent: dict[str, Any], due: datetime) -> list[float]:
    """Return the delay of each run of the agent's tasks in milliseconds, or nothing until all runs are finished."""
    path = f"/v0/agents/{agent['agentId']}/tasks"
    with server.client() as client:
        tasks = client.get(path).json().get("tasks", [])
        histories = [client.get(f"{path}/{task['id']}/runs").json().get("runs", []) for task in tasks]
    if len(tasks) != _TASKS_OF_AGENT or not all(
        runs and all(run["status"] != "running" for run in runs) for runs in histories
    ):
        return []
    began = [datetime.fromisoformat(run["startedAt"]) for runs in histories for run in runs]
    return [(at - due) / timedelta(milliseconds=1) for at in began]
