"""Concurrency: mixed operations on a few agents, restart storms, commands during a restart (B5, J1)."""

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.drivers.engine.fake.driver import FakeEngine
from tests.support.server import RunningServer, running

CONTRACTS_500 = {"Gateway failed to start", "Restart failed", "Execution failed", "Delete failed"}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RunningServer]:
    async with running(tmp_path / "data") as server:
        yield server


async def create(api: httpx.AsyncClient, name: str) -> dict[str, Any]:
    answer = await api.post("/v0/agents", json={"name": name})
    assert answer.status_code == 201, answer.text
    return answer.json()["agent"]


async def containers(server: RunningServer) -> set[str]:
    return {container.agent_id for container in await server.roost.drivers.runtime.list()}


async def wait_until_settled(server: RunningServer, api: httpx.AsyncClient) -> set[str]:
    """Return the agents once all are running; check that each container belongs to one of them."""
    async with asyncio.timeout(60):
        while True:
            agents = (await api.get("/v0/agents")).json()["agents"]
            ids = {agent["agentId"] for agent in agents}
            if all(agent["status"] == "running" for agent in agents) and await containers(server) == ids:
                return ids
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("seed", [1, 2])
async def test_fifty_mixed_operations_on_three_agents(server: RunningServer, seed: int) -> None:
    chance = random.Random(seed)
    api = server.client(server.key())
    agents = [(await create(api, f"n{i}"))["agentId"] for i in range(3)]
    doomed = chance.sample(agents, 2)

    def operation(number: int) -> tuple[str, str, Any]:
        path = f"/v0/agents/{chance.choice(agents)}"
        choices = [
            ("POST", f"{path}/restart", {}),
            ("POST", f"{path}/console/exec", {"command": "sleep 0.1; echo x"}),
            ("GET", path, None),
            ("GET", f"{path}/logs", None),
            ("POST", f"{path}/gateway-token/rotate", None),
            ("GET", f"{path}/files?path=uploads/a", None),
            ("POST", f"{path}/files/upload", {"filename": "a", "contentBase64": "YQ=="}),
            ("POST", "/v0/agents", {"name": f"new{number}"}),
        ]
        if number % 12 == 11:
            return "DELETE", f"/v0/agents/{doomed[number % 2]}", None
        return chance.choice(choices)

    async def go(method: str, path: str, body: Any) -> tuple[str, str, httpx.Response]:
        await asyncio.sleep(chance.random())  # spreads the requests
        return method, path, await api.request(method, path, json=body)

    answers = await asyncio.gather(*(go(*operation(number)) for number in range(50)))
    for method, path, answer in answers:
        assert answer.status_code in {200, 201, 400, 404, 503, 500}, (method, path, answer.text)
        if answer.status_code == 500:
            assert answer.json()["error"] in CONTRACTS_500, (method, path, answer.text)
    made = {answer.json()["agent"]["agentId"] for method, _, answer in answers if answer.status_code == 201}
    deleted = {
        path.rsplit("/", 1)[1] for method, path, answer in answers if method == "DELETE" and answer.status_code == 200
    }
    assert await wait_until_settled(server, api) == (set(agents) | made) - deleted
    folders = {folder.name for folder in (server.roost.core.settings.data / "agents").iterdir()}
    assert folders == (set(agents) | made) - deleted


async def test_restarts_do_not_queue_up(server: RunningServer) -> None:
    api = server.client(server.key())
    agent = await create(api, "a")
    other = await create(api, "b")
    path = f"/v0/agents/{agent['agentId']}"
    storm = [asyncio.create_task(api.post(f"{path}/restart")) for _ in range(100)]
    beside = await api.post(f"/v0/agents/{other['agentId']}/console/exec", json={"command": "echo fine"})
    assert beside.json()["stdout"] == "fine\n"
    answers = await asyncio.gather(*storm)
    assert {answer.status_code for answer in answers} == {200}
    logs = (await api.get(f"{path}/logs")).json()["logs"]
    assert logs.count("fake gateway 1.0.0 starts") < 10  # requests during a restart share the next one
    assert await wait_until_settled(server, api) == {agent["agentId"], other["agentId"]}


async def test_a_delete_in_a_restart_storm_is_the_end_of_it(server: RunningServer) -> None:
    api = server.client(server.key())
    agent = await create(api, "a")
    path = f"/v0/agents/{agent['agentId']}"
    storm = [asyncio.create_task(api.post(f"{path}/restart")) for _ in range(30)]
    await asyncio.sleep(0)
    assert (await api.delete(path)).status_code == 200
    for answer in await asyncio.gather(*storm):
        assert answer.status_code in {200, 404, 500}
        assert answer.status_code != 500 or answer.json() == {"error": "Restart failed"}
    assert await wait_until_settled(server, api) == set()


async def test_two_deletes_are_one(server: RunningServer) -> None:
    api = server.client(server.key())
    path = f"/v0/agents/{(await create(api, 'a'))['agentId']}"
    answers = await asyncio.gather(*(api.delete(path) for _ in range(10)))
    assert sorted(answer.status_code for answer in answers) == [200] + [404] * 9


async def test_commands_while_the_container_is_recreated(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.install("1.1.0", lambda *_: None)
    async with running(tmp_path / "data", engines=[engine]) as server:
        api = server.client(server.key())
        agent = await create(api, "a")
        path = f"/v0/agents/{agent['agentId']}"
        versions = ["1.1.0", "1.0.0", "1.1.0"]
        if agent["agentVersion"] == "1.1.0":
            versions = ["1.0.0", "1.1.0", "1.0.0"]

        async def commands() -> set[int]:
            seen: set[int] = set()
            while not done.is_set():
                seen.add((await api.post(f"{path}/console/exec", json={"command": "sleep 0.05; echo x"})).status_code)
            return seen

        done = asyncio.Event()
        running_on = [asyncio.create_task(commands()) for _ in range(5)]
        for version in versions:
            assert (await api.post(f"{path}/restart", json={"version": version})).status_code == 200
        done.set()
        seen = set().union(*await asyncio.gather(*running_on))
        assert seen <= {200, 503}
        assert (await api.get(path)).json()["agent"]["agentVersion"] == versions[-1]
        assert (await api.post(f"{path}/console/exec", json={"command": "true"})).status_code == 200


async def test_a_container_that_is_lost_is_said_so_and_replaced(server: RunningServer) -> None:
    api = server.client(server.key())
    agent = await create(api, "a")
    await server.roost.drivers.runtime.stop(agent["agentId"], grace=0)  # like a crash of the container
    path = f"/v0/agents/{agent['agentId']}"
    for method, end, body in (
        ("POST", "/console/exec", {"command": "true"}),
        ("GET", "/files?path=x", None),
        ("POST", "/files/upload", {"filename": "a", "contentBase64": "YQ=="}),
    ):
        answer = await api.request(method, path + end, json=body)
        assert answer.status_code in {200, 404, 500, 503}, answer.text
        assert answer.status_code != 500 or answer.json()["error"] in CONTRACTS_500
    assert (await api.get(path)).status_code == 200
    assert (await api.get(f"{path}/logs")).status_code == 200
    assert (await server.client().get("/healthz")).status_code == 200
    assert await wait_until_settled(server, api) == {agent["agentId"]}
