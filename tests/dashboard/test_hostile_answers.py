"""Every page with hostile texts in the server's answers: they are shown as texts, and nothing else happens."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, Route, expect

from tests.dashboard.browser import Visit
from tests.dashboard.hostile_answers import (
    ADDRESS,
    MARKUP,
    MODEL_SERVERS,
    HostileAnswers,
    answer_with_tools,
    fill_tenant,
    history_with_tools,
)
from tests.dashboard.hostile_texts import HACK
from tests.dashboard.test_hostile_texts import PageMonitor, watching
from tests.support.server import RunningServer, running

pytestmark = pytest.mark.timeout(300)
expect.set_options(timeout=20_000)
TEXTS = pytest.mark.parametrize("text", [MARKUP, ADDRESS], ids=["markup", "address"])
AGENT_PAGES = ("overview", "channels", "routes", "devices", "tasks", "secrets", "snapshots", "usage")
PAGES = (
    *("/", "/agents", "/secrets", "/keys", "/activity", "/usage"),
    *("/storage/files", "/storage/groups", "/storage/gateways", "/storage/payments"),
    *(f"/agents/{{id}}/{name}" for name in AGENT_PAGES),
)
SEEN = {
    *("changeSummary", "description", "displayName", "domain", "label", "lastError", "model", "name", "pathPrefix"),
    *("platform", "remoteIp", "subdomain", "value"),
}
"""Fields that must have been there, so that no page is tested without them."""


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("d") / "data") as server:
        yield server


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> dict[str, Any]:
    return await fill_tenant(server)


async def check_texts(visit: Visit, watch: PageMonitor, place: str) -> None:
    await expect(visit.page.locator("#content, [role=dialog]").last).to_contain_text(HACK)
    await watch.check(place)


@TEXTS
async def test_pages_survive_hostile_answers(
    browser: Browser, server: RunningServer, agent: dict[str, Any], text: str
) -> None:
    async with watching(browser, server) as (visit, watch):
        answers = HostileAnswers(visit.page, text)
        await answers.start()
        for path in PAGES:
            await visit.open(path.format(id=agent["agentId"]))
            await check_texts(visit, watch, path)
            await visit.picture(f"hostile-answer{path.replace('/', '-')}")
        assert SEEN - answers.replaced.keys() == set()


@TEXTS
async def test_dialogs_survive_hostile_answers(
    browser: Browser, server: RunningServer, agent: dict[str, Any], text: str
) -> None:
    """The runs of a task, matches of a search, and model servers of the machine."""
    async with watching(browser, server) as (visit, watch):
        page, answers = visit.page, HostileAnswers(visit.page, text)
        await answers.start()
        await page.route("**/v0/model-servers", lambda route: route.fulfill(json=answers.replace(MODEL_SERVERS)))
        await visit.open("/")
        await expect(page.locator("strong", has_text="label")).to_be_visible()
        await check_texts(visit, watch, "model servers")
        await visit.open(f"/agents/{agent['agentId']}/tasks")
        await page.get_by_role("button", name="Runs").click()
        await expect(page.get_by_role("dialog").get_by_role("listitem").first).to_be_visible()
        await watch.check("runs")
        await visit.open(f"/storage/vectors?group={agent['group']}")
        await page.get_by_label("What do you look for?").fill("When is the boiler serviced?")
        await page.get_by_role("button", name="Search", exact=True).click()
        await expect(page.get_by_role("list", name="Matches")).to_contain_text(HACK)
        await check_texts(visit, watch, "matches")
        assert {"models", "text"} - answers.replaced.keys() == set()


@TEXTS
async def test_tools_in_the_chat(browser: Browser, server: RunningServer, agent: dict[str, Any], text: str) -> None:
    """Tools in the stream of an answer, and in the history."""
    history: dict[str, Any] = {"conversationId": None, "messages": [], "isAnswering": False}

    async def answer(route: Route) -> None:
        if route.request.method == "POST":
            await route.fulfill(status=202, json={"conversationId": "chat-1"})
        else:
            await route.fulfill(json=history)

    async with watching(browser, server) as (visit, watch):
        page, path = visit.page, f"/v0/agents/{agent['agentId']}/chat"
        body = answer_with_tools(text)
        await page.route(f"**{path}/messages*", answer)
        await page.route(f"**{path}/answer*", lambda route: route.fulfill(body=body, content_type="text/event-stream"))
        await visit.open(f"/agents/{agent['agentId']}/chat")
        await page.get_by_label("Message").fill("Use a tool")
        await page.get_by_role("button", name="Send").click()
        await expect(page.get_by_text("end of it")).to_be_visible()
        await expect(page.get_by_text("done", exact=True)).to_be_visible()
        await page.locator("article summary").click()
        await check_texts(visit, watch, "tools")
        history |= history_with_tools(text)
        await page.reload()
        await expect(page.get_by_text("failed", exact=True)).to_be_visible()
        await page.locator("article summary").click()
        await check_texts(visit, watch, "tools of the history")
