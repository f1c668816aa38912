"""Tasks over HTTP: shapes, statuses, exact messages, limits and races (cases H1 to H3, B3)."""

import asyncio
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.server import RunningServer

GOOD: dict[str, Any] = {"name": "report", "schedule": "0 9 * * 1-5 Europe/Berlin", "payload": "Write the report."}
RECORD = {
    *("id", "jobId", "name", "description", "enabled", "running", "schedule", "payload", "delivery"),
    *("sessionTarget", "wakeMode", "createdAt", "nextRunAt", "lastRunAt", "lastStatus", "lastError"),
}
TASKS = "/v0/tasks"


@pytest.fixture(scope="module")
async def record(server: RunningServer) -> dict[str, Any]:
    return await an_agent(server, "one")


@pytest.fixture
async def agent(server: RunningServer, record: dict[str, Any]) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client of one agent's own address; the agent has no tasks."""
    client = server.agent_client(record)
    yield client
    for task in (await client.get(TASKS)).json()["tasks"]:
        assert (await client.delete(f"{TASKS}/{task['id']}")).status_code == 200


async def an_agent(server: RunningServer, name: str) -> dict[str, Any]:
    return (await server.client(server.key()).post("/v0/agents", json={"name": name})).json()["agent"]


async def create(agent: httpx.AsyncClient, **fields: object) -> dict[str, Any]:
    answer = await agent.post(TASKS, json={**GOOD, **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()["task"]


async def show(agent: httpx.AsyncClient, task: dict[str, Any]) -> dict[str, Any]:
    return (await agent.get(f"{TASKS}/{task['id']}")).json()["task"]


async def wait_for_runs(agent: httpx.AsyncClient, task: dict[str, Any], count: int = 1) -> list[dict[str, Any]]:
    """Return the runs once there are that many and none is running."""
    end = time.monotonic() + 30
    while True:
        runs = (await agent.get(f"{TASKS}/{task['id']}/runs")).json()["runs"]
        if len(runs) >= count and all(run["status"] != "running" for run in runs):
            return runs
        assert time.monotonic() < end, runs
        await asyncio.sleep(0.05)


def in_seconds(seconds: float) -> str:
    return (datetime.now(UTC) + timedelta(seconds=seconds)).isoformat()


async def test_a_task_from_beginning_to_end(
    server: RunningServer, agent: httpx.AsyncClient, record: dict[str, Any]
) -> None:
    made = await agent.post(TASKS, json=GOOD)
    assert made.status_code == 201
    assert made.json()["success"] is True
    task = made.json()["task"]
    assert made.json()["jobId"] == task["id"] == task["jobId"]
    assert set(task) == RECORD
    assert task["schedule"]["kind"] == "cron"
    assert (task["schedule"]["expr"], task["schedule"]["tz"]) == ("0 9 * * 1-5", "Europe/Berlin")
    assert (task["payload"]["kind"], task["payload"]["message"]) == ("agentTurn", "Write the report.")
    assert (task["enabled"], task["delivery"]["mode"], task["sessionTarget"]) == (True, "none", "isolated")
    assert task["nextRunAt"].endswith("Z")

    listed = (await server.client(server.key()).get(f"/v0/agents/{record['agentId']}/tasks")).json()
    assert listed["tasks"] == listed["jobs"] == [task]
    assert await show(agent, task) == task

    changed = await agent.put(f"{TASKS}/{task['id']}", json={"schedule": "every 10m", "description": "often"})
    assert changed.json()["task"]["schedule"]["everyMs"] == 600_000
    assert changed.json()["task"]["name"] == "report"
    assert changed.json()["task"]["description"] == "often"

    assert (await agent.delete(f"{TASKS}/{task['id']}")).json() == {"success": True, "message": "Task deleted"}
    gone = await agent.get(f"{TASKS}/{task['id']}")
    assert (gone.status_code, gone.json()) == (404, {"error": "Task not found"})


@pytest.mark.parametrize(
    "wrong",
    [
        {"name": None},
        {"name": ""},
        {"name": "  "},
        {"name": "x" * 101},
        {"name": 7},
        {"name": "a\0b"},
        {"schedule": None},
        {"schedule": ""},
        {"schedule": "tomorrow"},
        {"schedule": "* * * * * *"},
        {"schedule": "*/10 * * * * *"},
        {"schedule": "0 0 30 2 *"},
        {"schedule": "61 * * * *"},
        {"schedule": "every 30s"},
        {"schedule": "every 0m"},
        {"schedule": "every 999999999d"},
        {"schedule": "9999-12-31T00:00:00Z"},
        {"schedule": "2001-01-01T00:00:00Z"},
        {"schedule": "2027-02-30T00:00:00Z"},
        {"schedule": "0 9 * * * Nowhere/City"},
        {"schedule": "0 9 * * * ../../etc/passwd"},
        {"schedule": {}},
        {"schedule": []},
        {"schedule": {"kind": "at", "at": 5}},
        {"schedule": {"kind": "every", "everyMs": 59_999}},
        {"schedule": {"kind": "every", "everyMs": True}},
        {"schedule": {"kind": "cron", "expr": "* * * * * *"}},
        {"schedule": {"kind": "cron", "expr": "0 9 * * *", "tz": 5}},
        {"schedule": {"kind": "cron", "expr": "0 9 * * *", "staggerMs": -1}},
        {"payload": None},
        {"payload": ""},
        {"payload": 5},
        {"payload": {"kind": "command", "argv": ["id"]}},
        {"payload": {"kind": "agentTurn"}},
        {"payload": {"kind": "agentTurn", "message": "a", "timeoutSeconds": 0}},
        {"payload": {"kind": "systemEvent", "message": "a"}},
        {"payload": "x" * 16_001},
        {"enabled": "yes"},
        {"delivery": {"mode": "webhook"}},
        {"delivery": {"mode": "webhook", "to": "file:///etc/passwd"}},
        {"delivery": {"mode": "pigeon"}},
        {"sessionTarget": "main"},
        {"wakeMode": "later"},
    ],
    ids=str,
)
async def test_malformed_tasks_are_refused(agent: httpx.AsyncClient, wrong: dict[str, Any]) -> None:
    answer = await agent.post(TASKS, json={**GOOD, **wrong})
    assert (answer.status_code, answer.json()) == (400, {"error": "Invalid parameters"})


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"7", b'"x"', b"null"])
async def test_a_body_that_is_no_object_is_400(agent: httpx.AsyncClient, content: bytes) -> None:
    task = await create(agent)
    for method, path in (("POST", TASKS), ("PUT", f"{TASKS}/{task['id']}")):
        answer = await agent.request(method, path, content=content, headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()) == (400, {"error": "Invalid parameters"})


