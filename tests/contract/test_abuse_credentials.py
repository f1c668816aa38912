"""Credentials at every kind of host: what programs see of them, and what pages of others can do (A12-A17, G9-G12)."""

import base64
from collections.abc import AsyncIterator, Mapping, Sequence

import pytest

from tests.contract.endpoints import routes
from tests.contract.hosts import GATEWAY_KINDS, HANDSHAKE, PROGRAM_KINDS, HostsEnv, parse_replies, running_hosts

AGENT_KINDS = (*GATEWAY_KINDS, *PROGRAM_KINDS)
PROTECTED_KINDS = tuple(kind for kind in AGENT_KINDS if not kind.startswith("open"))


@pytest.fixture(scope="module")
async def hosts_env(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[HostsEnv]:
    async with running_hosts(tmp_path_factory.mktemp("credentials") / "data") as hosts_env:
        yield hosts_env


def for_kinds(kinds: Sequence[str]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("kind", kinds)


@for_kinds(AGENT_KINDS)
async def test_no_program_sees_a_gateway_token(hosts_env: HostsEnv, kind: str) -> None:
    token, site = hosts_env.agent["gatewayToken"], hosts_env.sites[kind]
    basic = base64.b64encode(f"git:{token}".encode()).decode()
    good = f"Authorization: Bearer {token}"
    other = hosts_env.victim["gatewayToken"]
    for path, lines in (
        ("/echo", (good,)),
        ("/echo", (good, good)),
        ("/echo", (f"Authorization: bearer  {token}",)),
        (f"/echo?token={token}", ()),
        (f"/echo?a=1&token={token}&token={token}", ()),
        (f"/echo?%74%6fken={token}&token={token}", ()),
        (f"/echo?token={token.replace('_', '%5f')}", ()),
        ("/echo", (f"Cookie: gw_token={token}",)),
        ("/echo", (f"Cookie: a=1;  gw_token = {token} ;b=2",)),
        ("/echo", (f'Cookie: gw_token="{token}"; gw_token={token}',)),
        ("/echo", (f"Cookie: a=1; \t gw_token\t=\t{token}",)),
        ("/echo", (good, f"Cookie: gw_token={token}", f"Cookie: b=1; gw_token={token}")),
        ("/echo", (good, f"Referer: http://{site.host}/x?token={token}#y")),
        ("/echo", (good, f"Proxy-Authorization: Bearer {token}")),
        (f"/echo?token={other}", (good, f"Cookie: gw_token={other}")),
    ):  # fmt: skip
        reply = await hosts_env.ask(site, "GET {path}", *lines, path=path, token=None)
        assert reply.status == 200, (path, lines, reply)
        assert "rst_gw_" not in reply.body.decode().replace("%5f", "_"), (path, lines, reply)
        assert basic not in reply.body.decode()
    if kind.startswith("open"):
        reply = await hosts_env.ask(site, "GET {path}", f"Authorization: Basic {basic}", path="/echo", token=None)
        assert basic not in reply.json()["head"]


@for_kinds(PROTECTED_KINDS)
async def test_wrong_credentials_are_refused(hosts_env: HostsEnv, kind: str) -> None:
    token, site = hosts_env.agent["gatewayToken"], hosts_env.sites[kind]
    basic = base64.b64encode(f"git:{token}".encode()).decode()
    for path, line in (
        ("/echo", "Accept: */*"),
        ("/echo", f"Cookie: \xa0gw_token={token}"),  # no space of HTTP: it would reach the program
        ("/echo", f"Cookie: gw_token\x85={token}"),
        ("/echo", f"Cookie: GW_TOKEN={token}; __Host-gw_token={token}"),
        ("/echo", f"Authorization: Basic {basic}"),
        ("/echo", f"Authorization: {token}"),
        ("/echo", f"Proxy-Authorization: Bearer {token}"),
        (f"/echo?Token={token}", "Accept: */*"),
        (f"/echo?%74oken={token}", "Accept: */*"),
        (f"/echo?x=1;token={token}", "Accept: */*"),
        ("/echo", f"Authorization: Bearer {hosts_env.victim['gatewayToken']}"),
        ("/echo", f"Authorization: Bearer {hosts_env.key}"),
        ("/echo", f"Authorization: Bearer {hosts_env.victim_key}"),
    ):
        assert (await hosts_env.ask(site, "GET {path}", line, path=path, token=None)).status == 401, (path, line)
        handshake = site.head("GET {path}", *HANDSHAKE, line, path=path.replace("/echo", "/ws"), token=None)
        assert await hosts_env.shake_hands(handshake) == 401, (path, line)


@for_kinds(PROGRAM_KINDS)
async def test_a_url_with_a_token_is_told_to_nobody(hosts_env: HostsEnv, kind: str) -> None:
    """A page leaves it by a redirect; other responses have no Referer, whatever the program says."""
    token, site = hosts_env.agent["gatewayToken"], hosts_env.sites[kind]
    answer = b"HTTP/1.1 200 OK\r\nReferrer-Policy: unsafe-url\r\nNEL: {}\r\nContent-Length: 0\r\n\r\n"
    number = await hosts_env.plan(answer)
    reply = await hosts_env.ask(site, path=f"/raw?{number}&token={token}", token=None)
    assert [value for name, value in reply.headers if name == "referrer-policy"][-1] == "no-referrer"
    assert reply["nel"] is None
    plain = await hosts_env.ask(site, path=f"/raw?{number}")
    assert [value for name, value in plain.headers if name == "referrer-policy"] == ["unsafe-url"]
    page = await hosts_env.ask(site, "GET {path}", "Accept: text/html", path=f"/echo?token={token}&a=1", token=None)
    if kind.startswith("open"):
        assert (page.status, page["referrer-policy"], page["set-cookie"]) == (200, "no-referrer", None)
    else:
        assert (page.status, page["referrer-policy"]) == (303, "no-referrer")
        assert page["location"] == f"http://{site.host}{site.prefix}/echo?a=1"
        assert page["set-cookie"] == f"gw_token={token}; Path=/; HttpOnly; SameSite=Lax"


KEPT = ("own=1", "__Host-own=1; Secure; Path=/", "__Secure-own=1; Secure", "a=gw_token", "x=1; Domain=")
DROPPED = (
    *(
        "gw_token=x",
        " gw_token\t=x; Path=/",
        "gw_token",
        "=gw_token=x",
        "gw_token=; Max-Age=0",
        "gw_token=x; Path=/sub",
    ),
    *(
        "a=1; Domain=agents.localhost",
        "a=1; Domain=.agents.localhost",
        "a=1;domain=localhost",
        "a=1; Domain=example.com",
    ),
    *("__Host-a=1; Secure; Path=/; Domain=agents.localhost", "__Secure-a=1; Secure; Domain=localhost"),
    *("a=1; Domain=agents.localhost.", "a=1; Domain={victim}.agents.localhost", "a=1; Path=/;DOMAIN \t=\t.localhost"),
    *("a=1; Domain={host}; Domain=agents.localhost", 'a=1; Domain="agents.localhost"'),
)


@for_kinds(PROGRAM_KINDS)
async def test_cookies_of_programs(hosts_env: HostsEnv, kind: str) -> None:
    """None replaces the gateway token or reaches another agent; also not in hints or trailers."""
    site = hosts_env.sites[kind]
    names = {"host": site.host.partition(":")[0], "victim": hosts_env.victim["agentId"]}
    lines = "".join(f"Set-Cookie: {cookie.format(**names)}\r\n" for cookie in (*KEPT, *DROPPED))
    answer = f"HTTP/1.1 103 Early Hints\r\n{lines}\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n{lines}\r\n"
    number = await hosts_env.plan(f"{answer}0\r\n{lines}\r\n".encode())
    raw = await hosts_env.send(site.head("GET {path}", "Connection: close", path=f"/raw?{number}"))
    for reply in parse_replies(raw):
        assert [value for name, value in reply.headers if name == "set-cookie"] == [*KEPT[:-1], KEPT[-1]]


@for_kinds(PROGRAM_KINDS)
async def test_redirects_of_programs(hosts_env: HostsEnv, kind: str) -> None:
    """They are the client's to follow, and have nothing of its credential (G12)."""
    site, token = hosts_env.sites[kind], hosts_env.agent["gatewayToken"]
    other = f"//{hosts_env.victim['agentId']}.agents.localhost:{hosts_env.port}/"
    for location in (f"http://agents.localhost:{hosts_env.port}/v0/agents", other, "/v0/agents"):
        answer = f"HTTP/1.1 307 Temporary Redirect\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n"
        reply = await hosts_env.ask(site, path=f"/raw?{await hosts_env.plan(answer.encode())}&token={token}")
        assert (reply.status, reply["location"], reply["set-cookie"]) == (307, location, None)
        assert token not in str(reply)


PAGES: Mapping[tuple[str, ...], bool] = {
    (): True,  # no browser
    ("Origin: {own}",): True,
    ("Origin: {own}", "Sec-Fetch-Site: same-origin"): True,
    ("Sec-Fetch-Site: none",): True,
    ("Referer: {own}/page?x=1",): True,
    ("Referer: {own}",): True,
    ("Origin: null",): False,
    ("Origin: http://evil.example",): False,
    ("Origin: {own}.evil.example",): False,
    ("Origin: http://{victim}.agents.localhost:{port}",): False,
    ("Origin: http://agents.localhost:{port}",): False,
    ("Origin: https://{host}",): False,
    ("Origin:",): False,
    ("Sec-Fetch-Site: same-site",): False,
    ("Sec-Fetch-Site: cross-site",): False,
    ("Sec-Fetch-Site: odd",): False,
    ("Origin: {own}", "Sec-Fetch-Site: cross-site"): False,
    ("Referer: http://evil.example/{own}/",): False,
    ("Referer: {own}.evil.example/",): False,
}


@for_kinds(("agent's platform paths", *PROTECTED_KINDS))
async def test_cookies_count_on_the_agents_own_pages(hosts_env: HostsEnv, kind: str) -> None:
    """For changes and WebSockets; a bearer token counts anywhere."""
    site, is_platform = hosts_env.sites[kind], kind == "agent's platform paths"
    cookie = f"Cookie: gw_token={hosts_env.agent['gatewayToken']}"
    post = ("POST {path}", "Content-Length: 0")
    path = "/v0/tasks" if is_platform else site.path.removeprefix(site.prefix)
    for lines, is_own in PAGES.items():
        own = _expand(hosts_env, kind, lines)
        changed = await hosts_env.ask(site, *post, cookie, *own, path=path, token=None)
        assert changed.status == (403 if not is_own else 400 if is_platform else 200), (lines, changed)
        assert (await hosts_env.ask(site, *post, *own, path=path)).status == (400 if is_platform else 200), lines
        assert (await hosts_env.ask(site, "GET {path}", cookie, *own, token=None)).status == 200, lines
        handshake = site.head("GET {path}", *HANDSHAKE, cookie, *own, path=None if is_platform else "/ws", token=None)
        assert await hosts_env.shake_hands(handshake) == (101 if "Origin: {own}" in lines else 403), lines


async def test_no_get_changes_anything(hosts_env: HostsEnv) -> None:
    """A page of someone else can have a browser send any GET with the cookie (A16)."""
    site, path = hosts_env.sites["agent's platform paths"], f"/v0/agents/{hosts_env.agent['agentId']}"
    targets = [target for method, target in routes() if method == "GET" and target.startswith("/v0/agents/{agentId}")]
    lines = (f"Cookie: gw_token={hosts_env.agent['gatewayToken']}", "Origin: null", "Sec-Fetch-Site: cross-site")

    async def state() -> Sequence[object]:
        paths = (path, f"{path}/gateway-token", f"{path}/domains", f"{path}/port-forwarding", f"{path}/tasks")
        return [await hosts_env.call(f"GET {each}") for each in (*paths, f"{path}/files/list", "/v0/secrets")]

    before = await state()
    assert len(targets) > 20
    for target in targets:
        if target.endswith(("/watch", "/events", "/logs")):  # streams, and what the requests themselves add to
            continue
        called = target.replace("{agentId}", hosts_env.agent["agentId"]).replace("{", "").replace("}", "")
        reply = await hosts_env.ask(site, f"GET {called}?action=delete&_method=DELETE&confirm=true", *lines, token=None)
        assert reply.status < 500, (called, reply)
    assert await state() == before


def _expand(hosts_env: HostsEnv, kind: str, lines: Sequence[str]) -> Sequence[str]:
    host = hosts_env.sites[kind].host
    names = {"own": f"http://{host}", "host": host, "victim": hosts_env.victim["agentId"], "port": hosts_env.port}
    return [line.format(**names) for line in lines]
