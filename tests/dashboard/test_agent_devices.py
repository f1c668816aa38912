"""The page of an agent's devices: they ask, and are approved one by one or all at once."""

from typing import Any

from playwright.async_api import Browser, expect

from tests.dashboard.browser import visiting
from tests.support.server import RunningServer


async def test_devices_are_approved_and_removed(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    gateway = server.agent_client(agent)
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/devices")
        await expect(page.get_by_text("No devices yet")).to_be_visible()
        for name in ("laptop", "phone", "tablet"):
            answer = await gateway.post("/devices/connect", json={"deviceId": name, "displayName": name.title()})
            assert answer.status_code < 500
        pending = page.get_by_role("list", name="Waiting for approval").get_by_role("listitem")
        await expect(pending).to_have_count(3)
        await visit.check()
        await pending.filter(has_text="laptop").get_by_role("button", name="Approve").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Approve").click()
        await expect(pending).to_have_count(2)
        await page.get_by_role("button", name="Approve all").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Approve all").click()
        await expect(page.get_by_text("2 devices were approved.")).to_be_visible()
        await expect(page.get_by_role("list", name="Approved").get_by_role("listitem")).to_have_count(3)
        await expect(page.get_by_text("No device waits.")).to_be_visible()
        await visit.check()
        await visit.picture("devices")
