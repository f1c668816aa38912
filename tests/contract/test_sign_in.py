"""One-time sign-in links: a browser follows one, and nothing else gets in by it."""

from collections.abc import AsyncIterator
from typing import Any

import httpx2 as httpx
import pytest

from tests.support.server import RunningServer

ON_SERVICES = {"test_a_browser_follows_a_link_once"}
BROWSER = {"Accept": "text/html,*/*;q=0.8", "Sec-Fetch-Mode": "navigate"}
EXPIRED = {"error": "This sign-in link was used or has expired; run `roost open` again"}


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> AsyncIterator[dict[str, Any]]:
    api = server.client(server.key())
    made = (await api.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
    yield made
    await api.delete(f"/v0/agents/{made['agentId']}")


def browser(server: RunningServer, agent: dict[str, Any]) -> httpx.AsyncClient:
    client = server.client(host=f"{agent['agentId']}.agents.localhost")
    client.headers.update(BROWSER)
    return client


async def new_link(server: RunningServer, agent: dict[str, Any]) -> str:
    """Return path and query of a new link."""
    answer = await server.client(server.key()).post(f"/v0/agents/{agent['agentId']}/sign-in-link")
    assert answer.status_code == 201, answer.text
    assert list(answer.json()) == ["url", "expiresAt"]
    origin, slash, path = answer.json()["url"].partition("/v0/")
    assert origin == f"http://{agent['agentId']}.agents.localhost:{server.port}"
    return slash + path


async def test_a_browser_follows_a_link_once(server: RunningServer, agent: dict[str, Any]) -> None:
    link, visitor = await new_link(server, agent), browser(server, agent)
    token = (await server.client(server.key()).get(f"/v0/agents/{agent['agentId']}/gateway-token")).json()["token"]
    assert token not in link
    answer = await visitor.get(link)
    assert (answer.status_code, answer.content) == (303, b"")
    assert answer.headers["location"] == f"http://{agent['agentId']}.agents.localhost:{server.port}/"
    assert answer.headers["set-cookie"] == f"gw_token={token}; Path=/; HttpOnly; SameSite=Lax"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"
    cookie = answer.headers["set-cookie"].partition(";")[0]
    assert (await visitor.get("/v0/logs", headers={"Cookie": cookie})).status_code == 200
    visitor.cookies.clear()
    again = await visitor.get(link)
    assert (again.status_code, again.json()) == (401, EXPIRED)
    assert "set-cookie" not in again.headers


async def test_clients_other_than_browsers_leave_the_link_unused(server: RunningServer, agent: dict[str, Any]) -> None:
    link, visitor = await new_link(server, agent), browser(server, agent)
    assert (await visitor.head(link)).status_code == 400
    for headers in ({"Accept": "*/*"}, {"Sec-Fetch-Mode": "cors"}, {"Sec-Purpose": "prefetch"}):
        answer = await visitor.get(link, headers=headers)
        assert (answer.status_code, answer.json()) == (400, {"error": "Open this sign-in link in a browser"})
    assert (await visitor.post(link)).status_code == 405
    for host in ("agents.localhost", "localhost", "api.localhost"):
        assert (await server.client(host=host).get(link, headers=BROWSER)).status_code == 404
    other = browser(server, {"agentId": "b" * 16})
    assert (await other.get(link)).status_code == 401
    assert (await visitor.get(link)).status_code == 303


async def test_a_rotation_ends_links(server: RunningServer, agent: dict[str, Any]) -> None:
    link = await new_link(server, agent)
    await server.client(server.key()).post(f"/v0/agents/{agent['agentId']}/gateway-token/rotate")
    assert (await browser(server, agent).get(link)).status_code == 401


async def test_who_makes_links(server: RunningServer, agent: dict[str, Any]) -> None:
    path = f"/v0/agents/{agent['agentId']}"
    token = (await server.client(server.key()).get(f"{path}/gateway-token")).json()["token"]
    own = f"{agent['agentId']}.agents.localhost"
    assert (await server.client(token, own).post("/v0/sign-in-link")).status_code == 201
    assert (await server.client(token, "localhost").post(f"{path}/sign-in-link")).status_code == 201
    page = {"Cookie": f"gw_token={token}", "Origin": f"http://{own}:{server.port}"}
    refused = [
        await server.client(host=own).post("/v0/sign-in-link", headers=page),
        await server.client(host=own).post(f"/v0/sign-in-link?token={token}"),
        await server.client().post(f"{path}/sign-in-link"),
        await server.client(server.key("other")).post(f"{path}/sign-in-link"),
    ]
    assert [answer.status_code for answer in refused] == [401] * 4
    platform = (await server.client(token, own).post("/v0/platform/token")).json()["token"]
    assert (await server.client(platform).post(f"{path}/sign-in-link")).status_code == 403
    assert (await server.client(server.key()).post("/v0/agents/nobody/sign-in-link")).status_code == 404
