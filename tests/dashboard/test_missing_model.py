"""The form that takes a model's key: at each agent without a model, also beside others and after the first steps."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.dashboard.browser import visiting
from tests.support.server import RunningServer, running

TENANT = "modelless"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("modelless") / "data") as server:
        yield server


@pytest.fixture(scope="module")
async def agents(server: RunningServer) -> list[dict[str, Any]]:
    client = server.client(server.key(TENANT))
    return [(await client.post("/v0/agents", json={"name": name})).json()["agent"] for name in ("Ada", "Grace")]


@pytest.mark.parametrize("size", ["desktop", "phone"])
async def test_each_agent_can_be_given_a_key(
    browser: Browser, server: RunningServer, agents: list[dict[str, Any]], size: str
) -> None:
    async with visiting(browser, server, size, role="owner", tenant=TENANT) as visit:
        page = visit.page
        for agent in agents:
            await visit.open("/")
            await page.get_by_role("link", name=f"Give {agent['name']} a language model").click()
            await expect(page.get_by_role("heading", name=agent["name"])).to_be_visible()
            await expect(page.get_by_label("API key")).to_be_visible()
            await visit.open(f"/agents/{agent['agentId']}/chat")
            await page.get_by_role("link", name="Give it a language model").click()
            await expect(page.get_by_label("API key")).to_be_visible()
            await visit.open(f"/agents/{agent['agentId']}/settings")
            await expect(page.get_by_label("API key")).to_be_visible()
            await visit.check()
        await visit.open(f"/agents/{agents[0]['agentId']}/overview")
        await page.get_by_label("API key").scroll_into_view_if_needed()
        await visit.picture("overview")
        await visit.open(f"/agents/{agents[0]['agentId']}/chat")
        await visit.picture("chat")
        await visit.open("/")
        await visit.picture("home")
        await visit.check()


async def test_a_reader_is_offered_none(browser: Browser, server: RunningServer, agents: list[dict[str, Any]]) -> None:
    async with visiting(browser, server, role="viewer", tenant=TENANT) as visit:
        for name in ("overview", "settings", "chat"):
            await visit.open(f"/agents/{agents[0]['agentId']}/{name}")
            await expect(visit.page.get_by_text("language model")).to_have_count(0)
        await visit.check()
