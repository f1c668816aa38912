"""Nothing from outside reaches what the warden serves to its agent; what a program of the agent opens is bounded."""

import json
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from sqlalchemy import Connection
from structlog.testing import capture_logs

from roost.agents.network.routes import store as routes
from roost.agents.network.routes.model import PathRoute
from roost.domain_names import store as domains
from roost.drivers.runtime.contract import API_PORT, PROXY_PORT, WARDEN_PORTS
from roost.warden_client.errors import DialRefused
from tests.support.server import RunningServer, running

pytestmark = pytest.mark.container
NAMED = sorted(port for port in WARDEN_PORTS if port > 1024)
WHOAMI = "/v0/platform/whoami"
FORWARDER = r"""
import http.server, json, sys, urllib.error, urllib.request

HIDDEN = frozenset(sys.argv[1:])
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        fields = {name: value for name, value in self.headers.items() if name.lower() not in HIDDEN}
        request = urllib.request.Request("http://127.0.0.1:8799" + self.path, None, fields, method=self.command)
        try:
            answer = OPENER.open(request, timeout=20)
        except urllib.error.HTTPError as error:
            answer = error
        body = answer.read()
        self.send_response(answer.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

http.server.ThreadingHTTPServer(("127.0.0.1", 3000), Handler).serve_forever()
"""


async def create(server: RunningServer, tenant: str) -> tuple[httpx.AsyncClient, dict[str, Any]]:
    client = server.client(server.key(tenant))
    return client, (await client.post("/v0/agents", json={"name": "Ada"})).json()["agent"]


async def open_route(client: httpx.AsyncClient, agent: Mapping[str, Any], port: int) -> httpx.Response:
    mappings = [{"pathPrefix": "/api", "port": port, "protected": False}]
    return await client.put(f"/v0/agents/{agent['agentId']}/port-forwarding", json={"mappings": mappings})


@pytest.mark.parametrize("port", NAMED)
async def test_no_route_or_domain_names_a_port_of_the_warden(server: RunningServer, port: int) -> None:
    client, agent = await create(server, f"named-{port}")
    message = f"port {port} is Roost's own in the container; choose another from 1025 to 65535"
    path = f"/v0/agents/{agent['agentId']}"
    for answer in (
        await open_route(client, agent, port),
        await open_route(server.agent_client(agent), agent, port),
        await client.post(f"{path}/domains", json={"subdomain": "relays", "targetPort": port}),
    ):
        assert (answer.status_code, answer.json()) == (400, {"error": message})
    made = (await client.post(f"{path}/domains", json={"subdomain": f"relays-{port}", "targetPort": 3000})).json()
    changed = await client.put(f"{path}/domains/{made['domain']['id']}", json={"port": port})
    assert (changed.status_code, changed.json()) == (400, {"error": message})


async def test_stored_rows_reach_nothing(server: RunningServer, tenant: str) -> None:
    """Of a version that allowed them, before its rows are removed, and also by a server that knows no better."""
    _, agent = await create(server, tenant)
    agent_id, db = agent["agentId"], server.roost.core.db
    rows = [PathRoute(f"/{port}", port, is_protected=False) for port in WARDEN_PORTS]
    db.run(lambda connection: routes.replace_routes(connection, agent_id, rows))
    await server.roost.agents.network.routes.mirror.refresh(agent_id)
    visitor = server.client(host=f"{agent_id}.agents.localhost")
    for port in WARDEN_PORTS:
        answer = await visitor.get(f"/{port}{WHOAMI}")
        assert (answer.status_code, agent["name"] in answer.text) == (502, False)
        with pytest.raises(DialRefused):
            await server.roost.agents.registry.runtimes.dial(agent_id, port)
        with pytest.raises(DialRefused):  # the warden's own refusal
            await server.roost.agents.registry.runtimes.get_warden(agent_id).dial(port)


