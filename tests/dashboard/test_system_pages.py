"""The operator's page of the system, and the activity of a tenant with links, filters and live changes."""

from typing import Any

import pytest
from playwright.async_api import Browser, expect

from roost import __version__
from tests.dashboard.browser import SIZES, visiting
from tests.support.server import RunningServer

OPERATOR = "default"


@pytest.mark.parametrize("size", SIZES)
async def test_the_operator_sees_the_system(browser: Browser, server: RunningServer, size: str) -> None:
    async with visiting(browser, server, size, role="owner", tenant=OPERATOR) as visit:
        page = visit.page
        await visit.open("/system")
        await expect(page.get_by_text("Everything works")).to_be_visible()
        await expect(page.get_by_text("checks pass")).to_be_visible()
        await page.get_by_text("checks pass").click()
        await expect(page.get_by_text("containers start")).to_be_visible()
        await expect(page.get_by_text(__version__, exact=True)).to_be_visible()
        await expect(page.get_by_text("Running", exact=True)).to_be_visible()
        await visit.picture("system")
        await visit.check()
        await page.evaluate("localStorage['roost.language'] = 'de'")
        await visit.open("/system")
        await expect(page.get_by_role("heading", name="Prüfungen")).to_be_visible()
        await visit.check()


async def test_an_outdated_agent_is_updated(browser: Browser, server: RunningServer) -> None:
    agent = (await server.client(server.key(OPERATOR)).post("/v0/agents", json={"name": "Old"})).json()["agent"]
    async with visiting(browser, server, role="owner", tenant=OPERATOR) as visit:
        page = visit.page
        await visit.open("/system")
        await expect(page.get_by_text("1 agent is behind")).to_be_visible()
        await visit.picture("system-outdated")
        await page.get_by_role("button", name="Update Old").click()
        await expect(page.get_by_text("All your agents have the newest release.")).to_be_visible()
        assert visit.problems == []
    updated = await server.client(server.key(OPERATOR)).get(f"/v0/agents/{agent['agentId']}/update")
    assert updated.json()["updateAvailable"] is False


async def test_others_see_no_system(browser: Browser, server: RunningServer) -> None:
    for role, tenant in (("editor", OPERATOR), ("owner", "acme")):
        async with visiting(browser, server, role=role, tenant=tenant) as visit:
            await expect(visit.page.get_by_role("link", name="Activity", exact=True)).to_be_visible()
            await expect(visit.page.get_by_role("link", name="System", exact=True)).to_have_count(0)
            await visit.open("/system")
            await expect(visit.page.get_by_role("heading", name="for the operator")).to_be_visible()
            await visit.check()


async def test_the_notices_are_served(server: RunningServer) -> None:
    answer = await server.client(host="localhost").get("/third-party-notices.txt")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert "react-dom 19" in answer.text


@pytest.mark.parametrize("size", SIZES)
async def test_activity_shows_hostile_names_as_text(
    browser: Browser, server: RunningServer, agent: dict[str, Any], size: str
) -> None:
    client = server.client(server.key(), "localhost")
    hostile = f"<img src=x onerror='window.hacked=1'> {size}"
    await client.post(
        "/v3/files", files={"file": ("a.txt", size.encode())}, data={"network": "private", "name": hostile}
    )
    async with visiting(browser, server, size, role="viewer") as visit:
        page = visit.page
        await visit.open("/activity")
        changes = page.get_by_role("list", name="Changes, newest first")
        await expect(changes.get_by_text(f"File {hostile} was stored")).to_be_visible()
        created = changes.get_by_role("listitem").filter(has_text="Agent Ada was created")
        await expect(created.get_by_text("by the key test")).to_be_visible()
        await visit.picture("activity")
        await visit.check()
        await client.post("/v0/secrets", json={"name": f"LATER_{size.upper()}", "value": "x"})
        await expect(changes.get_by_text(f"Secret LATER_{size.upper()} was created")).to_be_visible()
        await visit.open(f"/activity?kind=agent&agent={agent['agentId']}")
        await expect(changes.get_by_text("Agent Ada was created")).to_be_visible()
        await expect(changes.get_by_text("was stored")).to_have_count(0)
        await changes.get_by_role("link", name="Agent Ada was created").click()
        await expect(page.get_by_role("heading", name="Ada")).to_be_visible()
        await expect(page.get_by_role("list", name="Activity").get_by_text("Agent Ada").first).to_be_visible()
        assert await page.evaluate("window.hacked") is None
        assert visit.problems == []


async def test_activity_goes_on_after_a_break(browser: Browser, server: RunningServer) -> None:
    client = server.client(server.key(), "localhost")
    async with visiting(browser, server, role="viewer") as visit:
        page, context = visit.page, visit.page.context
        await visit.open("/activity?kind=skill")
        await expect(page.get_by_role("heading", name="Nothing of this kind")).to_be_visible()
        await page.get_by_role("button", name="Show all").click()
        await context.route("**/v0/events*", lambda route: route.abort())
        await context.set_offline(offline=True)
        await client.post("/v0/secrets", json={"name": "MEANWHILE", "value": "x"})
        await context.set_offline(offline=False)
        await context.unroute("**/v0/events*")
        await expect(page.get_by_text("Secret MEANWHILE was created")).to_be_visible()
