"""Delay of 100 tasks of 20 Hermes agents that are due at the same time, after a crash of the server."""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx2 as httpx

from bench.row import Row
from bench.timing import measure_seconds
from tests.journeys.server_process import ServerProcess, until, up

_AGENTS, _TASKS_OF_AGENT = 20, 5
_TASKS = _AGENTS * _TASKS_OF_AGENT
_LEAD_SECONDS = 60.0
_START_SECONDS, _RUN_SECONDS = 600.0, 900.0
_NAME = "bench"


def run(folder: Path) -> Iterator[Row]:
    with up(folder / "data", "--no-first-agent") as server, ThreadPoolExecutor(4) as executor:
        agents = list(executor.map(server.create, map("a{}".format, range(_AGENTS)), ["hermes"] * _AGENTS))
        with server.client() as client:
            due = _create_tasks(client, executor, [agent["agentId"] for agent in agents])
        server.kill()
        until(lambda: datetime.now(UTC) > due, _LEAD_SECONDS + (due - datetime.now(UTC)).total_seconds())
        started = measure_seconds(lambda: server.start(_START_SECONDS))
        yield Row(f"start of the server with {_TASKS} tasks due", started, "s")
        began = _wait_for_runs(server, [agent["agentId"] for agent in agents])
    once = sum(len(runs) == 1 for runs in began)
    yield Row(f"of {_TASKS} tasks due at once, those that ran once", once, "", goal=f"= {_TASKS}")
    delays = [(at - due) / timedelta(milliseconds=1) for runs in began for at in runs]
    yield Row(f"delay of {_TASKS} tasks due at once, p50", statistics.median(delays), "ms", goal="<= 5000 ms")
    yield Row(f"delay of {_TASKS} tasks due at once, maximum", max(delays), "ms", goal="<= 5000 ms")


def _create_tasks(client: httpx.Client, executor: ThreadPoolExecutor, agents: list[str]) -> datetime:
    """Create all tasks; return when they are due, which is after the last one was created, also on a busy machine."""
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    took = measure_seconds(lambda: list(executor.map(partial(_create_task, client, "probe", tomorrow), agents)))
    due = datetime.now(UTC) + timedelta(seconds=_LEAD_SECONDS + 2 * took * _TASKS_OF_AGENT)
    list(executor.map(partial(_create_task, client, _NAME, due), agents * _TASKS_OF_AGENT))
    if datetime.now(UTC) >= due:
        raise TimeoutError(f"{_TASKS} tasks were not created before they were due, though {_AGENTS} took {took:.1f} s")
    return due


def _create_task(client: httpx.Client, name: str, due: datetime, agent: str) -> None:
    body = {"name": name, "schedule": due.isoformat(), "payload": "Say hello."}
    client.post(f"/v0/agents/{agent}/tasks", json=body).raise_for_status()


def _wait_for_runs(server: ServerProcess, agents: Sequence[str]) -> Sequence[Sequence[datetime]]:
    """Return when the runs of each task began: of all tasks, or of those that the agents have after the timeout."""
    deadline, found = time.monotonic() + _RUN_SECONDS, list[Sequence[datetime]]()
    for agent in agents:
        while not _are_finished(histories := _read_runs(server, agent)) and time.monotonic() < deadline:
            time.sleep(2.0)
        found += [[datetime.fromisoformat(run["startedAt"]) for run in runs if run["startedAt"]] for runs in histories]
    return found


def _read_runs(server: ServerProcess, agent: str) -> Sequence[Sequence[Mapping[str, Any]]]:
    """Return the runs of each task, or nothing while the agent does not answer, as on a busy machine."""
    path = f"/v0/agents/{agent}/tasks"
    try:
        with server.client() as client:
            tasks = [task for task in client.get(path).raise_for_status().json()["tasks"] if task["name"] == _NAME]
            return [client.get(f"{path}/{task['id']}/runs").raise_for_status().json()["runs"] for task in tasks]
    except httpx.HTTPError:
        return []


def _are_finished(histories: Sequence[Sequence[Mapping[str, Any]]]) -> bool:
    return len(histories) == _TASKS_OF_AGENT and all(
        runs and all(run["status"] != "running" for run in runs) for runs in histories
    )
