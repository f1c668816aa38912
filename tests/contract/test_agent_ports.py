"""Agents at ports instead of names: the port decides, and cookies of other ports do not count."""

import contextlib
import os
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from roost.drivers.runtime.fake import FakeRuntime
from roost.http.edge.dependencies import ProxyLimits
from roost.http.edge.protocol import ConnectionCounter
from tests.contract.test_template_agents import until
from tests.support.server import RunningServer, running

ADDRESS = "203.0.113.7"


def free_range(count: int) -> range:
    """Return consecutive ports that are free now, below those that the system gives to clients."""
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    for first in range(20000 + worker * 500, 20500 + worker * 500, count):
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            for port in range(first, first + count):
                listener = stack.enter_context(socket.socket())
                listener.bind(("127.0.0.1", port))
            return range(first, first + count)
    raise AssertionError("no free ports")


@contextlib.asynccontextmanager
async def serving(folder: Path, ports: range, **options: Any) -> AsyncIterator[RunningServer]:
    setting = f"{ports[0]}-{ports[-1]}"
    runtime = FakeRuntime(folder / "run")
    async with running(
        folder / "data", runtime=runtime, ROOST_DOMAIN=ADDRESS, ROOST_AGENT_PORTS=setting, **options
    ) as server:
        yield server


async def create(server: RunningServer) -> dict[str, Any]:
    answer = await server.client(server.key(), ADDRESS).post("/v0/agents", json={"name": "Ada"})
    assert answer.status_code == 201, answer.text
    return answer.json()["agent"]


def client(server: RunningServer, agent: dict[str, Any], **headers: str) -> httpx.AsyncClient:
    """Return a client of the agent's port, as if the address of the server were its own."""
    port = httpx.URL(agent["url"]).port
    made = httpx.AsyncClient(
        base_url=f"http://127.0.0.1:{port}", headers={"Host": f"{ADDRESS}:{port}", **headers}, trust_env=False
    )
    server.clients.append(made)
    return made


async def test_an_agent_lives_at_a_port_which_it_keeps(tmp_path: Path) -> None:
    ports = free_range(2)
    async with serving(tmp_path, ports) as server:
        first, second = await create(server), await create(server)
        assert [agent["url"] for agent in (first, second)] == [f"http://{ADDRESS}:{port}" for port in ports]
        own = client(server, first, Authorization=f"Bearer {first['gatewayToken']}")
        assert (await own.get("/v1/models")).status_code == 200
        assert (await own.get("/v0/logs")).status_code == 200
        assert (await own.get("/v0/agents/" + second["agentId"])).status_code == 401
        assert (
            await client(server, second, Authorization=f"Bearer {first['gatewayToken']}").get("/")
        ).status_code == 401
        subdomain = await own.post("/v0/domains", json={"subdomain": "adas-page"})
        assert (subdomain.status_code, subdomain.json()["error"][:29]) == (400, "This server has no subdomains")
        full = await server.client(server.key(), ADDRESS).post("/v0/agents", json={"name": "third"})
        assert (full.status_code, full.json()) == (503, {"error": "No port is free for another agent"})
        assert len((await server.client(server.key(), ADDRESS).get("/v0/agents")).json()["agents"]) == 2
    async with serving(tmp_path, ports) as server:
        listed = (await server.client(server.key(), ADDRESS).get("/v0/agents")).json()["agents"]
        assert {agent["agentId"]: agent["url"] for agent in listed} == {
            agent["agentId"]: agent["url"] for agent in (first, second)
        }
        deleted = await server.client(server.key(), ADDRESS).delete(f"/v0/agents/{first['agentId']}")
        assert deleted.status_code == 200
        gone = await client(server, first, Authorization=f"Bearer {first['gatewayToken']}").get("/v1/models")
        assert gone.status_code == 404
        assert (await create(server))["url"] == first["url"]


async def test_the_host_header_does_not_choose_the_agent(tmp_path: Path) -> None:
    async with serving(tmp_path, free_range(2)) as server:
        first, second = await create(server), await create(server)
        own = client(server, first, Authorization=f"Bearer {second['gatewayToken']}")
        for host in (f"{second['agentId']}.agents.localhost", "agents.localhost", "api.localhost", "evil.example", "["):
            answer = await own.get("/v0/status", headers={"Host": host})
            assert answer.status_code == 404, host
        other_port = httpx.URL(second["url"]).port
        for host in (ADDRESS, f"{ADDRESS}:{other_port}", "127.0.0.1"):
            assert (await own.get("/v0/status", headers={"Host": host})).status_code == 401, host


