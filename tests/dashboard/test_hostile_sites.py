"""Hostile pages beside the dashboard in one browser: other sites, other ports of the host, and pages of agents."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from playwright.async_api import Browser, BrowserContext, Page, Response, expect

from roost.drivers.runtime.fake import FakeRuntime
from tests.contract.hosts import PORT as PROGRAM_PORT
from tests.contract.hosts import PROGRAM
from tests.dashboard.browser import chromium
from tests.platforms.tls import Authority
from tests.support.server import RunningServer, running

expect.set_options(timeout=20_000)
DOMAIN, FOREIGN = "roost.example", "elsewhere.example"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 21\r\nConnection: close\r\n"
HOSTILE_PAGE = HEAD + b"\r\n<h1>A nice page!</h1>"
OPENED_MS = 20_000

ATTACKS = """async ({ target, agentId }) => {
  const results = {};
  const outcome = async (name, attempt) => {
    try { results[name] = String(await attempt()); } catch (error) { results[name] = 'refused'; }
  };
  const url = (path) => target + path;
  const socket = (path) => new Promise((done) => {
    const opened = new WebSocket(url(path).replace('http', 'ws'));
    opened.onopen = () => done('open');
    opened.onerror = () => done('refused');
  });
  const element = (tag, attributes) => new Promise((done) => {
    const made = document.createElement(tag);
    made.onload = () => done('loaded');
    made.onerror = () => done('refused');
    Object.assign(made, attributes);
    document.head.append(made);
  });
  const all = { credentials: 'include' };
  const write = (method, type, body) => ({ ...all, method, body, headers: { 'Content-Type': type } });
  const agent = '{"name": "made by another site"}';
  await outcome('read', async () => (await fetch(url('/v0/agents'), all)).text());
  await outcome('read session', async () => (await fetch(url('/v0/session'), all)).text());
  await outcome('read files', async () => (await fetch(url('/v3/files/private'), all)).text());
  await outcome('blind read', async () => (await fetch(url('/v0/agents'), { ...all, mode: 'no-cors' })).type);
  await outcome('write', async () => (await fetch(url('/v0/agents'), write('POST', 'application/json', agent))).status);
  for (const body of [agent, new Blob([agent])]) {
    const options = { ...all, method: 'POST', mode: 'no-cors', body };
    await outcome('blind write', async () => (await fetch(url('/v0/agents'), options)).type);
  }
  const restart = url(`/v0/agents/${agentId}/restart`);
  await outcome('blind restart', async () => (await fetch(restart, { ...all, method: 'POST', mode: 'no-cors' })).type);
  await outcome('delete', async () => (await fetch(url('/v0/agents/' + agentId), { ...all, method: 'DELETE' })).status);
  await outcome('sign out', async () => (await fetch(url('/v0/session'), { ...all, method: 'DELETE' })).status);
  await outcome('beacon', () => navigator.sendBeacon(url('/v0/agents'), agent) && 'sent');
  await outcome('events', () => new Promise((done) => {
    const source = new EventSource(url('/v0/events'), { withCredentials: true });
    source.onopen = () => done('open');
    source.onerror = () => { source.close(); done('refused'); };
  }));
  for (const path of ['/v0/events', `/v0/agents/${agentId}/logs`, `/v0/agents/${agentId}/console/stream`]) {
    await outcome('socket ' + path.split('/').at(-1), () => socket(path));
  }
  await outcome('script', () => element('script', { src: url('/v0/agents') }));
  const module = { src: url('/v0/session'), type: 'module', crossOrigin: 'use-credentials' };
  await outcome('module', () => element('script', module));
  await outcome('style', () => element('link', { rel: 'stylesheet', href: url('/v0/agents') }));
  await outcome('picture', () => element('img', { src: url('/favicon.svg') }));
  await outcome('service worker', () => navigator.serviceWorker.register(url('/assets/x.js')).then(() => 'registered'));
  for (const type of ['application/x-www-form-urlencoded', 'multipart/form-data', 'text/plain']) {
    const form = document.createElement('form');
    const frame = document.createElement('iframe');
    frame.name = 'sink' + type;
    Object.assign(form, { method: 'post', action: url('/v0/agents'), enctype: type, target: frame.name });
    const input = document.createElement('input');
    Object.assign(input, { name: '{"name": "by a form", "x": "', value: '"}' });
    form.append(input);
    document.body.append(frame, form);
    form.submit();
    await new Promise((done) => { frame.onload = done; });
  }
  const frame = document.createElement('iframe');
  frame.src = url('/');
  document.body.append(frame);
  await new Promise((done) => { frame.onload = done; });
  await outcome('frame', () => frame.contentWindow.document.body.innerText);
  results.cookies = document.cookie;
  return results;
}"""
OPEN = """(target) => {
  window.heard = [];
  addEventListener('message', (event) => window.heard.push(event.origin));
  window.opened = window.open(target);
}"""
TOSS = """(domain) => {
  for (const name of ['roost_session', '__Host-roost_session', '__Secure-roost_session']) {
    for (const place of ['', `; Domain=${domain}`]) {
      for (const path of ['/', '/v0', '/v0/session', '/login']) {
        document.cookie = `${name}=rst_session_${'0'.repeat(64)}${place}; Path=${path}; Secure`;
        document.cookie = `${name}=rst_session_${'0'.repeat(64)}${place}; Path=${path}`;
      }
    }
  }
}"""
POST_IN_A_WINDOW = """(action) => {
  const form = document.createElement('form');
  Object.assign(form, { method: 'post', action, target: '_blank' });
  document.body.append(form);
  form.submit();
}"""
SIGN_IN = """({ target, code }) => {
  const body = new Blob([JSON.stringify({ code })]);
  const options = { method: 'POST', mode: 'no-cors', credentials: 'include', body };
  return fetch(`${target}/v0/session`, options);
}"""
STATUS = "(path) => fetch(path).then((answer) => answer.status)"
HARMLESS = {"refused", "opaque", "sent", ""}


@dataclass
class HostileSites:
    """A server with a dashboard, and a hostile page of each kind."""

    server: RunningServer
    agent: dict[str, Any]
    dashboard: str
    pages: dict[str, str]
    management: str

    async def agents(self) -> list[str]:
        answer = await self.server.client(self.server.key(), self.management).get("/v0/agents")
        return [agent["name"] for agent in answer.json()["agents"]]

    async def link(self, tenant: str = "acme") -> str:
        client = self.server.client(self.server.key(tenant), self.management)
        made = (await client.post("/v0/session/links", json={"role": "owner"})).json()["url"]
        return f"{self.dashboard}/login#{made.partition('#')[2]}"


@asynccontextmanager
async def serve_bytes(answer: bytes, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Answer each request with the same bytes."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as listening:
        yield listening.sockets[0].getsockname()[1]


class TlsProxy:
    """What ends TLS in front of a server, at a port that is known before the server's."""

    def __init__(self) -> None:
        self.behind = 0

    @asynccontextmanager
    async def serve(self, tls: ssl.SSLContext) -> AsyncIterator[int]:
        async with await asyncio.start_server(self._forward, "127.0.0.1", 0, ssl=tls) as listening:
            yield listening.sockets[0].getsockname()[1]

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind, ahead = await asyncio.open_connection("127.0.0.1", self.behind)
        both = [asyncio.create_task(_pump(reader, ahead)), asyncio.create_task(_pump(behind, writer))]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in both:
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)
        for one in (ahead, writer):
            one.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while piece := await source.read(65536):
        sink.write(piece)
        await sink.drain()


