"""Path routes of agents, with real programs in real containers (contract: Routes and domains)."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import httpx2 as httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from tests.support.server import RunningServer

pytestmark = pytest.mark.container
ON_SERVICES = {"test_programs_are_reached_by_their_routes"}
PROGRAM = r"""
import base64, hashlib, http.server, json, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.headers.get("Upgrade") == "websocket":
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            for name, value in (("Connection", "Upgrade"), ("Upgrade", "websocket"),
                ("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(b"\x81\x05hello")
            self.wfile.flush()
            while self.connection.recv(100): pass
            return
        if self.path.startswith("/stream"):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            self.close_connection = True
            while True:
                self.wfile.write(b"data: tick\n\n"); self.wfile.flush(); time.sleep(0.05)
        body = json.dumps({"path": self.path, "headers": dict(self.headers), "port": int(sys.argv[1])}).encode()
        self.answer(body)

    def do_POST(self):
        digest, size = hashlib.sha256(), 0
        if self.headers.get("Transfer-Encoding"):
            while length := int(self.rfile.readline(), 16):
                digest.update(self.rfile.read(length)); size += length; self.rfile.readline()
            self.rfile.readline()
        self.answer(json.dumps({"size": size, "sha256": digest.hexdigest()}).encode())

    def answer(self, body):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


async def create(client: httpx.AsyncClient, *ports: int) -> dict[str, Any]:
    """Create an agent in which the program serves these ports."""
    agent = (await client.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
    path = f"/v0/agents/{agent['agentId']}"
    await client.put(f"{path}/files/content", params={"path": "program.py"}, content=PROGRAM)
    for port in ports:
        wait = f"while ! (: </dev/tcp/127.0.0.1/{port}); do :; done"
        started = f"nohup python3 program.py {port} >/dev/null 2>&1 & {wait}"
        body = {"command": f"bash -c '{started}' 2>/dev/null"}
        assert (await client.post(f"{path}/console/exec", json=body)).json()["exitCode"] == 0
    return agent


async def put(client: httpx.AsyncClient, agent: dict[str, Any], *mappings: Any, status: int = 200) -> Any:
    answer = await client.put(f"/v0/agents/{agent['agentId']}/port-forwarding", json={"mappings": list(mappings)})
    assert answer.status_code == status, answer.text
    return answer.json()


def route(prefix: str, port: int = 3000, **more: Any) -> dict[str, Any]:
    return {"pathPrefix": prefix, "port": port, **more}


async def test_programs_are_reached_by_their_routes(server: RunningServer, tenant: str) -> None:
    client = server.client(server.key(tenant))
    agent = await create(client, 3000, 4000)
    mappings = [route("/app", protected=False), route("/app/admin", 4000)]
    shown = await put(client, agent, *mappings)
    assert shown["success"] is True
    assert shown["mappings"] == [route("/app/admin", 4000, protected=True), route("/app", 3000, protected=False)]
    listed = await server.agent_client(agent).get("/v0/port-forwarding")
    assert listed.json() == {"mappings": shown["mappings"]}
    assert (await client.get(f"/v0/agents/{agent['agentId']}")).json()["portForwarding"] == shown["mappings"]

    visitor = server.client(host=f"{agent['agentId']}.agents.localhost")
    got = (await visitor.get("/app/page?x=1")).json()
    assert (got["path"], got["port"], got["headers"]["x-forwarded-prefix"]) == ("/page?x=1", 3000, "/app")
    assert (await visitor.get("/app/admin")).status_code == 401
    got = (await server.agent_client(agent).get("/app/admin/x")).json()
    assert (got["path"], got["port"]) == ("/x", 4000)
    assert agent["gatewayToken"] not in json.dumps(got)
    assert (await visitor.get("/app/%61dmin")).status_code == 400
    assert (await visitor.get("/")).status_code == 401  # the gateway's


async def test_uploads_streams_and_websockets(server: RunningServer, tenant: str) -> None:
    client = server.client(server.key(tenant))
    agent = await create(client, 3000)
    await put(client, agent, route("/app", protected=False))
    host = f"{agent['agentId']}.agents.localhost"
    visitor = server.client(host=host)

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b"x" * 2**20

    assert (await visitor.post("/app/", content=pieces())).json()["size"] == 64 * 2**20
    address = f"ws://{host}:{server.port}/app/ws"
    async with connect(address, host="127.0.0.1", port=server.port, proxy=None) as websocket:
        assert await websocket.recv() == "hello"
        async with visitor.stream("GET", "/app/stream") as stream:
            lines = stream.aiter_lines()
            assert await anext(lines) == "data: tick"
            began = time.monotonic()
            await put(client, agent)
            with pytest.raises(httpx.HTTPError):
                async for _ in lines:
                    pass
            with pytest.raises(ConnectionClosed):
                await websocket.recv()
            assert time.monotonic() - began < 5
    assert (await visitor.get("/app/")).status_code == 401


async def test_a_port_where_nothing_listens(server: RunningServer, tenant: str) -> None:
    client = server.client(server.key(tenant))
    agent = await create(client)
    await put(client, agent, route("/app", 3999, protected=False))
    visitor = server.client(host=f"{agent['agentId']}.agents.localhost")
    answer = await visitor.get("/app")
    assert answer.status_code == 502
    assert "Nothing answers on port 3999" in answer.json()["error"]
    page = await visitor.get("/app", headers={"Accept": "text/html"})
    assert "<h1>502 Bad Gateway</h1>" in page.text


@pytest.mark.parametrize(
    "mappings",
    [[route("/a", port)] for port in (22, 80, 1024, 8798, 8799, 18789, 65536, -1)]
    + [[route(prefix)] for prefix in ("", "a", "/v0", "/v0/x", "/a//b", "/a/../b", "/%61", "/a b")]
    + [[route("/a"), route("/a/")], [route(f"/{number}") for number in range(11)], [route("/b"), route("/a", 22)]]
    + [[{"port": 3000}], [route("/a") | {"port": "3000"}], [route("/a", protected="no")], ["/a"], [route("/a", True)]],
)
async def test_tables_that_are_refused_change_nothing(server: RunningServer, mappings: Any) -> None:
    client = server.client(server.key("refused"))
    listed = (await client.get("/v0/agents")).json()["agents"]
    agent = listed[0] if listed else (await client.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
    await put(client, agent, route("/kept"))
    assert "error" in await put(client, agent, *mappings, status=400)
    shown = (await client.get(f"/v0/agents/{agent['agentId']}/port-forwarding")).json()
    assert shown == {"mappings": [route("/kept", protected=True)]}


async def test_two_replacements_at_once(server: RunningServer, tenant: str) -> None:
    client = server.client(server.key(tenant))
    agent = (await client.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
    tables = [[route(f"/{name}{number}", protected=True) for number in range(5)] for name in "ab"]
    await asyncio.gather(*(put(client, agent, *table) for table in tables * 5))
    assert (await client.get(f"/v0/agents/{agent['agentId']}/port-forwarding")).json()["mappings"] in tables


async def test_forks_have_the_routes_and_deleted_agents_none(server: RunningServer, tenant: str) -> None:
    client = server.client(server.key(tenant))
    agent = (await client.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
    await put(client, agent, route("/app"))
    path = f"/v0/agents/{agent['agentId']}"
    cid = (await client.post(f"{path}/snapshots/sync")).json()["snapshotCid"]
    fork = (await client.post("/v0/agents", json={"name": "Bob", "snapshotCid": cid})).json()["agent"]
    shown = (await client.get(f"/v0/agents/{fork['agentId']}/port-forwarding")).json()
    assert shown["mappings"] == [route("/app", protected=True)]
    await client.delete(path)
    assert server.roost.agents.network.routes.mirror.get(agent["agentId"]) is None


async def test_errors_at_the_address_have_the_form_of_who_reads_them(server: RunningServer, tenant: str) -> None:
    """Programs of the chat API read OpenAI's form, a person a page that says how to sign in."""
    agent = await create(server.client(server.key(tenant)))
    visitor = server.client(host=f"{agent['agentId']}.agents.localhost")
    chat = await visitor.post("/v1/chat/completions", json={})
    assert (chat.status_code, chat.json()["error"]["type"]) == (401, "authentication_error")
    assert chat.json()["error"]["message"] == "Missing Authorization header"
    assert (await visitor.get("/v1x")).json() == {"error": "Missing Authorization header"}
    for path in ("/", "/v1/models", "/some/page"):
        page = await visitor.get(path, headers={"Accept": "text/html,*/*"})
        assert page.headers["content-type"] == "text/html; charset=utf-8"
        assert page.headers["www-authenticate"] == (await visitor.get(path)).headers["www-authenticate"]
        assert "<h1>401 Unauthorized</h1>" in page.text
        assert "roost open AGENT" in page.text
    assert (await visitor.post("/", headers={"Accept": "text/html"})).json() == {
        "error": "Missing Authorization header"
    }