async def test_one_address_has_both_apis(tmp_path: Path) -> None:
    async with serving(tmp_path, free_range(1)) as server:
        key, agent = server.key(), await create(server)
        both = server.client(key, ADDRESS)
        assert (await both.get("/v0/agents")).status_code == 200
        assert (await both.get("/v3/files/private")).status_code == 200
        made = await both.post("/v3/files/sign", json={"date": 1, "expires": 60})
        assert made.json()["data"].startswith(f"http://{ADDRESS}:{server.port}/v3/files/"), made.text
        token = server.client(agent["gatewayToken"], ADDRESS)  # counts at the agent's own address only
        for path in (f"/v0/agents/{agent['agentId']}", "/v3/files/private"):
            assert (await token.get(path)).status_code == 401
        by_name = server.agent_client(agent)  # as the command line, which has the main port alone
        assert (await by_name.get("/v1/models")).status_code == 200


async def test_a_storage_gateway_is_a_path(tmp_path: Path) -> None:
    async with serving(tmp_path, free_range(1)) as server:
        api = server.client(server.key(), ADDRESS)
        page = {"file": ("a.html", b"<h1>hello</h1>")}
        kept = {
            network: (await api.post("/v3/files", data={"network": network}, files=page)).json()["data"]["cid"]
            for network in ("public", "private")
        }
        gateway = (await api.get("/v3/gateways")).json()["data"]["rows"][0]
        assert gateway["url"] == f"http://{ADDRESS}:{server.port}/gateways/{gateway['domain']}"
        visitor, path = server.client(host=ADDRESS), httpx.URL(gateway["url"]).path
        shown = await visitor.get(f"{path}/ipfs/{kept['public']}?filename=a.html")
        assert (shown.status_code, shown.text, shown.headers["content-security-policy"]) == (
            200,
            "<h1>hello</h1>",
            "sandbox",
        )
        url = f"{gateway['url']}/files/{kept['private']}"
        signing = {"url": url, "date": int(time.time()), "expires": 60, "method": "GET"}
        link = (await api.post("/v3/files/private/download_link", json=signing)).json()["data"]
        assert link.startswith(f"{url}?")
        assert (await visitor.get(link.removeprefix(f"http://{ADDRESS}:{server.port}"))).text == "<h1>hello</h1>"
        folder = [("file", (f"site/{name}", name.encode())) for name in ("a.txt", "b.txt")]
        made = (await api.post("/v3/files", data={"network": "public"}, files=folder)).json()["data"]["cid"]
        moved = await visitor.get(f"{path}/ipfs/{made}")
        assert (moved.status_code, moved.headers["location"]) == (301, f"{path}/ipfs/{made}/")
        assert "a.txt" in (await visitor.get(moved.headers["location"])).text
        for other in (
            "/ipfs/" + kept["public"],
            f"{path}%2Fipfs/{kept['public']}",
            f"{path}/v0/agents",
            f"{path}/ipfs/x",
        ):
            assert (await visitor.get(other)).status_code in {400, 404}, other


async def sign_in(server: RunningServer, agent: dict[str, Any]) -> httpx.Response:
    link = await server.client(server.key(), ADDRESS).post(f"/v0/agents/{agent['agentId']}/sign-in-link")
    url = httpx.URL(link.json()["url"])
    assert str(url).startswith(agent["url"])
    return await client(server, agent, Accept="text/html").get(url.raw_path.decode())


def find_port(agent: dict[str, Any]) -> int:
    port = httpx.URL(agent["url"]).port
    assert port is not None
    return port


async def test_a_browser_signs_in_at_one_port_only(tmp_path: Path) -> None:
    async with serving(tmp_path, free_range(2)) as server:
        agent, other = await create(server), await create(server)
        port = find_port(agent)
        signed_in = await sign_in(server, agent)
        assert (signed_in.status_code, signed_in.headers["location"]) == (303, f"{agent['url']}/")
        cookie = signed_in.headers["set-cookie"].partition(";")[0]
        assert cookie == f"p{port}_gw_token={agent['gatewayToken']}"
        browser = client(server, agent, Cookie=f"p1_gw_token=x; {cookie}; other=1")
        assert (await browser.get("/v0/status")).status_code == 200
        bare = f"gw_token={agent['gatewayToken']}"
        for sent in (bare, f"p1_{bare}", f"p{port + 1}_{bare}"):
            assert (await client(server, agent, Cookie=sent).get("/v0/status")).status_code == 401, sent
        foreign = client(server, other, Cookie=cookie.replace(f"p{port}_", f"p{port + 1}_"))
        assert (await foreign.get("/v0/status")).status_code == 401


