"""Many tasks due at the same time, on real agents, after the server was killed: each runs once, in time."""

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from tests.journeys.server_process import ServerProcess, until, up

pytestmark = [pytest.mark.container, pytest.mark.engine]
AGENTS, AHEAD = 2, 12.0
NAMES = ("t0", "t1", "t2")


def tasks_of(server: ServerProcess, agent: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tasks, or nothing while the agent's gateway does not respond."""
    with server.client() as client:
        return client.get(f"/v0/agents/{agent['agentId']}/tasks").json().get("tasks", [])


def runs_of(server: ServerProcess, agent: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Return the runs of each task by the task's name."""
    with server.client() as client:
        path = f"/v0/agents/{agent['agentId']}/tasks"
        return {
            task["name"]: client.get(f"{path}/{task['id']}/runs").json()["runs"] for task in tasks_of(server, agent)
        }


def create_task(client: httpx.Client, agent: dict[str, Any], name: str, at: str) -> None:
    body = {"name": name, "schedule": at, "payload": f"Say {name}."}
    made = client.post(f"/v0/agents/{agent['agentId']}/tasks", json=body)
    assert made.status_code == 201, made.text


def ended(server: ServerProcess, agent: dict[str, Any], *names: str) -> dict[str, list[dict[str, Any]]]:
    """Return all runs once these tasks ran and none is running."""
    runs = runs_of(server, agent)
    ran = all(runs.get(name) for name in names)
    return runs if ran and all(run["status"] != "running" for each in runs.values() for run in each) else {}


def test_tasks_of_many_agents_run_once_and_in_time_though_the_server_is_killed(tmp_path: Path) -> None:
    with up(tmp_path / "data", "--no-first-agent") as server:
        agents = [server.create(f"a{number}", "hermes") for number in range(AGENTS)]
        due = datetime.now(UTC) + timedelta(seconds=AHEAD)
        with server.client() as client, ThreadPoolExecutor(AGENTS) as hands:
            names = [(agent, name) for agent in agents for name in NAMES]
            for made in [hands.submit(create_task, client, agent, name, due.isoformat()) for agent, name in names]:
                made.result()
        assert datetime.now(UTC) < due, "the tasks were not made in time for their time"
        server.kill()
        until(lambda: datetime.now(UTC) > due + timedelta(seconds=1))
        server.start()
        for agent in agents:
            runs = until(partial(ended, server, agent, *NAMES), every=0.5)
            assert sorted(runs) == list(NAMES)
            for name, each in runs.items():
                assert [run["status"] for run in each] == ["ok"], (name, each)
                late = datetime.fromisoformat(each[0]["startedAt"]) - due
                assert timedelta(0) <= late < timedelta(seconds=5), (name, late)
        check_missed_task(server, agents[0])


def check_missed_task(server: ServerProcess, agent: dict[str, Any]) -> None:
    """A task that was due while the agent was down runs once after its start."""
    with server.client() as client:
        create_task(client, agent, "missed", (datetime.now(UTC) + timedelta(seconds=2)).isoformat())
        create_task(client, agent, "later", (datetime.now(UTC) + timedelta(hours=1)).isoformat())
        due = datetime.now(UTC) + timedelta(seconds=2)
    server.stop()
    until(lambda: datetime.now(UTC) > due)
    server.start()
    runs = until(partial(ended, server, agent, "missed"), every=0.5)
    assert [len(runs["missed"]), len(runs["later"])] == [1, 0], json.dumps(runs)
    (later,) = (task for task in tasks_of(server, agent) if task["name"] == "later")
    assert later["enabled"]
