"""A bot's token whose platform did not answer: what was not checked, why, and another check."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.dashboard.browser import visiting
from tests.drivers.chat_platform.stand_in import FakeTokenApi, platforms
from tests.support.server import RunningServer, running

UNWELL = {
    name: f"98765432{at}:AAExampleTokenThatIsunwell0123456789" for at, name in enumerate(("desktop", "phone", "home"))
}


@pytest.fixture(scope="module")
def fake_platforms() -> Iterator[FakeTokenApi]:
    with platforms() as found:
        yield found


@pytest.fixture(scope="module")
async def server(
    tmp_path_factory: pytest.TempPathFactory, fake_platforms: FakeTokenApi
) -> AsyncIterator[RunningServer]:
    folder = tmp_path_factory.mktemp("checks") / "data"
    async with running(folder, ROOST_TELEGRAM_API=fake_platforms.url) as server:
        yield server


@pytest.mark.parametrize("size", ["desktop", "phone"])
async def test_a_token_that_was_not_checked_is_checked_again(
    browser: Browser, server: RunningServer, fake_platforms: FakeTokenApi, size: str
) -> None:
    tenant, client = f"checks-{size}", server.client(server.key(f"checks-{size}"))
    agent = (await client.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
    fake_platforms.trouble, fake_platforms.known = 503, set()
    async with visiting(browser, server, size, role="owner", tenant=tenant) as visit:
        page, dialog = visit.page, visit.page.get_by_role("dialog")
        await visit.open(f"/agents/{agent['agentId']}/channels")
        telegram = page.get_by_role("list", name="Channels").get_by_role("listitem").filter(has_text="Telegram")
        await telegram.get_by_role("button", name="Set up").click()
        await dialog.get_by_label("Bot token").fill(UNWELL[size])
        await dialog.get_by_role("button", name="Connect").click()
        await expect(dialog.get_by_text("The token was not checked.")).to_be_visible()
        await expect(dialog.get_by_text("503")).to_be_visible()
        done = dialog.locator("li[class*=done]")
        await expect(done).to_have_count(1)  # who may write, which is stored
        await visit.check()
        await visit.picture("steps")
        await dialog.get_by_role("button", name="Done").click()
        await expect(telegram.get_by_text("The token was not checked.")).to_be_visible()
        await page.reload()
        await expect(telegram.get_by_text("The token was not checked.")).to_contain_text("503")
        await expect(telegram.locator("time")).to_be_visible()
        fake_platforms.trouble = 502
        await telegram.get_by_role("button", name="Check again").click()
        await expect(telegram.get_by_text("502")).to_be_visible()
        fake_platforms.trouble = None
        await telegram.get_by_role("button", name="Check again").click()
        await expect(telegram.get_by_text("Telegram rejected the bot token")).to_be_visible()
        assert "400 POST" in visit.problems.pop()
        await visit.check()
        await visit.picture("rejected")
        fake_platforms.known = {UNWELL[size]}
        await telegram.get_by_role("button", name="Check again").click()
        await expect(telegram.get_by_text("Bot @weather_bot")).to_be_visible()
        await expect(telegram.get_by_role("button", name="Check again")).to_have_count(0)


async def test_home_names_the_reason(browser: Browser, server: RunningServer, fake_platforms: FakeTokenApi) -> None:
    client = server.client(server.key("checks-home"))
    agent: dict[str, Any] = (await client.post("/v0/agents", json={"name": "Ada"})).json()["agent"]
    fake_platforms.trouble, fake_platforms.known = None, {UNWELL["home"]}
    path = f"/v0/agents/{agent['agentId']}/channels/telegram"
    assert (await client.post(path, json={"botToken": UNWELL["home"]})).is_success
    async with visiting(browser, server, role="owner", tenant="checks-home") as visit:
        card = visit.page.locator("section", has=visit.page.get_by_role("heading", name="Chat channels"))
        await expect(card.get_by_text("Failed", exact=True)).to_be_visible()
        await expect(card.get_by_text("getMe failed")).to_be_visible()
        await visit.check()
        await visit.picture("home")