async def test_a_cookie_counts_on_pages_of_the_same_port(tmp_path: Path) -> None:
    async with serving(tmp_path, free_range(1)) as server:
        agent = await create(server)
        port = find_port(agent)
        cookie = {"Cookie": f"p{port}_gw_token={agent['gatewayToken']}"}
        browser, sibling = client(server, agent, **cookie), f"http://{ADDRESS}:{port + 1}"
        for fetch, status in (
            ({}, 200),
            ({"Site": "same-origin", "Mode": "cors"}, 200),
            ({"Site": "none", "Mode": "navigate"}, 200),
            ({"Site": "same-site", "Mode": "navigate", "Dest": "document"}, 200),
            ({"Site": "same-site", "Mode": "navigate", "Dest": "iframe"}, 403),
            ({"Site": "same-site", "Mode": "no-cors", "Dest": "image"}, 403),
        ):
            headers = {f"Sec-Fetch-{name}": value for name, value in fetch.items()}
            assert (await browser.get("/v1/models", headers=headers)).status_code == status, fetch
            assert (await browser.get("/v0/status", headers=headers)).status_code == status, fetch
        assert (await browser.get("/v0/status", headers={"Origin": sibling})).status_code == 403
        for origin, status in ((sibling, 403), (agent["url"], 200)):
            answer = await browser.post("/v0/console/exec", headers={"Origin": origin}, json={"command": "true"})
            assert answer.status_code == status, origin
        url = f"ws://127.0.0.1:{port}/v0/logs"
        async with connect(url, additional_headers=cookie, origin=agent["url"], proxy=None):
            pass
        for origin in (None, Origin(sibling), Origin(f"http://{ADDRESS}")):
            with pytest.raises(InvalidStatus):
                await connect(url, additional_headers=cookie, origin=origin, proxy=None)


async def test_programs_have_cookies_of_their_own_port(tmp_path: Path) -> None:
    echo = (
        "import http.server as h\n"
        "class Echo(h.BaseHTTPRequestHandler):\n"
        "    def do_GET(self):\n"
        "        self.send_response(200)\n"
        "        for cookie in ('sid=1; HttpOnly', ' gw_token=x', 'evil=1; Domain=example.com'):\n"
        "            self.send_header('Set-Cookie', cookie)\n"
        "        self.end_headers()\n"
        "        self.wfile.write(self.headers.get('Cookie', '').encode())\n"
        "h.HTTPServer(('127.0.0.1', 3000), Echo).serve_forever()\n"
    )
    async with serving(tmp_path, free_range(1)) as server:
        agent = await create(server)
        port = find_port(agent)
        own = client(server, agent, Authorization=f"Bearer {agent['gatewayToken']}")
        mapping = {"pathPrefix": "/site", "port": 3000, "protected": False}
        assert (await own.put("/v0/port-forwarding", json={"mappings": [mapping]})).status_code == 200
        await own.put("/v0/files/content?path=echo.py", content=echo.encode())
        await own.post("/v0/console/exec", json={"command": "nohup python3 echo.py >log 2>&1 &"})
        cookies = f"sid=0; p{port}_sid=2; p{port}_gw_token=t; p{port + 1}_sid=3; p{port}_b=4"
        visitor = client(server, agent, Cookie=cookies)

        async def answered() -> httpx.Response | None:
            answer = await visitor.get("/site/")
            return answer if answer.status_code == 200 else None

        answer = await until(answered)
        assert answer.text == "sid=2; b=4"
        assert answer.headers.get_list("set-cookie") == [f"p{port}_sid=1; HttpOnly"]


async def test_the_limit_of_connections_counts_for_all_ports_together(tmp_path: Path) -> None:
    ports = free_range(2)
    async with serving(tmp_path, ports) as server:
        edge = server.roost.edge
        edge.counter = ConnectionCounter(ProxyLimits(connections=2), ())
        with contextlib.ExitStack() as held:
            for port in ports:
                held.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))

            async def are_counted() -> bool:
                return len(server.roost.http.server_state.connections) == len(ports)

            await until(are_counted)
            answers = [await server.client(host=ADDRESS).get("/healthz"), await plain_get(ports[0])]
            assert [answer.status_code for answer in answers] == [503, 503]


async def plain_get(port: int) -> httpx.Response:
    async with httpx.AsyncClient(trust_env=False) as client:
        return await client.get(f"http://127.0.0.1:{port}/")


async def test_names_that_contain_an_address_are_served_by_host(tmp_path: Path) -> None:
    domain = "203-0-113-7.sslip.io"
    async with running(tmp_path / "data", runtime=FakeRuntime(tmp_path / "run"), ROOST_DOMAIN=domain) as server:
        management = server.client(server.key(), f"agents.{domain}")
        agent = (await management.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
        host = f"{agent['agentId']}.agents.{domain}"
        assert agent["url"] == f"http://{host}:{server.port}"
        assert (await server.client(agent["gatewayToken"], host).get("/v1/models")).status_code == 200
        files = await server.client(server.key(), f"api.{domain}").get("/v3/files/private")
        assert files.status_code == 200
        assert (
            await server.client(server.key(), f"api.{domain}.evil.example").get("/v3/files/private")
        ).status_code == 404
