"""Domains of agents, with real programs in real containers and a real name server (contract: Routes and domains)."""

import json
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from roost.identity.caller import Plan
from tests.conformance.name_server import NameServer
from tests.contract.test_routes import create
from tests.support.server import RunningServer, running

pytestmark = pytest.mark.container
ON_SERVICES = {"test_a_custom_domain_from_registration_to_removal"}


async def call(
    client: httpx.AsyncClient, method: str, agent: dict[str, Any], path: str = "", body: Any = None, status: int = 200
) -> Any:
    answer = await client.request(method, f"/v0/agents/{agent['agentId']}/domains{path}", json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


async def register(client: httpx.AsyncClient, agent: dict[str, Any], status: int = 201, **fields: Any) -> Any:
    answer = await call(client, "POST", agent, body=fields, status=status)
    return answer["domain"] if status == 201 else answer["error"]


async def set_challenge(client: httpx.AsyncClient, agent: dict[str, Any], names: NameServer, domain: str) -> None:
    challenge = await call(client, "POST", agent, "/challenge", {"customDomain": domain})
    names.set_texts(challenge["name"], ["something else"], [challenge["value"]])


async def test_a_custom_domain_from_registration_to_removal(
    server: RunningServer, tenant: str, names: NameServer
) -> None:
    client = server.client(server.key(tenant))
    agent = await create(client, 3000)
    name = "app.example.com"
    made = await register(client, agent, customDomain="App.Example.com.", targetPort=3000, protected=False)
    assert made["status"] == "pending_ownership"
    assert (made["domain"], made["customDomain"], made["subdomain"], made["targetPort"]) == (name, name, None, 3000)
    challenge = await call(client, "POST", agent, "/challenge", {"customDomain": name})
    assert (challenge["type"], challenge["name"]) == ("TXT", f"_roost-verify.{name}")
    assert made["reason"] == f"Add the TXT record {challenge['name']} with the value {challenge['value']}"
    visitor = server.client(host=name)
    assert (await visitor.get("/")).status_code == 404
    refused = await call(client, "POST", agent, f"/{made['id']}/verify", status=400)
    assert challenge["value"] in refused["error"]

    await set_challenge(client, agent, names, name)
    verified = (await call(client, "POST", agent, f"/{made['id']}/verify"))["domain"]
    assert (verified["status"], verified["reason"]) == ("active", None)
    got = (await visitor.get("/v0/agents?token=mine", headers={"Authorization": "Bearer of-the-program"})).json()
    assert (got["path"], got["port"]) == ("/v0/agents?token=mine", 3000)  # all paths are the program's
    assert got["headers"]["host"] == f"{name}:{server.port}"

    changed = await call(client, "PUT", agent, f"/{made['id']}", {"protected": True})
    assert changed["domain"]["protected"] is True
    assert (await visitor.get("/")).status_code == 401
    got = (await visitor.get("/", headers={"Authorization": f"Bearer {agent['gatewayToken']}"})).json()
    assert agent["gatewayToken"] not in json.dumps(got)
    assert (await call(client, "GET", agent))["domains"] == [changed["domain"]]
    await call(client, "DELETE", agent, f"/{made['id']}")
    assert (await visitor.get("/")).status_code == 404
    await call(client, "DELETE", agent, f"/{made['id']}", status=404)


async def test_a_subdomain_leads_to_the_gateway(server: RunningServer, tenant: str) -> None:
    client = server.client(server.key(tenant))
    agent = (await client.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
    made = await register(server.agent_client(agent), agent, subdomain="Ada-Home")
    assert (made["domain"], made["status"]) == ("ada-home.agents.localhost", "active")
    assert made["url"] == f"http://ada-home.agents.localhost:{server.port}"
    visitor = server.client(host="ada-home.agents.localhost")
    assert (await visitor.get("/v1/models")).status_code == 401
    answer = await visitor.get("/v1/models", headers={"Authorization": f"Bearer {agent['gatewayToken']}"})
    direct = await server.agent_client(agent).get("/v1/models")
    assert (answer.status_code, answer.text) == (direct.status_code, direct.text)
    other = server.client(server.key(f"{tenant}-2"))
    theirs = (await other.post("/v0/agents", json={"name": "Bob"})).json()["agent"]
    assert await register(other, theirs, 409, subdomain="ada-home") == "Domain already registered"
    token = {"Authorization": f"Bearer {theirs['gatewayToken']}"}
    assert (await visitor.get("/v1/models", headers=token)).status_code == 401

    assert (await client.delete(f"/v0/agents/{agent['agentId']}")).status_code < 300
    assert (await visitor.get("/v1/models", headers=token)).status_code == 401  # as for an unknown agent
    await register(other, theirs, subdomain="ada-home")


async def test_streams_end_when_their_domain_goes(server: RunningServer, tenant: str) -> None:
    client = server.client(server.key(tenant))
    agent = await create(client, 3000)
    made = await register(client, agent, subdomain="streams", port=3000, protected=False)
    address = f"ws://streams.agents.localhost:{server.port}/ws"
    visitor = server.client(host="streams.agents.localhost")
    async with connect(address, host="127.0.0.1", port=server.port, proxy=None) as websocket:
        assert await websocket.recv() == "hello"
        async with visitor.stream("GET", "/stream") as stream:
            lines = stream.aiter_lines()
            assert await anext(lines) == "data: tick"
            began = time.monotonic()
            await call(client, "DELETE", agent, f"/{made['id']}")
            with pytest.raises(httpx.HTTPError):
                async for _ in lines:
                    pass
            with pytest.raises(ConnectionClosed):
                await websocket.recv()
            assert time.monotonic() - began < 5


async def test_a_domain_whose_record_vanished_can_be_claimed(
    server: RunningServer, tenant: str, names: NameServer
) -> None:
    first, second = (server.client(server.key(f"{tenant}-{number}")) for number in range(2))
    mine = (await first.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
    theirs = (await second.post("/v0/agents", json={"name": "Bob"})).json()["agent"]
    name = "moving.example.com"
    made = await register(first, mine, customDomain=name)
    await set_challenge(first, mine, names, name)
    await call(first, "POST", mine, f"/{made['id']}/verify")
    assert await register(second, theirs, 409, customDomain=name) == "Domain already registered"
    names.set_texts(f"_roost-verify.{name}")
    for _ in range(3):
        await server.roost.domains.domains.check_ownership(timedelta(seconds=-1))
    found = (await call(first, "GET", mine))["domains"][0]
    assert found["status"] == "pending_ownership"
    assert found["reason"].startswith("The TXT record was removed")
    claimed = await register(second, theirs, customDomain=name)
    await set_challenge(second, theirs, names, name)
    assert (await call(second, "POST", theirs, f"/{claimed['id']}/verify"))["domain"]["status"] == "active"
    await set_challenge(first, mine, names, name)
    assert (await call(first, "POST", mine, f"/{made['id']}/verify", status=409))["error"]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "exactly one of"),
        ({"subdomain": "ada", "customDomain": "ada.example.com"}, "exactly one of"),
        ({"subdomain": "api"}, "reserved"),
        ({"subdomain": "my-r00st"}, "reserved word"),
        ({"subdomain": "a.b"}, "must be 3 to 63"),
        ({"customDomain": "xn--rost-5qa.example.com"}, "reserved word"),
        ({"customDomain": "agents.localhost."}, "must not be localhost or a part of it"),
        ({"customDomain": "127.0.0.1"}, "must be a name"),
        ({"customDomain": "*.example.com"}, "no valid name"),
        ({"customDomain": "co.uk"}, "public suffix"),
        ({"customDomain": f"{'a' * 60}." * 5 + "com"}, "must be a name"),
        ({"subdomain": "ada", "port": 80}, "port must be"),
        ({"subdomain": "ada", "protected": False}, "must be protected"),
        ({"subdomain": "ada", "protected": "no"}, "protected"),
        ({"subdomain": "x" * 2000}, "at most 1000"),
    ],
)
async def test_names_that_are_refused(
    server: RunningServer, agent: dict[str, Any], fields: dict[str, Any], words: str
) -> None:
    client = server.agent_client(agent)
    answer = await client.post("/v0/domains", json=fields)
    assert answer.status_code == 400, answer.text
    assert words in answer.json()["error"]
    assert (await client.get("/v0/domains")).json() == {"domains": []}


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> dict[str, Any]:
    return (await server.client(server.key("domains")).post("/v0/agents", json={"name": "Ada"})).json()["agent"]