async def create_hostile_agent(server: RunningServer, management: str) -> tuple[dict[str, Any], str]:
    """Create an agent whose own program serves the hostile page; return the path of the page."""
    api = server.client(server.key(), management)
    agent = (await api.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
    path = f"/v0/agents/{agent['agentId']}"
    await api.put(f"{path}/files/content", params={"path": "program.py"}, content=PROGRAM.read_bytes())
    wait = f"while ! (: </dev/tcp/127.0.0.1/{PROGRAM_PORT}); do :; done"
    start = f"bash -c 'nohup python3 program.py {PROGRAM_PORT} >/dev/null 2>&1 & {wait}' 2>/dev/null"
    assert (await api.post(f"{path}/console/exec", json={"command": start})).json()["exitCode"] == 0
    mappings = [{"pathPrefix": "/open", "port": PROGRAM_PORT, "protected": False}]
    assert (await api.put(f"{path}/port-forwarding", json={"mappings": mappings})).status_code == 200
    host = management.replace("agents.", f"{agent['agentId']}.agents.")
    planned = await server.client(None, host).post("/open/plan", content=HOSTILE_PAGE)
    return agent, f"/open/raw?{planned.text}&close"


@pytest.fixture(scope="module")
async def local(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[HostileSites]:
    """A server on this machine. To browsers all ports of `localhost` are one site, and its agents are others."""
    folder = tmp_path_factory.mktemp("local")
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(running(folder / "data", runtime=FakeRuntime(folder / "run")))
        other = await stack.enter_async_context(serve_bytes(HOSTILE_PAGE))
        agent, path = await create_hostile_agent(server, "agents.localhost")
        pages = {
            "another port": f"http://localhost:{other}/",
            "another loopback name": f"http://127.0.0.1:{other}/",
            "another site": f"http://{FOREIGN}:{other}/",
            "an agent": f"http://{agent['agentId']}.agents.localhost:{server.port}{path}",
        }
        yield HostileSites(server, agent, f"http://localhost:{server.port}", pages, "agents.localhost")


@pytest.fixture(scope="module")
async def public(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[HostileSites]:
    """A server at a domain with HTTPS. To browsers its agents are the same site."""
    folder, management = tmp_path_factory.mktemp("public"), f"agents.{DOMAIN}"
    proxy, tls = TlsProxy(), Authority("our own").server(DOMAIN, f"*.{DOMAIN}", f"*.{management}", FOREIGN)
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(proxy.serve(tls))
        other = await stack.enter_async_context(serve_bytes(HOSTILE_PAGE, tls))
        environment: dict[str, Any] = {
            "ROOST_DOMAIN": DOMAIN,
            "ROOST_PUBLIC_SCHEME": "https",
            "ROOST_PUBLIC_PORT": str(port),
        }
        runtime = FakeRuntime(folder / "run")
        server = await stack.enter_async_context(running(folder / "data", runtime=runtime, **environment))
        proxy.behind = server.port
        agent, path = await create_hostile_agent(server, management)
        pages = {
            "another port": f"https://{DOMAIN}:{other}/",
            "another site": f"https://{FOREIGN}:{other}/",
            "an agent": f"https://{agent['agentId']}.{management}:{port}{path}",
        }
        yield HostileSites(server, agent, f"https://{DOMAIN}:{port}", pages, management)


@pytest.fixture(scope="module")
async def browser() -> AsyncIterator[Browser]:
    """A browser that finds all names of the tests on this machine."""
    async with chromium("--host-resolver-rules=MAP *.example 127.0.0.1") as browser:
        yield browser


@asynccontextmanager
async def signed_in(browser: Browser, place: HostileSites) -> AsyncIterator[tuple[BrowserContext, Page]]:
    """Open a window with the dashboard; it stays open beside the hostile page."""
    context = await browser.new_context(locale="en-US", ignore_https_errors=True)
    page = await context.new_page()
    await page.goto(await place.link())
    await expect(page.get_by_role("heading", name="Home")).to_be_visible()
    try:
        yield context, page
    finally:
        await context.close()


async def is_signed_in(page: Page) -> bool:
    session = "fetch('/v0/session').then((answer) => answer.json()).then(({session}) => session)"
    return await page.evaluate(session) is not None


async def attack(browser: Browser, place: HostileSites, kind: str) -> set[str]:
    """Try everything from a hostile page; return what succeeded."""
    agent_id = place.agent["agentId"]
    async with signed_in(browser, place) as (context, dashboard):
        hostile, done = await context.new_page(), set[str]()

        def note(response: Response) -> None:
            if response.url.startswith(f"{place.dashboard}/v") and response.status < 400:
                path = response.url.removeprefix(place.dashboard).replace(agent_id, "{id}")
                done.add(f"{response.request.method} {path}")

        hostile.on("response", note)
        await hostile.goto(place.pages[kind])
        told = await hostile.evaluate(ATTACKS, {"target": place.dashboard, "agentId": agent_id})
        done |= {name for name, result in told.items() if result not in HARMLESS}
        if any(frame.url.startswith(place.dashboard) for frame in hostile.frames):
            done.add("frame shown")
        if await place.agents() != ["Ada"]:
            done.add("agents changed")
        async with context.expect_page() as opening:
            await hostile.evaluate(POST_IN_A_WINDOW, f"{place.dashboard}/v0/agents/{agent_id}/restart")
        opened = await opening.value
        await opened.wait_for_url(f"{place.dashboard}/**")
        if '"error"' not in await opened.content():
            done.add("POST in a window")
        done |= await _open_a_window(context, hostile, place)
        await hostile.evaluate(TOSS, place.dashboard.partition("://")[2].partition(":")[0])
        await hostile.close()  # its streams take the connections that browsers allow to a host
        if await is_signed_in(dashboard):
            await dashboard.reload()
            await expect(dashboard.get_by_role("heading", name="Home")).to_be_visible()
        else:
            done.add("signed out")
    return done


async def _open_a_window(context: BrowserContext, hostile: Page, place: HostileSites) -> set[str]:
    """Open the dashboard from a hostile page; return which window has the other, and what it told."""
    async with context.expect_page() as opening:
        await hostile.evaluate(OPEN, place.dashboard)
    opened, done = await opening.value, set[str]()
    await opened.locator("h1").wait_for()
    if await opened.evaluate("window.opener") is not None:
        done.add("opener")
    else:
        await hostile.wait_for_function("window.opened.closed", timeout=OPENED_MS)
    if await hostile.evaluate("window.heard"):
        done.add("messages")
    await opened.close()
    return done


@pytest.mark.parametrize("kind", ["another port", "another loopback name", "another site", "an agent"])
async def test_pages_beside_a_local_dashboard(browser: Browser, local: HostileSites, kind: str) -> None:
    # All ports of a host share its cookies; without HTTPS none can be for one origin, so another port can hide it.
    assert await attack(browser, local, kind) == ({"signed out"} if kind == "another port" else set())


@pytest.mark.parametrize("kind", ["another port", "another site", "an agent"])
async def test_pages_beside_a_public_dashboard(browser: Browser, public: HostileSites, kind: str) -> None:
    assert await attack(browser, public, kind) == set()


@pytest.mark.parametrize("where", ["local", "public"])
async def test_no_program_sees_the_session(
    browser: Browser, where: str, local: HostileSites, public: HostileSites
) -> None:
    place = {"local": local, "public": public}[where]
    async with signed_in(browser, place) as (context, _):
        cookies = [one.get("value", "") for one in await context.cookies() if "roost_session" in one.get("name", "")]
        page, domain = await context.new_page(), place.management.removeprefix("agents.")
        await context.add_cookies([{"name": "other", "value": "is seen", "domain": f".{domain}", "path": "/"}])
        await page.goto(place.pages["an agent"])
        for credentials in ("include", "same-origin"):
            await page.evaluate("(credentials) => fetch('/open/echo', { credentials })", credentials)
        seen = await page.evaluate("fetch('/open/seen').then((answer) => answer.text())")
        assert len(cookies) == 1
        # A cookie of the whole domain would get there; Chromium sends none of all of localhost.
        assert ("other=is seen" in seen) == (where == "public")
        assert cookies[0] not in seen


async def test_a_name_that_turned_to_this_machine_is_no_address_of_the_server(
    browser: Browser, local: HostileSites
) -> None:
    """DNS rebinding: the hostile name resolves to the server, so that its page is of the same origin."""
    async with signed_in(browser, local) as (context, dashboard):
        page = await context.new_page()
        answer = await page.goto(f"http://{FOREIGN}:{local.server.port}/")
        assert answer is not None
        assert answer.status == 404
        assert "set-cookie" not in answer.headers
        for path in ("/v0/session", "/v0/agents", "/v3/files/private", "/openapi"):
            assert await page.evaluate(STATUS, path) == 404, path
            assert await dashboard.evaluate(STATUS, path) == 200, path


@pytest.mark.parametrize("kind", ["another site", "an agent"])
async def test_no_site_signs_a_browser_in(browser: Browser, public: HostileSites, kind: str) -> None:
    """A person who is signed in to the account of an attacker enters secrets that the attacker reads."""
    async with signed_in(browser, public) as (context, dashboard):
        link = await public.link("mallory")
        hostile = await context.new_page()
        await hostile.goto(public.pages[kind])
        body = {"target": public.dashboard, "code": link.partition("#code=")[2]}
        await hostile.evaluate(SIGN_IN, body)
        assert await _tenant(dashboard) == "acme"
        await hostile.evaluate("(link) => { location = link }", link)
        await expect(hostile.get_by_role("heading", name="Sign in again?")).to_be_visible()
        assert await _tenant(dashboard) == "acme"
        await hostile.get_by_role("link", name="Stay signed in").click()
        await expect(hostile.get_by_role("heading", name="Home")).to_be_visible()
        assert await _tenant(dashboard) == "acme"
        await dashboard.goto(f"{public.dashboard}/agents")
        await dashboard.goto(link)
        await dashboard.get_by_role("button", name="Use the link").click()
        await expect(dashboard.get_by_text("What runs for mallory on this server")).to_be_visible()


async def _tenant(page: Page) -> str:
    return await page.evaluate(
        "fetch('/v0/session').then((answer) => answer.json()).then(({session}) => session.tenant.name)"
    )