async def test_a_start_removes_stored_rows_and_tells_their_owner(tmp_path: Path) -> None:
    async with running(tmp_path / "data") as server:
        client, agent = await create(server, "acme")
        agent_id = agent["agentId"]
        await open_route(client, agent, 3000)
        body = {"subdomain": "ada", "targetPort": 3000, "protected": False}
        domain = (await client.post(f"/v0/agents/{agent_id}/domains", json=body)).json()["domain"]

        def spoil(connection: Connection) -> None:
            stored = [PathRoute(f"/{port}", port, is_protected=False) for port in (3000, API_PORT, PROXY_PORT)]
            routes.replace_routes(connection, agent_id, stored)
            changed = domains.domains.update().where(domains.domains.c.id == domain["id"])
            connection.execute(changed.values(port=API_PORT))

        server.roost.core.db.run(spoil)
    with capture_logs() as logs:
        async with running(tmp_path / "data") as server:
            client = server.client(server.key())
            shown = (await client.get(f"/v0/agents/{agent_id}/port-forwarding")).json()["mappings"]
            assert shown == [{"pathPrefix": "/3000", "port": 3000, "protected": False}]
            (kept,) = (await client.get(f"/v0/agents/{agent_id}/domains")).json()["domains"]
            assert (kept["domain"], kept["targetPort"], kept["protected"]) == (domain["domain"], 18789, True)
            assert (await server.client(host=kept["domain"]).get("/")).status_code == 401
            events = [line async for line in _events(client)]
    removed = next(one for one in events if one["data"].get("action") == "routes_removed")
    assert (removed["agentId"], removed["actor"]["kind"]) == (agent_id, "server")
    assert removed["data"]["routes"] == f"/{API_PORT} to port {API_PORT}, /{PROXY_PORT} to port {PROXY_PORT}"
    assert any(one["type"] == "domain.changed" and one["actor"]["kind"] == "server" for one in events)
    assert {"routes.removed", "domain.led_to_gateway"} <= {line["event"] for line in logs}


async def _events(client: httpx.AsyncClient) -> AsyncIterator[dict[str, Any]]:
    """Yield the events that are kept."""
    async with client.stream("GET", "/v0/events", params={"after": "oldest"}) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: ") and (event := json.loads(line.removeprefix("data: "))).get("subject"):
                yield event
                if event["type"] == "domain.changed" and event["actor"]["kind"] == "server":
                    return


async def test_a_program_that_passes_requests_on_with_their_headers_opens_nothing(
    server: RunningServer, tenant: str
) -> None:
    client, agent = await create(server, tenant)
    await forward(client, agent)
    visitor = server.client(host=f"{agent['agentId']}.agents.localhost")
    for answer in (await visitor.get(f"/api{WHOAMI}"), await visitor.post("/api/v0/platform/token")):
        assert answer.status_code == 403
        assert "does not open the agent's own API" in answer.text
    assert (await visitor.get("/api/v1/models")).status_code == 403


async def test_program_that_hides_the_origin_opens_the_agents_own_powers(server: RunningServer, tenant: str) -> None:
    """The limit that the threat model names: the agent's own powers, only as long as the program passes them on."""
    client, agent = await create(server, tenant)
    await forward(client, agent, "x-forwarded-host")
    visitor = server.client(host=f"{agent['agentId']}.agents.localhost")
    assert (await visitor.get(f"/api{WHOAMI}")).json()["agentId"] == agent["agentId"]
    issued = (await visitor.post("/api/v0/platform/token")).json()
    assert 0 < issued["expiresIn"] <= 3600
    token = {"Authorization": f"Bearer {issued['token']}"}
    for host in ("agents.localhost", "localhost", "api.localhost"):
        assert (await server.client(host=host).get("/v0/secrets", headers=token)).status_code in {401, 404}
        assert (await server.client(host=host).get("/v3/vectorize/groups", headers=token)).status_code in {401, 404}
    path = f"/v0/agents/{agent['agentId']}"
    assert (await server.client(host="agents.localhost").get(path, headers=token)).status_code == 401
    for method, closed in (("GET", f"{path}/gateway-token"), ("POST", f"{path}/console/exec"), ("DELETE", path)):
        warden = server.roost.agents.registry.runtimes.get_warden(agent["agentId"])
        head = f"{method} {closed} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {issued['token']}\r\n\r\n"
        code = (
            "import socket, sys; s = socket.create_connection(('127.0.0.1', 8799)); "
            "s.sendall(sys.argv[1].encode()); print(s.recv(1000).decode())"
        )
        assert b" 403 " in (await warden.exec(["python3", "-c", code, head])).stdout


async def forward(client: httpx.AsyncClient, agent: Mapping[str, Any], *hidden: str) -> None:
    """Run a program that passes requests on to the agent's own API, and lead `/api` to it for anyone."""
    path = f"/v0/agents/{agent['agentId']}"
    await client.put(f"{path}/files/content", params={"path": "forwarder.py"}, content=FORWARDER)
    command = f"nohup python3 forwarder.py {' '.join(hidden)} >/dev/null 2>&1 & sleep 0.3"
    assert (await client.post(f"{path}/console/exec", json={"command": command})).json()["exitCode"] == 0
    assert (await open_route(client, agent, 3000)).status_code == 200
