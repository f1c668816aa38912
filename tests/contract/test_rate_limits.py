"""Limits that are told, on every kind of address (C12), and guesses of credentials (A14).

Requests from this machine are not limited; those that a trusted proxy forwards count for its clients.
"""

from base64 import b64encode
from collections.abc import AsyncIterator
from itertools import count
from typing import Any

import httpx2 as httpx
import pytest

from roost.storage.content.model import ContentNetwork
from tests.contract.storage import keep
from tests.contract.test_domains import register
from tests.contract.test_platform import AgentEnv
from tests.contract.test_routes import create
from tests.support.server import RunningServer

CALLER, HOST, FAILURES = 5, 8, 3
SETTINGS = {
    "ROOST_TRUSTED_PROXIES": "127.0.0.0/8",
    "ROOST_RATE_LIMIT": str(CALLER),
    "ROOST_HOST_RATE_LIMIT": str(HOST),
    "ROOST_FAILED_LOGIN_LIMIT": str(FAILURES),
}
_addresses = count(1)


def remote(server: RunningServer, token: str | None = None, host: str = "agents.localhost") -> httpx.AsyncClient:
    """Return a client with an address of its own, behind the proxy."""
    client = server.client(token, host)
    client.headers["X-Forwarded-For"] = f"198.51.100.{next(_addresses)}"
    return client


@pytest.fixture
async def agent(server: RunningServer) -> AsyncIterator[dict[str, Any]]:
    api = server.client(server.key())
    made = (await api.post("/v0/agents", json={"name": "a"})).json()["agent"]
    yield made
    await api.delete(f"/v0/agents/{made['agentId']}")


async def exhaust(client: httpx.AsyncClient, path: str, most: int) -> httpx.Response:
    """Return the first 429, after at most so many answers that name what remains."""
    for _ in range(most):
        answer = await client.get(path)
        if answer.status_code == 429:
            return answer
        assert answer.status_code == 200, answer.text
        assert int(answer.headers["RateLimit-Limit"]) in {CALLER, HOST}
        assert f";r={answer.headers['RateLimit-Remaining']};" in answer.headers["RateLimit"]
    answer = await client.get(path)
    assert answer.status_code == 429
    return answer


@pytest.mark.parametrize(
    ("host", "path"),
    [
        ("agents.localhost", "/v0/agents"),
        ("agents.localhost", "/v0/llm/v1/models"),
        ("api.localhost", "/v3/files/public"),
        ("api.localhost", "/data/pinList"),
        ("localhost", "/v0/agents"),
    ],
)
async def test_a_key_has_its_limit_and_others_have_theirs(server: RunningServer, host: str, path: str) -> None:
    client = remote(server, server.key(), host)
    refusal = await exhaust(client, path, CALLER + 1)  # its first request came before it was known
    assert 0 < int(refusal.headers["Retry-After"]) <= 60
    assert refusal.headers["RateLimit-Remaining"] == "0"
    error = refusal.json()["error"]
    assert "Too many requests: the limit is 5 in 60 seconds" in (error if isinstance(error, str) else error.values())
    assert (await remote(server, client.headers["Authorization"][7:], host).get(path)).status_code == 429
    assert (await remote(server, server.key(), host).get(path)).status_code == 200
    assert {(await client.get(health)).status_code for health in ("/healthz", "/readyz")} <= {200}


async def test_an_agents_address(server: RunningServer, agent: dict[str, Any]) -> None:
    """Its programs and its platform paths share the limit of the token; visitors of other agents notice nothing."""
    own = f"{agent['agentId']}.agents.localhost"
    client = remote(server, agent["gatewayToken"], own)
    refusal = await exhaust(client, "/echo", CALLER)
    assert refusal.json() == {"error": "Too many requests: the limit is 5 in 60 seconds"}
    assert (await client.get("/v0/logs")).status_code == 429
    assert (await remote(server, agent["gatewayToken"], own).get("/v0/logs")).status_code == 429
    assert (await remote(server, host=own).get("/v0/logs")).status_code == 401
    assert (await server.agent_client(agent).get("/v0/logs")).status_code == 200