async def test_five_domains_and_the_free_plan(server: RunningServer, tenant: str) -> None:
    client = server.client(server.key(tenant, Plan.FREE))
    agent = (await client.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
    assert await register(client, agent, 403, customDomain="a.example.com") == "Custom domains need the paid plan"
    for number in range(5):
        await register(client, agent, subdomain=f"five-{number}")
    assert "5 domains" in await register(client, agent, 400, subdomain="six")
    missing = "/00000000-0000-4000-8000-000000000000"
    await call(client, "PUT", agent, missing, {"port": 3000}, 404)
    await call(client, "POST", agent, f"{missing}/verify", status=404)


async def test_the_holder_of_an_agents_token_verifies_within_the_agents_rules(
    names: NameServer, tmp_path: Path
) -> None:
    """The names of domains go to name servers, so another's name would carry what an agent may not send."""
    settings: dict[str, Any] = {
        "ROOST_DNS_SERVERS": f"127.0.0.1:{names.port}",
        "ROOST_EGRESS_DENY_HOSTS": "denied.example",
    }
    async with running(tmp_path / "data", **settings) as server:
        client = server.client(server.key())
        agent = (await client.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
        made = await register(client, agent, customDomain="secret.denied.example", targetPort=3000)
        await set_challenge(client, agent, names, "secret.denied.example")
        path, asked = f"/{made['id']}/verify", len(names.asked)
        refused = await call(server.agent_client(agent), "POST", agent, path, status=403)
        assert refused == {"error": "secret.denied.example is refused: this deployment does not allow that host"}
        assert len(names.asked) == asked
        assert (await call(client, "POST", agent, path))["domain"]["status"] == "active"
