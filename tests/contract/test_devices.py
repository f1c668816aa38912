"""Devices over HTTP, with a real gateway in a real container: shapes, statuses, exact messages (case H6)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.server import RunningServer, running


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("d") / "data") as made:
        yield made


async def new_agent(server: RunningServer) -> tuple[dict[str, Any], httpx.AsyncClient]:
    made = await server.client(server.key()).post("/v0/agents", json={"name": "a"})
    assert made.status_code == 201, made.text
    return made.json()["agent"], server.agent_client(made.json()["agent"])


@pytest.fixture
async def agent(server: RunningServer) -> AsyncIterator[httpx.AsyncClient]:
    """Return a client of the address of an agent that has no devices."""
    made, client = await new_agent(server)
    yield client
    await server.client(server.key()).delete(f"/v0/agents/{made['agentId']}")


async def connect_device(agent: httpx.AsyncClient, name: str, **more: object) -> httpx.Response:
    """Connect as a device does: to the agent's address, with the gateway token."""
    return await agent.post("/devices/connect", json={"deviceId": name, **more})


async def devices(agent: httpx.AsyncClient) -> dict[str, Any]:
    answer = await agent.get("/v0/devices")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_an_agent_that_no_device_has_met(agent: httpx.AsyncClient) -> None:
    assert await devices(agent) == {"pending": [], "paired": [], "supported": True, "message": None}
    everyone = await agent.post("/v0/devices/approve-all")
    assert everyone.json() == {"approved": [], "failed": [], "message": "0 approved"}


async def test_a_device_waits_is_approved_and_comes_in(agent: httpx.AsyncClient) -> None:
    refused = await connect_device(agent, "phone", platform="ios", scopes=["operator.read"])
    assert refused.status_code == 403
    pending = (await devices(agent))["pending"]
    assert len(pending) == 1
    assert pending[0]["requestedAt"].endswith("Z")
    shown = {key: value for key, value in pending[0].items() if value is not None and key != "requestedAt"}
    request_id = refused.json()["requestId"]
    assert shown == {
        "requestId": request_id,
        "status": "pending",
        "deviceId": "phone",
        "platform": "ios",
        "scopes": ["operator.read"],
        "isRepair": False,
        "remoteIp": "192.0.0.8",  # a client on this machine is not local to the gateway
    }
    approved = await agent.post(f"/v0/devices/{request_id}/approve")
    assert approved.json() == {"success": True, "requestId": request_id, "message": "Device approved"}
    assert (await connect_device(agent, "phone")).status_code == 200
    found = await devices(agent)
    assert found["pending"] == []
    assert [(row["deviceId"], row["status"]) for row in found["paired"]] == [("phone", "paired")]
    assert found["paired"][0]["lastSeenAt"] >= found["paired"][0]["pairedAt"]
    again = await agent.post(f"/v0/devices/{request_id}/approve")
    assert (again.status_code, again.json()) == (404, {"error": "Device request not found"})


@pytest.mark.parametrize("request_id", ["0" * 36, "x", "..", "-rf", "a b", "%2e%2e%2fx", "x" * 5000, "\u202ex", "a%00"])
async def test_a_request_that_there_is_not(agent: httpx.AsyncClient, request_id: str) -> None:
    await connect_device(agent, "phone")
    answer = await agent.post(f"/v0/devices/{request_id}/approve")
    assert answer.status_code in {400, 404}
    assert list(answer.json()) == ["error"]
    assert len((await devices(agent))["pending"]) == 1


async def test_a_request_of_another_agent(server: RunningServer, agent: httpx.AsyncClient) -> None:
    request_id = (await connect_device(agent, "phone")).json()["requestId"]
    _, other = await new_agent(server)
    answer = await other.post(f"/v0/devices/{request_id}/approve")
    assert (answer.status_code, answer.json()) == (404, {"error": "Device request not found"})
    assert [row["requestId"] for row in (await devices(agent))["pending"]] == [request_id]


async def test_approve_all_takes_those_that_waited_at_the_call(agent: httpx.AsyncClient) -> None:
    waiting = [(await connect_device(agent, f"d{number}")).json()["requestId"] for number in range(8)]
    answers = await asyncio.gather(
        agent.post("/v0/devices/approve-all"), *(connect_device(agent, f"late{number}") for number in range(8))
    )
    done = answers[0].json()
    assert set(waiting) <= set(done["approved"])
    assert done["failed"] == []
    assert done["message"] == f"{len(done['approved'])} approved"
    after = await devices(agent)
    assert len(after["paired"]) == len(done["approved"])
    assert len(after["pending"]) == 16 - len(done["approved"])


async def test_twice_at_once_is_once(agent: httpx.AsyncClient) -> None:
    request_id = (await connect_device(agent, "phone")).json()["requestId"]
    answers = await asyncio.gather(*(agent.post(f"/v0/devices/{request_id}/approve") for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, 404, 404, 404, 404, 404]
    assert len((await devices(agent))["paired"]) == 1


async def test_who_comes_through_the_edge_approves_nobody_past_the_platform(agent: httpx.AsyncClient) -> None:
    request_id = (await connect_device(agent, "phone")).json()["requestId"]
    for headers in ({}, {"X-Forwarded-For": "127.0.0.1"}, {"X-Forwarded-For": ""}):
        answer = await agent.post("/devices/approve", json={"requestId": request_id}, headers=headers)
        assert answer.status_code == 403
        assert (await agent.post("/devices/connect", json={"deviceId": "d"}, headers=headers)).status_code == 403


async def test_description_of_a_device_is_sanitized(agent: httpx.AsyncClient) -> None:
    name = "\x1b[31m\u202eevil\n" + "x" * 5000
    await connect_device(agent, "phone", displayName=name, platform=["x"], scopes=[1, "ok", None] * 1000, remoteIp=7)
    pending = (await devices(agent))["pending"][0]
    assert pending["displayName"].startswith("\ufffdevil\ufffdxxx")
    assert len(pending["displayName"]) <= 200
    assert pending["platform"] is None
    assert set(pending["scopes"]) == {"ok"}


async def test_the_management_address_and_the_tenants_key_do_as_well(server: RunningServer) -> None:
    made, agent = await new_agent(server)
    request_id = (await connect_device(agent, "phone")).json()["requestId"]
    api = server.client(server.key())
    path = f"/v0/agents/{made['agentId']}/devices"
    assert (await api.get(path)).json()["pending"][0]["requestId"] == request_id
    assert (await api.post(f"{path}/{request_id}/approve")).status_code == 200


async def test_a_gateway_that_is_gone_is_a_cli_error(server: RunningServer) -> None:
    made, agent = await new_agent(server)
    request_id = (await connect_device(agent, "phone")).json()["requestId"]
    await server.roost.agents.registry.runtimes.get_warden(made["agentId"]).stop("gateway")
    for answer in (
        await agent.get("/v0/devices"),
        await agent.post(f"/v0/devices/{request_id}/approve"),
        await agent.post("/v0/devices/approve-all"),
    ):
        assert (answer.status_code, answer.json()) == (500, {"error": "CLI error"})


async def test_a_container_that_is_gone_is_a_cli_error(server: RunningServer) -> None:
    made, agent = await new_agent(server)
    await server.roost.drivers.runtime.stop(made["agentId"])
    answer = await agent.get("/v0/devices")
    assert (answer.status_code, answer.json()) == (500, {"error": "CLI error"})


async def test_an_agent_that_there_is_not(server: RunningServer) -> None:
    answer = await server.client(server.key()).get(f"/v0/agents/{'x' * 16}/devices")
    assert answer.status_code == 404