async def test_a_change_is_judged_like_a_new_one(agent: httpx.AsyncClient) -> None:
    task = await create(agent)
    for wrong in ({"schedule": "* * * * * *"}, {"name": ""}, {"payload": {}}):
        answer = await agent.put(f"{TASKS}/{task['id']}", json=wrong)
        assert (answer.status_code, answer.json()) == (400, {"error": "Invalid parameters"})
    toggled = await agent.post(f"{TASKS}/{task['id']}/toggle", json={"enabled": "no"})
    assert (toggled.status_code, toggled.json()) == (400, {"error": "Invalid parameters"})
    assert await show(agent, task) == task


async def test_the_limit_holds_under_parallel_creates(agent: httpx.AsyncClient) -> None:
    answers = await asyncio.gather(*(agent.post(TASKS, json={**GOOD, "name": f"t{n}"}) for n in range(30)))
    refused = [answer for answer in answers if answer.status_code != 201]
    assert len(refused) == 10
    assert {(answer.status_code, answer.text) for answer in refused} == {
        (400, '{"error":"An agent can have at most 20 tasks"}')
    }
    assert len((await agent.get(TASKS)).json()["tasks"]) == 20


async def test_toggle_says_it_or_flips(agent: httpx.AsyncClient) -> None:
    task = await create(agent)
    toggle = f"{TASKS}/{task['id']}/toggle"
    assert (await agent.post(toggle)).json()["task"]["enabled"] is False
    assert (await agent.get(f"{TASKS}?includeDisabled=false")).json()["tasks"] == []
    assert len((await agent.get(TASKS)).json()["tasks"]) == 1
    assert (await agent.post(toggle)).json()["task"]["enabled"] is True
    for _ in range(2):
        off = (await agent.post(toggle, json={"enabled": False})).json()["task"]
        assert (off["enabled"], off["nextRunAt"]) == (False, None)
    flips = await asyncio.gather(*(agent.post(toggle) for _ in range(20)))
    assert [answer.status_code for answer in flips] == [200] * 20
    assert (await show(agent, task))["enabled"] is False