@pytest.mark.container
async def test_a_domain_has_a_limit_of_all_visitors(server: RunningServer, tenant: str) -> None:
    client = server.client(server.key(tenant))
    agent = await create(client, 3000)
    names = [
        (await register(client, agent, subdomain=name, targetPort=3000, protected=False))["domain"]
        for name in ("limited-one", "limited-two")
    ]
    answers = [await remote(server, host=names[0]).get("/") for _ in range(HOST + 1)]
    assert [answer.status_code for answer in answers] == [200] * HOST + [429]
    assert answers[-1].json() == {"error": "Too many requests to this address: the limit is 8 in 60 seconds"}
    for host in (names[1], f"{agent['agentId']}.agents.localhost"):
        assert (await remote(server, agent["gatewayToken"], host).get("/echo")).status_code == 200


async def test_a_storage_gateway_has_a_limit_of_all_visitors(server: RunningServer) -> None:
    cid = (await keep(server, "sites", ContentNetwork.PUBLIC, b"x" * 100)).cid
    rows = (await server.client(server.key("sites"), "api.localhost").get("/v3/gateways")).json()["data"]["rows"]
    host = f"{rows[0]['domain']}.gateways.localhost"
    answers = [await remote(server, host=host).get(f"/ipfs/{cid}") for _ in range(HOST + 1)]
    assert [answer.status_code for answer in answers] == [200] * HOST + [429]
    assert answers[0].headers["RateLimit-Policy"].count("q=") == 4
    assert answers[-1].text == "Too many requests to this address: the limit is 8 in 60 seconds\n"
    assert answers[-1].headers["Retry-After"]
    assert (await remote(server, host="api.localhost").get("/v3/files/public")).status_code == 401


@pytest.mark.container
async def test_an_agent_inside_is_limited_as_that_agent(server: RunningServer, agent: dict[str, Any]) -> None:
    other = (await server.client(server.key()).post("/v0/agents", json={"name": "b"})).json()["agent"]
    envs = [AgentEnv(server, one, one) for one in (agent, other)]
    statuses = [(await envs[0].request_from_container("GET", "/v0/platform/whoami"))[0] for _ in range(CALLER + 1)]
    assert (statuses[0], statuses[-1]) == (200, 429)
    assert (await envs[1].request_from_container("GET", "/v0/platform/whoami"))[0] == 200


GUESS = "rst_gw_" + "0" * 64


@pytest.mark.parametrize("way", ["gateway", "platform", "git", "sign-in"])
async def test_guesses_end_in_429_and_lock_nobody_out(server: RunningServer, agent: dict[str, Any], way: str) -> None:
    own = f"{agent['agentId']}.agents.localhost"
    guesser, path = remote(server, GUESS, own), "/v0/logs"
    if way == "gateway":
        path = "/v1/models"
    elif way == "git":
        guesser.headers["Authorization"] = "Basic " + b64encode(f"x:{GUESS}".encode()).decode()
        path = "/v0/git/info/refs?service=git-upload-pack"
    elif way == "sign-in":
        guesser.headers |= {"Sec-Fetch-Mode": "navigate", "Accept": "text/html"}
        path = "/v0/sign-in?code=rst_once_0"
    answers = [await guesser.get(path) for _ in range(CALLER + 3)]
    statuses = [answer.status_code for answer in answers]
    assert statuses[:FAILURES] == [401] * FAILURES
    assert set(statuses[FAILURES:]) == {429}
    assert all(0 < int(answer.headers["Retry-After"]) <= 60 for answer in answers[FAILURES:])
    for address in (guesser.headers["X-Forwarded-For"], "192.0.2.99"):  # its first requests, also beside the guesser
        owner = server.client(agent["gatewayToken"], own)
        owner.headers["X-Forwarded-For"] = address
        assert (await owner.get("/v0/logs")).status_code == 200


async def test_each_verdict_counts_as_a_request(server: RunningServer) -> None:
    stranger = remote(server)
    targets = [{"slug": f"skill-{number}", "version": "1.0.0"} for number in range(CALLER)]
    answer = await stranger.post("/api/v1/skills/-/security-verdicts", json={"items": targets})
    assert answer.status_code == 200, answer.text
    assert (await stranger.get("/api/v1/skills")).status_code == 429
