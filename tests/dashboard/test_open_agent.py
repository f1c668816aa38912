"""Which agent a page is of, above the page and in the window's title, and one page where there is none."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.dashboard.browser import Visit, visiting
from tests.support.server import RunningServer, running

PAGES = (
    *("overview", "chat", "logs", "terminal", "files", "snapshots", "tasks", "skills", "secrets", "channels"),
    *("devices", "routes", "config", "usage", "settings"),
)


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("open") / "data") as server:
        yield server


@pytest.fixture(scope="module")
async def agents(server: RunningServer) -> list[dict[str, Any]]:
    client = server.client(server.key("open"))
    return [(await client.post("/v0/agents", json={"name": name})).json()["agent"] for name in ("Ada", "Grace")]


@pytest.mark.parametrize("size", ["desktop", "phone"])
async def test_every_page_says_whose_it_is(
    browser: Browser, server: RunningServer, agents: list[dict[str, Any]], size: str
) -> None:
    async with visiting(browser, server, size, role="owner", tenant="open") as visit:
        for path in PAGES:
            await visit.open(f"/agents/{agents[0]['agentId']}/{path}")
            await expect(visit.page).to_have_title(re.compile("Ada"))
            bar = visit.page.get_by_role("group", name="Open agent")
            where = visit.page.get_by_role("main") if path == "overview" else bar
            await expect(where.get_by_text("Ada", exact=True)).to_be_visible()
            await expect(visit.page.get_by_text("Running", exact=True)).to_have_count(1)
            await expect(where.get_by_text("Running", exact=True)).to_be_visible()
            await _wait_for_terminal(visit, path)
            await bar.get_by_role("button", name="Other agents").click()
            await visit.page.get_by_role("menuitem", name="Grace").click()
            await expect(visit.page).to_have_url(f"{visit.origin}/agents/{agents[1]['agentId']}/{path}")
            await expect(visit.page).to_have_title(re.compile("Grace"))
            await _wait_for_terminal(visit, path)
            await visit.check()
        await visit.picture("switched")


async def _wait_for_terminal(visit: Visit, path: str) -> None:
    """Wait for its connection: a browser complains of one that is left while it is made."""
    if path == "terminal":
        await expect(visit.page.get_by_text("Connected", exact=True)).to_be_visible()


async def test_text_typed_for_one_agent_does_not_reach_another(
    browser: Browser, server: RunningServer, agents: list[dict[str, Any]]
) -> None:
    async with visiting(browser, server, role="owner", tenant="open") as visit:
        await visit.open(f"/agents/{agents[0]['agentId']}/chat")
        await visit.page.get_by_role("textbox", name="Message").fill("only for Ada")
        await visit.page.get_by_role("button", name="Other agents").click()
        await visit.page.get_by_role("menuitem", name="Grace").click()
        await expect(visit.page).to_have_title(re.compile("Grace"))
        await expect(visit.page.get_by_role("textbox", name="Message")).to_have_value("")


@pytest.mark.parametrize("path", ["overview", "chat", "files", "settings"])
async def test_one_page_says_that_there_is_no_such_agent(
    browser: Browser, server: RunningServer, agents: list[dict[str, Any]], path: str
) -> None:
    foreign = server.client(server.key("stranger"))
    hidden = (await foreign.post("/v0/agents", json={"name": "Secret"})).json().get("agent", {})
    async with visiting(browser, server, role="owner", tenant="open") as visit:
        for unknown in ("zzzzzzzzzzzzzzzz", hidden.get("agentId", "y" * 16)):
            await visit.page.goto(f"{visit.origin}/agents/{unknown}/{path}")
            await expect(visit.page.get_by_role("heading", name="No such agent")).to_be_visible()
            await expect(visit.page.get_by_text(unknown)).to_be_visible()
            await expect(visit.page.get_by_role("alert")).to_have_count(0)
            visit.problems[:] = [problem for problem in visit.problems if problem[:7] not in {"404 GET", "401 GET"}]
        await visit.check()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        ("/storage/files?group=none", "Group not found"),
        ("/storage/files?network=public&group=00000000-0000-4000-8000-000000000000", "Group not found"),
        ("/activity?agent=zzzzzzzzzzzzzzzz", "There is no agent with the id zzzzzzzzzzzzzzzz here"),
    ],
)
async def test_a_filter_of_what_does_not_exist_says_so(
    browser: Browser, server: RunningServer, agents: list[dict[str, Any]], path: str, told: str
) -> None:
    assert agents
    async with visiting(browser, server, role="owner", tenant="open") as visit:
        await visit.open(path)
        await expect(visit.page.get_by_text(told)).to_be_visible()


async def test_another_link_in_the_tab_of_a_used_one_signs_in(browser: Browser, server: RunningServer) -> None:
    client = server.client(server.key("open"))
    links = [(await client.post("/v0/session/links", json={"role": "owner"})).json()["url"] for _ in range(2)]
    codes = [link.partition("#")[2] for link in links]
    async with visiting(browser, server) as visit:
        await visit.page.goto(f"{visit.origin}/login#{codes[0]}x")
        await expect(visit.page.get_by_role("alert")).to_be_visible()
        await visit.page.evaluate("hash => { location.hash = hash }", codes[1])
        await expect(visit.page.get_by_role("heading", name="Home")).to_be_visible()
