"""The page of an agent's secrets: store one, detach it, attach it again."""

from typing import Any

from playwright.async_api import Browser, expect

from tests.dashboard.browser import visiting
from tests.support.server import RunningServer

VALUE = "sk-not-to-be-shown"


async def test_secrets_are_attached_and_detached(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/secrets")
        await page.get_by_role("button", name="New secret").click()
        await page.get_by_label("Name").fill("OPENAI=KEY")
        await page.get_by_label("Value").fill(VALUE)
        await page.get_by_role("dialog").get_by_role("button", name="New secret").click()
        await expect(page.get_by_role("alert")).to_contain_text("Request")
        assert "400" in visit.problems.pop()
        await page.get_by_label("Name").fill("OPENAI_API_KEY")
        await visit.check()
        await page.get_by_role("dialog").get_by_role("button", name="New secret").click()
        item = page.get_by_role("list", name="Secrets").get_by_role("listitem")
        await expect(item).to_contain_text("OPENAI_API_KEY")
        await item.get_by_role("button", name="Detach").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Detach").click()
        await expect(page.get_by_text("No secrets yet")).to_be_visible()
        await page.get_by_role("button", name="Undo").click()
        await expect(item).to_contain_text("OPENAI_API_KEY")
        await expect(page.get_by_text("It is restored.")).to_be_visible()
        await item.get_by_role("button", name="Detach").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Detach").click()
        await expect(page.get_by_text("No secrets yet")).to_be_visible()
        await page.get_by_role("button", name="Attach a stored secret").click()
        await page.get_by_role("dialog").get_by_role("button", name="Attach", exact=True).click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Attach").click()
        await expect(item).to_contain_text("OPENAI_API_KEY")
        assert VALUE not in await page.content()
        await visit.check()
        await visit.picture("secrets")
