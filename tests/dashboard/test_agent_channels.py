"""The page of an agent's channels: a refused token, a set-up, and its end."""

from typing import Any

from playwright.async_api import Browser, expect

from tests.dashboard.browser import visiting
from tests.server import RunningServer

TOKEN = "123456789:AAExampleTokenOfATelegramBot0123456"


async def test_channels(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/channels")
        telegram = page.get_by_role("list", name="Channels").get_by_role("listitem").filter(has_text="Telegram")
        await expect(telegram).to_contain_text("Not set up")
        await telegram.get_by_role("button", name="Set up").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("@BotFather")
        await dialog.get_by_label("Bot token").fill("nonsense")
        await dialog.get_by_role("button", name="Set up").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("Request")
        assert "400" in visit.problems.pop()
        await visit.check()
        await visit.picture("channels")
        await dialog.get_by_label("Bot token").fill(TOKEN)
        await dialog.get_by_role("button", name="Set up").click()
        await expect(page.get_by_text("Telegram was set up.")).to_be_visible()
        await expect(telegram.get_by_role("button", name="Change")).to_be_visible()
        assert TOKEN not in await page.content()
        await visit.check()
        await telegram.get_by_role("button", name="Remove").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Remove").click()
        await expect(telegram).to_contain_text("Not set up")
        await visit.check()
