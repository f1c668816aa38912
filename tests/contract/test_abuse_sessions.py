"""The session cookie at every kind of host: it counts at the dashboard's alone, and no program of an agent gets it."""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest

from roost.drivers.runtime.fake import FakeRuntime
from tests.contract.endpoints import routes
from tests.contract.hosts import GATEWAY_KINDS, HANDSHAKE, KINDS, PROGRAM_KINDS, HostsEnv, running_hosts
from tests.contract.test_agent_ports import ADDRESS, free_range
from tests.contract.test_sessions import SIGNED_OUT, Browser
from tests.support.server import running

OTHER_KINDS = tuple(kind for kind in KINDS if kind != "local" and not kind.startswith(("storage gateway", "origin")))
AGENT_KINDS = (*GATEWAY_KINDS, *PROGRAM_KINDS)


@pytest.fixture(scope="module")
async def hosts_env(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[HostsEnv]:
    async with running_hosts(tmp_path_factory.mktemp("sessions") / "data") as hosts_env:
        yield hosts_env


async def sign_in(hosts_env: HostsEnv) -> tuple[str, str]:
    """Return the cookie and the CSRF token of a new session."""
    url = f"http://127.0.0.1:{hosts_env.port}/v0/session"
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(url, json={"key": hosts_env.key})
    assert answer.status_code == 200, answer.text
    return answer.headers["set-cookie"].partition(";")[0], answer.json()["session"]["csrfToken"]


async def test_the_session_counts_at_the_loopback_names(hosts_env: HostsEnv) -> None:
    cookie, csrf = await sign_in(hosts_env)
    site = hosts_env.sites["local"]
    assert (await hosts_env.ask(site, "GET {path}", f"Cookie: {cookie}", token=None)).status == 200
    lines = (f"Cookie: a=1; {cookie} ; b=2", f"X-CSRF-Token: {csrf}", "Content-Length: 0")
    assert (await hosts_env.ask(site, "POST /v0/agents/x/restart", *lines, token=None)).status == 404
    for wrong in (f"{cookie}0", cookie.upper(), f"x{cookie}", f'"{cookie}"', cookie.replace("rst_", "rst_gw_")):
        assert (await hosts_env.ask(site, "GET {path}", f"Cookie: {wrong}", token=None)).status == 401, wrong
    token = cookie.partition("=")[2]
    for line in (f"Authorization: Bearer {token}", f"Authorization: Basic {token}"):
        assert (await hosts_env.ask(site, "GET {path}", line, token=None)).status == 401, line
    assert (await hosts_env.ask(site, f"GET {{path}}?token={token}", token=None)).status == 401


async def test_session_responses_are_neither_stored_nor_framed(hosts_env: HostsEnv) -> None:
    """A cookie does not keep caches from storing a response, as `Authorization` does (RFC 9111, 3.5)."""
    cookie, _ = await sign_in(hosts_env)
    site, found = hosts_env.sites["local"], Counter[tuple[str | None, ...]]()
    for (method, path), row in routes().items():
        called = path.replace("{agentId}", hosts_env.agent["agentId"]).replace("{network}", "private")
        is_stream = path.endswith(("/events", "/watch"))
        if method == "GET" and row["credentials"] and "{" not in called and not is_stream:
            reply = await hosts_env.ask(site, "GET {path}", f"Cookie: {cookie}", path=called, token=None)
            found[reply["cache-control"], reply["content-security-policy"]] += 1
    assert found.pop(("no-store", "default-src 'none'; frame-ancestors 'none'")) > 60
    assert found == {}
    for path in ("/v0/events", f"/v0/agents/{hosts_env.agent['agentId']}/files/watch"):
        stream = await hosts_env.ask(site, "HEAD {path}", f"Cookie: {cookie}", path=path, token=None)
        assert stream["cache-control"] == "no-store"


@pytest.mark.parametrize("kind", OTHER_KINDS)
async def test_it_opens_no_other_host(hosts_env: HostsEnv, kind: str) -> None:
    cookie, csrf = await sign_in(hosts_env)
    site = hosts_env.sites[kind]
    lines = (f"Cookie: {cookie}; __Host-{cookie}", f"X-CSRF-Token: {csrf}", f"Origin: http://{site.host}")
    expected = 200 if kind.startswith("open") else 401
    assert (await hosts_env.ask(site, "GET {path}", *lines, token=None)).status == expected
    changed = await hosts_env.ask(site, "POST {path}", *lines, "Content-Length: 0", token=None)
    assert changed.status in ({200} if kind.startswith("open") else {401, 405})
    if not kind.startswith("open"):
        handshake = site.head("GET {path}", *HANDSHAKE, *lines, token=None)
        assert await hosts_env.shake_hands(handshake) in {401, 404}


@pytest.mark.parametrize("kind", [kind for kind in OTHER_KINDS if not kind.startswith("open")])
async def test_no_stream_opens_elsewhere(hosts_env: HostsEnv, kind: str) -> None:
    """Neither events nor logs nor a terminal, as a response or a WebSocket, also from the pages of that host."""
    cookie, _ = await sign_in(hosts_env)
    site, path = hosts_env.sites[kind], f"/v0/agents/{hosts_env.agent['agentId']}"
    lines = (f"Cookie: {cookie}; __Host-{cookie}", f"Origin: http://{site.host}")
    for target in ("/v0/events", "/v0/logs", f"{path}/events", f"{path}/logs", f"{path}/console/stream"):
        assert (await hosts_env.ask(site, f"GET {target}", *lines, token=None)).status in {401, 404}, target
        handshake = site.head(f"GET {target}", *HANDSHAKE, *lines, token=None)
        assert await hosts_env.shake_hands(handshake) in {401, 404}, target


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "local" and not kind.endswith("domain")])
async def test_no_other_host_signs_in(hosts_env: HostsEnv, kind: str) -> None:
    site = hosts_env.sites[kind]
    body = b'{"key": "%b"}' % hosts_env.key.encode()
    lines = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    reply = await hosts_env.ask(site, "POST /v0/session", *lines, body=body, token=None)
    assert reply.status in {404, 405}
    assert reply["set-cookie"] is None
    for method in ("GET", "DELETE"):
        assert (await hosts_env.ask(site, f"{method} /v0/session")).status in {404, 405}