async def test_run_now_a_hundred_times_is_one_run_at_a_time(agent: httpx.AsyncClient) -> None:
    task = await create(agent, payload="wait 0.3")
    answers = await asyncio.gather(*(agent.post(f"{TASKS}/{task['id']}/run") for _ in range(100)))
    begun = [answer for answer in answers if answer.status_code == 200]
    assert {answer.text for answer in answers if answer.status_code != 200} == {'{"error":"Task is running"}'}
    assert {answer.status_code for answer in answers} == {200, 409}
    assert len(await wait_for_runs(agent, task)) == len(begun)
    runs = (await agent.get(f"{TASKS}/{task['id']}/runs?limit=1")).json()
    assert runs["runs"] == runs["entries"]
    assert len(runs["runs"]) == 1


async def test_a_run_leaves_its_outcome(agent: httpx.AsyncClient) -> None:
    good, bad = await create(agent, payload="hello"), await create(agent, payload="fail")
    for task in (good, bad):
        started = await agent.post(f"{TASKS}/{task['id']}/run")
        assert started.json() == {"success": True, "jobId": task["id"], "message": "Task started"}
    (run,) = await wait_for_runs(agent, good)
    assert set(run) == {"id", "status", "startedAt", "durationMs", "summary", "error"}
    assert (run["status"], run["error"]) == ("ok", None)
    assert run["summary"]
    (run,) = await wait_for_runs(agent, bad)
    assert (run["status"], run["summary"], run["error"]) == ("error", None, "it was told to fail")
    after = await show(agent, bad)
    assert (after["lastStatus"], after["lastError"], after["running"]) == ("error", "it was told to fail", False)
    assert after["lastRunAt"] == run["startedAt"]


async def test_a_time_that_was_is_not_turned_on_again(agent: httpx.AsyncClient) -> None:
    task = await create(agent, schedule=in_seconds(0.5))
    await wait_for_runs(agent, task)
    over = await show(agent, task)
    assert (over["enabled"], over["nextRunAt"], over["lastStatus"]) == (False, None, "ok")
    again = await agent.post(f"{TASKS}/{task['id']}/toggle")
    assert (again.status_code, again.json()) == (400, {"error": "Invalid parameters"})
    later = await agent.put(f"{TASKS}/{task['id']}", json={"schedule": in_seconds(3600), "enabled": True})
    assert later.json()["task"]["enabled"] is True


async def test_a_task_of_another_agent_is_not_found(server: RunningServer, agent: httpx.AsyncClient) -> None:
    task = await create(agent)
    other = server.agent_client(await an_agent(server, "two"))
    for task_id in (task["id"], "x" * 65, "%2e%2e", "nothing"):
        for method, path in (
            ("GET", ""),
            ("PUT", ""),
            ("DELETE", ""),
            ("POST", "/run"),
            ("POST", "/toggle"),
            ("GET", "/runs"),
        ):
            answer = await other.request(method, f"{TASKS}/{task_id}{path}", json={"name": "theirs"})
            assert answer.status_code == 404, (method, path, answer.text)
    assert await show(agent, task) == task


async def test_a_gateway_that_is_not_there_fails_in_the_contracts_words(server: RunningServer) -> None:
    record = await an_agent(server, "three")
    client = server.agent_client(record)
    task = await create(client)
    warden = server.roost.agents.registry.runtimes.get_warden(record["agentId"])
    pid = (await warden.processes())["gateway"].pid
    await warden.exec(["kill", "-STOP", str(pid)])
    listing, making = await asyncio.gather(client.get(TASKS), client.post(TASKS, json=GOOD))
    assert (listing.status_code, listing.json()) == (500, {"error": "Failed to list cron jobs"})
    assert (making.status_code, making.json()) == (500, {"error": "Failed to create cron job"})
    await warden.exec(["kill", "-CONT", str(pid)])
    assert (await client.get(TASKS)).status_code == 200
    await warden.stop("gateway")
    for method, path, message in (
        ("GET", "", "Failed to list cron jobs"),
        ("POST", "", "Failed to create cron job"),
        ("GET", f"/{task['id']}", "CLI error"),
        ("PUT", f"/{task['id']}", "CLI error"),
        ("DELETE", f"/{task['id']}", "CLI error"),
        ("POST", f"/{task['id']}/run", "CLI error"),
        ("POST", f"/{task['id']}/toggle", "CLI error"),
        ("GET", f"/{task['id']}/runs", "CLI error"),
    ):
        answer = await client.request(method, f"{TASKS}{path}", json=GOOD)
        assert (answer.status_code, answer.json()) == (500, {"error": message})
