"""Every operation of the contract: route, credentials, addresses, refusals (cases A1, A4, A7, C10, C11)."""

import json
import re
from itertools import count
from typing import Any

import httpx2 as httpx
import pytest

from tests.contract.endpoints import (
    CONTRACT,
    ROWS,
    all_endpoints,
    endpoints,
    fill_path,
    name,
    needs_contract,
    route,
    routes,
)
from tests.support.server import NO_AUTHORITIES, RunningServer

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"})
GARBAGE = ["x", "null", "Bearer", "eyJhbGciOiJub25lIn0.e30.", "rst_gw_" + "0" * 64, "undefined"]

SCOPES_NOT_SHOWN = {"/v3/x402/payment_instructions/{id}": "org:files:read"}
"""Our scopes of operations for which the contract shows none."""

_peers = count(2)


def client(server: RunningServer, token: str | None = None, host: str = "agents.localhost") -> httpx.AsyncClient:
    """Return a client with an IP address of its own, because repeated refusals lead to throttling."""
    number = next(_peers)
    address = f"127.0.{number // 250}.{number % 250 + 2}"
    where = httpx.AsyncHTTPTransport(verify=NO_AUTHORITIES, local_address=address)
    return server.client(token, host, transport=where)


def for_keys() -> list[dict[str, Any]]:
    return [row for row in endpoints() if "jwt" in row["credentials"]]


@needs_contract
def test_the_table_is_the_contracts() -> None:
    assert json.loads((CONTRACT / "endpoints.json").read_text()) == ROWS


@pytest.mark.parametrize("row", all_endpoints())
def test_every_operation_is_served(row: dict[str, Any]) -> None:
    assert route(row), "no route"


@pytest.mark.parametrize("row", all_endpoints("agents"))
def test_credentials_are_the_contracts(row: dict[str, Any]) -> None:
    """Beside the table, the contract's Authentication section allows platform tokens and the agent's own container."""
    served = route(row)
    assert served
    ours = {kind.split()[0] for kind in served["credentials"]} - {"platform", "relay"}
    assert (ours - {"jwt"} if row["hosts"] == ["agent"] else ours) == set(row["credentials"])


@pytest.mark.parametrize("row", [row for row in endpoints() if row["method"] != "WEBSOCKET"], ids=name)
async def test_nobody_enters_without_a_credential_or_with_garbage(server: RunningServer, row: dict[str, Any]) -> None:
    path = row["path"].replace("{agentId}", "a" * 16)
    for host in ("agents.localhost", "localhost", "a" * 16 + ".agents.localhost"):
        bare = await client(server, host=host).request(row["method"], path, json={})
        assert bare.status_code == 401, (host, bare.text)
        assert list(bare.json()) == ["error"]
        for token in GARBAGE:
            answer = await client(server, token, host).request(row["method"], path, json={})
            assert answer.status_code == 401, (host, token, answer.text)
            assert token not in answer.text


@pytest.mark.parametrize("row", [row for row in endpoints() if row["credentials"] == ["jwt"]], ids=name)
async def test_a_gateway_token_does_not_do_what_needs_a_key(server: RunningServer, row: dict[str, Any]) -> None:
    agent = await _agent(server)
    path = row["path"].replace("{agentId}", agent["agentId"])
    hosts = ["localhost", "agents.localhost"]
    if not _is_short(row["path"]):
        hosts.append(f"{agent['agentId']}.agents.localhost")
    for host in hosts:
        answer = await client(server, agent["gatewayToken"], host).request(row["method"], path, json={"name": "x"})
        assert answer.status_code == 401, answer.text
    assert (await server.agent_client(agent).get("/v0/logs")).status_code == 200


@pytest.mark.parametrize("row", [row for row in for_keys() if "{agentId}" in row["path"]], ids=name)
async def test_another_tenants_key_changes_and_reveals_nothing(server: RunningServer, row: dict[str, Any]) -> None:
    agent = await _agent(server)
    path = row["path"].replace("{agentId}", agent["agentId"])
    stranger = client(server, server.key("stranger"))
    answer = await stranger.request(row["method"], path, json={"command": "true", "filename": "x", "contentBase64": ""})
    assert answer.status_code == 401
    assert agent["name"] not in answer.text
    unknown = await stranger.request(
        row["method"], row["path"].replace("{agentId}", "b" * 16), json={"command": "true"}
    )
    assert unknown.status_code == 404


@pytest.mark.parametrize("row", [row for row in for_keys() if row["method"] != "GET"], ids=name)
async def test_a_read_only_key_does_not_write(server: RunningServer, row: dict[str, Any]) -> None:
    reader = server.client(server.key(scopes=frozenset({"org:agents:read"})))
    path = row["path"].replace("{agentId}", (await _agent(server))["agentId"])
    answer = await reader.request(row["method"], path, json={"name": "x"})
    assert (answer.status_code, answer.json()) == (403, {"error": "Permission denied"})