@pytest.mark.parametrize("kind", AGENT_KINDS)
async def test_no_program_gets_it(hosts_env: HostsEnv, kind: str) -> None:
    cookie, _ = await sign_in(hosts_env)
    token, site = cookie.partition("=")[2], hosts_env.sites[kind]
    gateway = f"gw_token={hosts_env.agent['gatewayToken']}; "
    for sent in (cookie, f"a=1; {cookie} ;b=2", f" \t{cookie}", f"__Host-{cookie}", f"p8642_{cookie}; {cookie}"):
        reply = await hosts_env.ask(site, "GET {path}", f"Cookie: {gateway}{sent}", path="/echo", token=None)
        assert reply.status == 200
        assert token not in reply.body.decode(), sent


async def test_agents_at_ports_get_and_set_no_session(tmp_path: Path) -> None:
    """Browsers send a host's cookies to all of its ports, and call those the same site."""
    ports = free_range(1)
    async with running(
        tmp_path / "data",
        runtime=FakeRuntime(tmp_path / "run"),
        ROOST_DOMAIN=ADDRESS,
        ROOST_AGENT_PORTS=f"{ports[0]}-{ports[-1]}",
    ) as server:
        key, browser = server.key(), Browser(server, ADDRESS)
        agent = (await server.client(key, ADDRESS).post("/v0/agents", json={"name": "Ada"})).json()["agent"]
        answer = await browser.sign_in({"key": key})
        cookie = answer.headers["set-cookie"].partition(";")[0]
        assert cookie.startswith(f"p{server.port}_roost_session=")
        assert (await browser.send("GET", "/v0/agents")).status_code == 200
        assert (await browser.send("GET", "/v3/files/private")).status_code == 200
        for page in ({"Origin": agent["url"]}, {"Sec-Fetch-Site": "same-site"}):
            assert (await browser.send("GET", "/v0/agents", headers=page)).status_code == 403
            assert (await browser.send("DELETE", "/v0/session", headers=page)).status_code == 403
        port = httpx.URL(agent["url"]).port
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", trust_env=False) as own:
            headers = {"Host": f"{ADDRESS}:{port}", "Cookie": f"{cookie}; p{port}_{cookie}"}
            assert (await own.get("/v0/status", headers=headers)).status_code == 401
            assert (await own.get("/v0/session", headers=headers)).status_code == 404
            upgrade = dict(line.split(": ") for line in HANDSHAKE)
            for path in ("/v0/events", "/v0/logs"):
                for more in ({}, upgrade, {**upgrade, "Origin": browser.origin}):
                    answer = await own.get(path, headers={**headers, **more})
                    assert answer.status_code == 401, (path, more)


async def test_a_public_domain(tmp_path: Path) -> None:
    """At the bare domain over HTTPS, browsers keep the cookie for this host and for HTTPS alone."""
    environment: dict[str, Any] = {
        "ROOST_DOMAIN": "roost.example.com",
        "ROOST_PUBLIC_SCHEME": "https",
        "ROOST_PUBLIC_PORT": "443",
    }
    async with running(tmp_path / "data", runtime=FakeRuntime(tmp_path / "run"), **environment) as server:
        key = server.key()
        browser = Browser(server, "roost.example.com")
        browser.origin = "https://roost.example.com"
        made = await server.client(key, "agents.roost.example.com").post("/v0/session/links", json={})
        assert made.json()["url"].startswith("https://roost.example.com/login#code=rst_login_")
        answer = await browser.sign_in({"code": made.json()["url"].partition("#code=")[2]})
        cookie = answer.headers["set-cookie"]
        assert cookie.startswith("__Host-roost_session=rst_session_")
        assert cookie.endswith("; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict; Secure")
        for path in ("/v0/agents", "/v3/files/private", "/v0/session"):
            assert (await browser.send("GET", path)).status_code == 200, path
        plain = {"Cookie": browser.http.headers["Cookie"].removeprefix("__Host-")}
        assert (await browser.send("GET", "/v0/session", headers=plain)).json() == SIGNED_OUT
        insecure = {"Origin": "http://roost.example.com"}
        assert (await browser.send("DELETE", "/v0/session", headers=insecure)).status_code == 403
        assert (await browser.send("DELETE", "/v0/session")).status_code == 204
