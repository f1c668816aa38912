"""Browser sessions of the dashboard: signing in and out, roles, CSRF, origins, and when a session ends."""

import asyncio
import re
import uuid
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

import httpx2 as httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Origin

from roost.core import clock
from roost.identity.sessions.model import SESSION_LIMIT
from tests.contract.endpoints import routes
from tests.support.server import RunningServer

ON_SERVICES = {"test_a_link_signs_a_browser_in_once", "test_a_session_ends_with_its_key"}
JSON = {"Content-Type": "application/json"}
USED = {"error": "This sign-in link was used or has expired; run `roost dashboard` for a new one"}
NO_CSRF = {"error": "The X-CSRF-Token header is missing or not that of this session"}
FOREIGN = {"error": "Cross-site request refused"}
SIGNED_OUT = {"session": None}


class Browser:
    """A browser at a host of the dashboard."""

    def __init__(self, server: RunningServer, host: str = "localhost") -> None:
        self.origin = f"http://{host}:{server.port}"
        self.http = server.client(host=host)
        self.http.headers.update({"Sec-Fetch-Site": "same-origin"})
        self.csrf = ""

    async def sign_in(self, body: Mapping[str, object], **headers: str) -> httpx.Response:
        answer = await self.http.post("/v0/session", json=body, headers={"Origin": self.origin, **headers})
        if answer.status_code == 200:
            self.csrf = answer.json()["session"]["csrfToken"]
            self.http.headers["Cookie"] = answer.headers["set-cookie"].partition(";")[0]
            self.http.cookies.clear()
        return answer

    async def send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request as a page of the dashboard does."""
        headers = {"Origin": self.origin, "X-CSRF-Token": self.csrf} if method != "GET" else {}
        return await self.http.request(method, path, headers={**headers, **options.pop("headers", {})}, **options)


async def new_code(server: RunningServer, key: str, role: str = "owner") -> str:
    answer = await server.client(key, "localhost").post("/v0/session/links", json={"role": role})
    assert answer.status_code == 201, answer.text
    return answer.json()["url"].partition("#code=")[2]


async def signed_in(server: RunningServer, key: str, role: str = "owner") -> Browser:
    browser = Browser(server)
    answer = await browser.sign_in({"code": await new_code(server, key, role)})
    assert answer.status_code == 200, answer.text
    return browser


@pytest.fixture
def key(server: RunningServer, tenant: str) -> str:
    return server.key(tenant)


async def test_a_link_signs_a_browser_in_once(server: RunningServer, key: str, tenant: str) -> None:
    made = await server.client(key, "localhost").post("/v0/session/links", json={"role": "owner"})
    assert made.json()["url"].startswith(f"http://localhost:{server.port}/login#code=rst_login_")
    browser, code = Browser(server), made.json()["url"].partition("#code=")[2]
    answer = await browser.sign_in({"code": code})
    assert (answer.status_code, answer.headers["cache-control"]) == (200, "no-store")
    session = answer.json()["session"]
    assert list(session) == ["tenant", "role", "plan", "scopes", "csrfToken", "expiresAt", "operator"]
    assert (session["tenant"]["name"], session["role"], session["plan"]) == (tenant, "owner", "paid")
    assert {"org:read", "org:write"} <= set(session["scopes"])
    name, _, attributes = answer.headers["set-cookie"].partition("=")
    assert name == "roost_session"
    assert attributes.partition("; ")[2] == "Path=/; Max-Age=604800; HttpOnly; SameSite=Strict"
    token = attributes.partition(";")[0]
    assert token not in answer.text
    assert (await browser.send("GET", "/v0/session")).json() == answer.json()
    again = await Browser(server).sign_in({"code": code})
    assert (again.status_code, again.json()) == (401, USED)
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize(("tenant", "role", "is_operator"), [("default", "owner", True), ("default", "viewer", False)])
async def test_a_session_tells_whether_it_is_the_operators(
    server: RunningServer, tenant: str, role: str, *, is_operator: bool
) -> None:
    made = await server.client(server.key(tenant), "localhost").post("/v0/session/links", json={"role": role})
    answer = await Browser(server).sign_in({"code": made.json()["url"].partition("#code=")[2]})
    assert answer.json()["session"]["operator"] is is_operator
    others = await server.client(server.key("acme"), "localhost").post("/v0/session/links", json={"role": "owner"})
    answer = await Browser(server).sign_in({"code": others.json()["url"].partition("#code=")[2]})
    assert answer.json()["session"]["operator"] is False


async def test_both_apis_answer_a_session(server: RunningServer, key: str) -> None:
    browser = await signed_in(server, key)
    assert (await browser.send("GET", "/v0/agents")).json()["agents"] == []
    assert (await browser.send("GET", "/v3/files/private")).status_code == 200
    made = await browser.send("POST", "/v3/groups/private", json={"name": "made by a page"})
    assert made.status_code == 200, made.text
    minted = await browser.send("POST", "/v3/pinata/keys", json={"keyName": "k", "permissions": {"admin": True}})
    assert minted.status_code == 200, minted.text


async def test_a_key_signs_in_within_its_scopes(server: RunningServer, tenant: str, key: str) -> None:
    owner = Browser(server)
    assert (await owner.sign_in({"key": key})).json()["session"]["role"] == "owner"
    for scopes, role, expected in (
        ({"org:files:read"}, "viewer", ["org:files:read"]),
        ({"org:files:write"}, "editor", ["org:files:read", "org:files:write"]),
        ({"org:agents:read", "org:agents:write"}, "editor", ["org:agents:read", "org:agents:write"]),
    ):
        limited = Browser(server)
        session = (await limited.sign_in({"key": server.key(tenant, scopes=frozenset(scopes))})).json()["session"]
        assert (session["role"], session["scopes"]) == (role, expected)
        assert (await limited.send("GET", "/v3/pinata/keys")).status_code == 403
    reader = Browser(server)
    await reader.sign_in({"key": server.key(tenant, scopes=frozenset({"org:files:read"}))})
    assert (await reader.send("GET", "/v3/files/private")).status_code == 200
    assert (await reader.send("GET", "/v0/agents")).status_code == 403
    minting = {"keyName": "counted", "permissions": {"admin": True}, "maxUses": 3}
    counted = await server.client(key, "api.localhost").post("/v3/pinata/keys", json=minting)
    refused = await Browser(server).sign_in({"key": counted.json()["JWT"]})
    assert refused.status_code == 403, refused.text


async def test_malformed_sign_ins(server: RunningServer, key: str) -> None:
    for body in ({}, {"code": "x", "key": key}, {"code": ""}, {"code": 1}, {"key": "x" * 5000}, {"code": None}):
        answer = await Browser(server).sign_in(body)
        assert answer.status_code == 400, body
        assert key not in answer.text
    for body in ({"code": "rst_login_" + "0" * 64}, {"key": "no.j.wt"}, {"key": key[:-3]}):
        assert (await Browser(server).sign_in(body)).status_code in {400, 401}, body
    nobody = await Browser(server).http.get("/v0/session")
    assert (nobody.status_code, nobody.json(), nobody.headers["cache-control"]) == (200, SIGNED_OUT, "no-store")
    assert (await Browser(server).http.delete("/v0/session")).status_code == 401
    lone = await Browser(server).http.post("/v0/session", content=b'{"code": "\\ud800"}', headers=JSON)
    assert lone.status_code == 400
    large = await Browser(server).http.post("/v0/session", content=b'{"code": "' + b"x" * 20_000 + b'"}', headers=JSON)
    assert large.status_code == 413


async def test_signing_in_replaces_the_session(server: RunningServer, key: str) -> None:
    """So a token that somebody planted in the browser is never the one that is signed in (fixation)."""
    browser = await signed_in(server, key)
    old = browser.http.headers["Cookie"]
    assert (await browser.sign_in({"code": await new_code(server, key)})).status_code == 200
    assert browser.http.headers["Cookie"] != old
    assert (await Browser(server).http.get("/v0/session", headers={"Cookie": old})).json() == SIGNED_OUT
    planted = Browser(server)
    planted.http.headers["Cookie"] = "roost_session=rst_session_" + "0" * 64
    assert (await planted.sign_in({"code": await new_code(server, key)})).status_code == 200
    assert "0" * 64 not in planted.http.headers["Cookie"]


async def test_two_cookies_of_the_name_open_nothing(server: RunningServer, key: str) -> None:
    """A page of another host below the domain may have set the other one."""
    one, two = await signed_in(server, key), await signed_in(server, key)
    both = f"{one.http.headers['Cookie']}; {two.http.headers['Cookie']}"
    assert (await Browser(server).http.get("/v0/session", headers={"Cookie": both})).json() == SIGNED_OUT


async def test_changes_need_the_csrf_token(server: RunningServer, key: str) -> None:
    browser, other = await signed_in(server, key), await signed_in(server, key)
    for token in (None, "", "0" * 64, other.csrf, browser.csrf.upper() + "0", "\u00e9"):
        headers = {b"Origin": browser.origin.encode()}
        if token is not None:
            headers[b"X-CSRF-Token"] = token.encode()
        for method, path in (("POST", "/v0/agents"), ("DELETE", "/v0/session"), ("POST", "/v3/groups/private")):
            answer = await browser.http.request(method, path, headers=headers)
            assert answer.status_code == 403, (token, path)
        assert (await browser.http.delete("/v0/session", headers=headers)).json() == NO_CSRF
    assert (await browser.send("GET", "/v0/session")).json() != SIGNED_OUT


FOREIGN_PAGES = (
    {"Origin": "null"},
    {"Origin": "http://evil.example"},
    {"Origin": "http://agents.localhost:{port}"},
    {"Origin": "http://abcdefghijklmnop.agents.localhost:{port}"},
    {"Origin": "https://localhost:{port}"},
    {"Origin": "http://localhost"},
    {"Origin": "http://127.0.0.1:{port}"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site"},
)


@pytest.mark.parametrize("page", FOREIGN_PAGES, ids=str)
async def test_pages_of_others_are_refused(server: RunningServer, key: str, page: Mapping[str, str]) -> None:
    """Neither a change, with the right token too, nor a read, nor signing in counts from there."""
    browser = await signed_in(server, key)
    headers = {name: value.format(port=server.port) for name, value in page.items()}
    for method, path in (("POST", "/v0/agents"), ("GET", "/v0/session"), ("GET", "/v3/files/private")):
        answer = await browser.send(method, path, headers=headers)
        assert answer.status_code == 403, (method, path)
    assert (await browser.send("DELETE", "/v0/session", headers=headers)).json() == FOREIGN
    code = await new_code(server, key)
    assert (await Browser(server).sign_in({"code": code}, **headers)).status_code == 403
    assert (await Browser(server).sign_in({"code": code})).status_code == 200


async def test_signing_out_ends_the_session(server: RunningServer, key: str) -> None:
    browser = await signed_in(server, key)
    answer = await browser.send("DELETE", "/v0/session")
    assert (answer.status_code, answer.content) == (204, b"")
    assert answer.headers["set-cookie"] == "roost_session=; Path=/; Max-Age=0; HttpOnly; SameSite=Strict"
    assert (await browser.send("GET", "/v0/session")).json() == SIGNED_OUT
    assert (await browser.send("GET", "/v3/files/private")).status_code == 401


@pytest.mark.parametrize("by_key", [False, True])
async def test_signing_out_everywhere(server: RunningServer, tenant: str, key: str, by_key: bool) -> None:
    browser, other = await signed_in(server, key), await signed_in(server, key)
    foreign = await signed_in(server, server.key(tenant))
    viewer = await signed_in(server, key, role="viewer")
    assert (await viewer.send("DELETE", "/v0/session/all")).status_code == 403
    if by_key:
        answer = await server.client(key).delete("/v0/session/all")
    else:
        answer = await browser.send("DELETE", "/v0/session/all")
    assert answer.json() == {"ended": 3, "agentIds": []}
    assert ("set-cookie" in answer.headers) is not by_key
    for ended in (browser, other, viewer):
        assert (await ended.send("GET", "/v0/session")).json() == SIGNED_OUT
    assert (await foreign.send("GET", "/v0/session")).json() != SIGNED_OUT


async def test_a_session_ends_with_its_key(server: RunningServer, tenant: str, key: str) -> None:
    other = server.key(tenant)
    browser, code = await signed_in(server, other), await new_code(server, other)
    keys = (await server.client(key, "api.localhost").get("/v3/pinata/keys")).json()["keys"]
    newest = keys[0]["key"]
    assert (await server.client(key, "api.localhost").delete(f"/v3/pinata/keys/{newest}")).status_code == 200
    async with asyncio.timeout(1):
        while (await browser.send("GET", "/v0/session")).json() != SIGNED_OUT:
            await asyncio.sleep(0.05)
    assert (await Browser(server).sign_in({"code": code})).json() == USED


async def test_a_session_ends_with_time(server: RunningServer, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    browser, idle = await signed_in(server, key), await signed_in(server, key)
    late_code = await new_code(server, key)
    began = clock.utc_now()

    def move_clock(**passed: float) -> None:
        monkeypatch.setattr(clock, "utc_now", lambda: began + timedelta(**passed))
        server.roost.core.identity.sessions.sessions.verified.drop(lambda _: True)

    move_clock(minutes=11)
    assert (await Browser(server).sign_in({"code": late_code})).json() == USED
    for hours in range(11, 160, 11):
        move_clock(hours=hours)
        assert (await browser.send("GET", "/v0/session")).json() != SIGNED_OUT, hours
    assert (await idle.send("GET", "/v0/session")).json() == SIGNED_OUT
    move_clock(days=7, minutes=1)
    assert (await browser.send("GET", "/v0/session")).json() == SIGNED_OUT


async def test_a_new_session_ends_the_least_used(server: RunningServer, key: str) -> None:
    first, second = await signed_in(server, key), await signed_in(server, key)
    server.roost.core.db.run(
        lambda connection: connection.exec_driver_sql("UPDATE browser_sessions SET seen_at = seen_at - 1000000")
    )
    await first.sign_in({"key": key})
    for _ in range(SESSION_LIMIT - 1):
        assert (await Browser(server).sign_in({"key": key})).status_code == 200
    assert (await second.send("GET", "/v0/session")).json() == SIGNED_OUT
    assert (await first.send("GET", "/v0/session")).json() != SIGNED_OUT


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> AsyncIterator[dict[str, Any]]:
    made = (await server.client(server.key("streams")).post("/v0/agents", json={"name": "Ada"})).json()["agent"]
    yield made
    await server.client(server.key("streams")).delete(f"/v0/agents/{made['agentId']}")


async def test_websockets_need_the_exact_origin(server: RunningServer, agent: dict[str, Any]) -> None:
    browser = await signed_in(server, server.key("streams"))
    url = f"ws://localhost:{server.port}/v0/agents/{agent['agentId']}/logs"
    options: dict[str, Any] = {"additional_headers": {"Cookie": browser.http.headers["Cookie"]}, "host": "127.0.0.1"}
    foreign = [page["Origin"].format(port=server.port) for page in FOREIGN_PAGES if "Origin" in page]
    for origin in (None, *map(Origin, foreign)):
        with pytest.raises(InvalidStatus) as refused:
            await connect(url, origin=origin, proxy=None, **options)
        assert refused.value.response.status_code == 403, origin
    async with connect(url, origin=Origin(browser.origin), proxy=None, **options) as socket:
        assert await socket.recv()
        assert (await browser.send("DELETE", "/v0/session")).status_code == 204
        async with asyncio.timeout(1):
            await socket.wait_closed()
    assert socket.close_code == 1008


async def test_a_viewer_changes_nothing(server: RunningServer, agent: dict[str, Any]) -> None:
    """Each operation that changes something, reveals a token or runs commands is 403."""
    viewer = await signed_in(server, server.key("streams"), "viewer")
    path = f"/v0/agents/{agent['agentId']}"
    assert (await viewer.send("GET", path)).json()["agent"]["gatewayToken"] is None
    unsafe = [row for row in routes() if row[0] in {"POST", "PUT", "PATCH", "DELETE"}]
    assert len(unsafe) > 100
    for method, route in [*unsafe, ("GET", f"{path}/gateway-token"), ("GET", f"{path}/export")]:
        row = routes().get((method, route))
        accepted = set() if row is None else set(row["credentials"])
        if row is not None and not any(kind == "jwt" or kind.endswith(":write") for kind in accepted):
            continue  # no session counts there, or it reads
        called = route.replace("{agentId}", agent["agentId"]).replace("{network}", "private")
        answer = await viewer.send(method, re.sub(r"\{[^}]*\}", str(uuid.uuid4()), called))
        assert answer.status_code == 403, (method, route, answer.text)
    command = f"ws://localhost:{server.port}{path}/console/exec?command=id"
    headers = {"Cookie": viewer.http.headers["Cookie"]}
    with pytest.raises(InvalidStatus) as refused:
        await connect(command, origin=Origin(viewer.origin), additional_headers=headers, host="127.0.0.1", proxy=None)
    assert refused.value.response.status_code == 403


async def test_an_editor_manages_no_keys(server: RunningServer, agent: dict[str, Any]) -> None:
    editor = await signed_in(server, server.key("streams"), "editor")
    path = f"/v0/agents/{agent['agentId']}"
    for method, refused in (
        ("DELETE", path),
        ("POST", "/v3/pinata/keys"),
        ("DELETE", "/v3/pinata/keys/x"),
        ("POST", "/v0/session/links"),
    ):
        assert (await editor.send(method, refused, json={})).status_code == 403, refused
    written = await editor.send("POST", f"{path}/console/exec", json={"command": "echo hello"})
    assert written.json()["stdout"] == "hello\n"
    assert (await editor.send("POST", "/v3/groups/private", json={"name": "g"})).status_code == 200


async def test_who_makes_links(server: RunningServer, agent: dict[str, Any]) -> None:
    key = server.key("streams")
    owner = await signed_in(server, key)
    assert (await owner.send("POST", "/v0/session/links", json={"role": "viewer"})).status_code == 201
    assert (await server.client(key).post("/v0/session/links", json={})).status_code == 201
    for client in (
        server.agent_client(agent),
        server.client(agent["gatewayToken"], "localhost"),
        server.client(host="localhost"),
    ):
        assert (await client.post("/v0/session/links", json={})).status_code in {401, 404}
    limited = server.key("streams", scopes=frozenset({"org:agents:write", "org:agents:read"}))
    bounded = Browser(server)
    session = (await bounded.sign_in({"code": await new_code(server, limited)})).json()["session"]
    assert (session["role"], session["scopes"]) == ("editor", ["org:agents:read", "org:agents:write"])
    assert (await server.client(key).post("/v0/session/links", json={"role": "admin"})).status_code == 400


async def test_a_header_counts_before_the_cookie(server: RunningServer, key: str) -> None:
    browser = await signed_in(server, key)
    other = server.key("someone else")
    answer = await browser.http.post("/v0/session/links", json={}, headers={"Authorization": f"Bearer {other}"})
    assert answer.status_code == 201
    refused = await browser.send("GET", "/v0/agents", headers={"Authorization": "Bearer wrong"})
    assert refused.status_code == 401
