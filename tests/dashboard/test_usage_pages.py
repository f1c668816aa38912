"""The usage of a tenant and of an agent, as charts and tables."""

import re
from datetime import timedelta
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from roost.agents.models.gateway import store
from roost.agents.models.gateway.model import ModelUsage
from roost.core import clock
from tests.dashboard.browser import SIZES, visiting
from tests.support.server import RunningServer

DAYS = 60


async def _use(server: RunningServer, agent: dict[str, Any]) -> None:
    """Record usage of 60 days, by two models, by an agent, a deleted one, and the tenant itself."""
    tenant, today = agent["userId"], clock.utc_now().date()
    usages = [
        ModelUsage(tenant, who, model, (today - timedelta(days=day)).isoformat(), 3, 900 + 40 * day, 300 + 7 * day)
        for day in range(0, DAYS, 2)
        for who in (agent["agentId"], "deletedagent", "")
        for model in ("openai/gpt-5", "anthropic/a-model-with-a-name-that-is-long-<b>")
    ]
    await server.roost.core.db.write(lambda connection: store.add_usage(connection, usages))


async def _serve(server: RunningServer) -> None:
    """Open a file twice through the tenant's gateway."""
    client = server.client(server.key(), "localhost")
    made = await client.post("/v3/files", files={"file": ("a.txt", b"a" * 5000), "network": (None, "public")})
    domain = (await client.get("/v3/gateways")).json()["data"]["rows"][0]["domain"]
    visitor = server.client(host=f"{domain}.gateways.localhost")
    for _ in range(2):
        assert (await visitor.get(f"/ipfs/{made.json()['data']['cid']}")).status_code == 200


async def test_usage_shows_the_sums_of_the_api(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, role="viewer") as visit:
        page = visit.page
        await visit.open("/usage")
        await expect(page.get_by_role("heading", name="No model was used in this period")).to_be_visible()
        await expect(page.get_by_role("heading", name="Nothing was served in this period")).to_be_visible()
        await _use(server, agent)
        await _serve(server)
        await page.reload()
        await expect(page.get_by_role("img", name="Tokens by day")).to_be_visible()
        await expect(page.get_by_role("region", name="By agent").get_by_text("deletedagent (deleted)")).to_be_visible()
        requests = page.locator("dd").get_by_text("270", exact=True)  # 15 days of 30, 3 agents, 2 models, 3 requests
        await expect(requests).to_be_visible()
        await expect(page.get_by_text("1 file, 5 KB")).to_be_visible()
        await page.get_by_text("As a table").nth(1).click()
        await expect(page.get_by_role("region", name="Requests by day").get_by_role("row")).to_have_count(31)
        await expect(page.get_by_role("region", name="Requests by day").get_by_role("row").nth(1)).to_contain_text("2")
        await visit.check()
        await page.get_by_role("button", name="Period").click()
        await page.get_by_role("option", name="7 days").click()
        await expect(page).to_have_url(re.compile(r"/usage\?days=7$"))
        await expect(page.locator("dd").get_by_text("72", exact=True)).to_be_visible()
        await page.get_by_role("link", name="Ada").click()
        await expect(page).to_have_url(re.compile(rf"/agents/{agent['agentId']}/usage\?days=7$"))
        await expect(page.locator("dd").get_by_text("24", exact=True)).to_be_visible()
        await visit.check()


@pytest.mark.parametrize("size", SIZES)
async def test_charts_fit_each_size(browser: Browser, server: RunningServer, agent: dict[str, Any], size: str) -> None:
    async with visiting(browser, server, size, role="owner") as visit:
        await visit.open("/usage?days=90")
        await expect(visit.page.get_by_role("img", name="Tokens by day").locator("canvas")).to_be_visible()
        await visit.picture("usage")
        await visit.page.get_by_role("img", name="Bytes sent by day").scroll_into_view_if_needed()
        await visit.picture("usage-gateways")
        await visit.open(f"/agents/{agent['agentId']}/usage")
        await visit.picture("agent-usage")
        await visit.check()