@pytest.mark.parametrize("row", endpoints("storage"), ids=name)
async def test_the_storage_api_asks_for_the_contracts_scopes(server: RunningServer, row: dict[str, Any]) -> None:
    scope = SCOPES_NOT_SHOWN[row["path"]] if row["scope"] is None else row["scope"]
    assert routes()[row["method"], row["path"]]["credentials"] == [scope]
    path = re.sub(r"{network}", "private", row["path"])
    agent = await _agent(server)
    other = server.key(scopes=frozenset({"org:agents:read", "org:agents:write"}))
    for token, status in ((None, 401), *((one, 401) for one in GARBAGE), (agent["gatewayToken"], 401), (other, 403)):
        answer = await client(server, token, "api.localhost").request(row["method"], path, json={})
        assert answer.status_code == status, answer.text
        assert answer.json()["error"]["code"] == status
    allowed = await client(server, server.key(scopes=frozenset({scope})), "api.localhost").request(
        row["method"], path, json={}
    )
    assert allowed.status_code in {400, 404}, allowed.text


async def test_allow_lists_the_methods_that_are_not_405(server: RunningServer) -> None:
    """At every path but of WebSockets, also the old ones that are rewritten; HEAD is answered where GET is."""
    fields = {"network": "public", "kind": "ips", "channel": "slack", "cid": "x", "token": "ab12"}
    served_here = [(key, row) for key, row in routes().items() if row["addresses"] != ["agent"]]
    rows = [(path, row["addresses"]) for (method, path), row in served_here if method != "WEBSOCKET"]
    paths = {(path, "storage" in addresses) for path, addresses in rows}
    assert len(paths) > 80
    for path, is_storage in sorted(paths):
        target = fill_path(path, fields)
        host = "localhost" if path == "/v0/session" else "agents.localhost"  # the dashboard's alone
        api = server.client(host="api.localhost" if is_storage else host)
        answers = {method: await api.request(method, target) for method in METHODS}
        served = {method for method, answer in answers.items() if answer.status_code != 405}
        if "GET" in served:
            assert "HEAD" in served, path
            assert (answers["HEAD"].status_code, answers["HEAD"].content) == (answers["GET"].status_code, b"")
            assert answers["HEAD"].headers["content-type"] == answers["GET"].headers["content-type"]
        assert "TRACE" not in served, path
        for method in METHODS - served:
            assert set(answers[method].headers["Allow"].split(", ")) == served, (method, path)


@pytest.mark.parametrize("method", ["PATCH", "PUT", "DELETE", "OPTIONS"])
async def test_an_unknown_method_is_405_with_the_allowed_ones(server: RunningServer, method: str) -> None:
    api = server.client(server.key())
    answer = await api.request(method, "/v0/agents")
    assert answer.status_code == 405
    assert set(answer.headers["Allow"].replace(" ", "").split(",")) >= {"GET"}
    overridden = await api.post("/v0/agents", headers={"X-HTTP-Method-Override": "GET"}, json={})
    assert overridden.status_code == 400
    for odd in ("TRACE", "FOO"):
        assert (await api.request(odd, "/v0/agents")).status_code in {400, 405}


@pytest.mark.parametrize(
    "path",
    ["/v0/agents/%2e%2e/secrets", "/v0//agents", "/v0/agents;x", "/v0/agents%2fengines", "/v0/agents/", "/v0/agents."],
)
async def test_tricks_with_paths_reach_no_other_route(server: RunningServer, path: str) -> None:
    answer = await server.client(server.key()).get(path)
    assert answer.status_code in {400, 404}, answer.text


async def test_every_answer_has_a_request_id_and_says_https(server: RunningServer) -> None:
    for path in ("/healthz", "/v0/agents", "/nothing"):
        answer = await server.client().get(path)
        assert answer.headers["X-Request-Id"]
        assert "max-age" in answer.headers["Strict-Transport-Security"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"


async def _agent(server: RunningServer) -> dict[str, Any]:
    """Return one agent for all tests of this module."""
    api = server.client(server.key())
    if not (agents := (await api.get("/v0/agents")).json()["agents"]):
        made = await api.post("/v0/agents", json={"name": "the only one"})
        assert made.status_code == 201, made.text
        agents = [made.json()["agent"]]
    return (await api.get(f"/v0/agents/{agents[0]['agentId']}")).json()["agent"]


def _is_short(path: str) -> bool:
    """Return whether the path means that agent's own object at an agent's own address."""
    known = {re.sub(r"\{\w+\}", "{}", path) for _, path in routes()}
    return re.sub(r"\{\w+\}", "{}", f"/v0/agents/{{}}{path.removeprefix('/v0')}") in known
