"""What a person does who never read the docs, by the names that are seen. Clicks are counted, and have a budget."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from tests.dashboard.browser import SIZES, visiting
from tests.support.server import RunningServer, running

TOKEN = "123456789:AAExampleTokenOfATelegramBot0123456"
COUNT = """
for (const type of ['pointerdown', 'keydown']) {
  addEventListener(type, (event) => {
    if (event.isTrusted) sessionStorage[type] = Number(sessionStorage[type] ?? 0) + 1;
  }, { capture: true });
}
"""
FOCUS = """() => {
  const focused = document.activeElement;
  const rings = [focused, focused.parentElement].filter(Boolean).map((element) => getComputedStyle(element));
  return focused === document.body || rings.some((ring) => ring.outlineStyle !== 'none' && ring.outlineWidth !== '0px');
}"""
MOST_TABS = 60


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RunningServer]:
    """Run an empty server: each journey begins where a new one does."""
    async with running(tmp_path / "data") as server:
        yield server


@dataclass
class DashboardUser:
    """A person at the page, who sees names. `spent` counts clicks and keys since it was asked last."""

    page: Page

    async def spent(self) -> dict[str, int]:
        return await self.page.evaluate("""() => {
          const told = { clicks: Number(sessionStorage.pointerdown ?? 0), keys: Number(sessionStorage.keydown ?? 0) };
          sessionStorage.clear();
          return told;
        }""")

    def seen(self, role: str, name: str) -> Locator:
        found = self.page.get_by_role(role, name=name, exact=True)  # type: ignore[arg-type] - a role of ARIA
        return found.locator("visible=true").first

    async def click(self, role: str, name: str) -> None:
        await self.seen(role, name).click()

    async def type(self, name: str, text: str) -> None:
        """Enter a text as by pasting: its length is not the design's."""
        await self.page.get_by_label(name, exact=True).fill(text)


@asynccontextmanager
async def open_dashboard_user(browser: Browser, server: RunningServer, size: str) -> AsyncIterator[DashboardUser]:
    async with visiting(browser, server, size) as visit:
        await visit.page.add_init_script(COUNT)
        made = (await server.client(server.key()).post("/v0/session/links", json={"role": "owner"})).json()["url"]
        await visit.page.goto(f"{visit.origin}/login#{made.partition('#')[2]}")
        await expect(visit.page.get_by_role("heading", name="Home")).to_be_visible()
        yield DashboardUser(visit.page)
        assert visit.problems == []


async def create_agent(who: DashboardUser, name: str) -> None:
    await who.click("link", "Create an agent")
    await who.type("Name", name)
    await who.click("button", "Create agent")
    await expect(who.page.get_by_role("heading", name=name)).to_be_visible()


@pytest.mark.parametrize("size", SIZES)
async def test_the_first_hour_by_clicks(browser: Browser, server: RunningServer, size: str) -> None:
    """Create an agent, talk to it, connect a channel, restore a snapshot; each begins at Home."""
    async with open_dashboard_user(browser, server, size) as who:
        page = who.page
        await create_agent(who, "Ada")
        assert (await who.spent())["clicks"] <= 2
        await expect(page.get_by_text("Running", exact=True)).to_be_visible()

        await who.click("link", "Home")
        await who.spent()
        await who.type("Message", "/say good morning")
        await who.click("button", "Send")
        await expect(page.locator("article").last.get_by_text("good morning")).to_be_visible()
        assert (await who.spent())["clicks"] <= 1

        await who.click("link", "Home")
        await who.spent()
        await who.click("button", "Connect Telegram")
        await who.type("Bot token", TOKEN)
        await page.get_by_role("dialog").get_by_role("button", name="Connect").click()
        await expect(page.get_by_role("dialog").get_by_text("Connected", exact=True)).to_be_visible()
        assert (await who.spent())["clicks"] <= 2
        await who.click("button", "Done")

        await _change_a_file(server)
        await who.click("link", "Home")
        await who.spent()
        await who.click("link", "Details")
        await who.click("link", "Snapshots")
        oldest = page.get_by_role("list", name="Snapshots").get_by_role("listitem").last
        await oldest.get_by_role("button", name="Restore").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Restore").click()
        await expect(page.get_by_text("The workspace was restored.")).to_be_visible()
        assert (await who.spent())["clicks"] <= 4
        assert await _read_note(server) == "first"


async def _change_a_file(server: RunningServer) -> None:
    """Write a note, take a snapshot, and write it again, as an agent does."""
    client = server.client(server.key())
    path = f"/v0/agents/{(await client.get('/v0/agents')).json()['agents'][0]['agentId']}"
    for text in ("first", "second"):
        await client.put(f"{path}/files/content", params={"path": "note.txt"}, content=text.encode())
        assert (await client.post(f"{path}/snapshots/sync")).status_code < 300


async def _read_note(server: RunningServer) -> str:
    client = server.client(server.key())
    path = f"/v0/agents/{(await client.get('/v0/agents')).json()['agents'][0]['agentId']}"
    return (await client.get(f"{path}/files/content", params={"path": "note.txt"})).text


async def tab_to(who: DashboardUser, target: Locator) -> None:
    """Move the focus there by the Tab key; each stop on the way shows where the focus is."""
    for _ in range(MOST_TABS):
        if await target.evaluate("(element) => element === document.activeElement"):
            return
        await who.page.keyboard.press("Tab")
        assert await who.page.evaluate(FOCUS), await who.page.evaluate("document.activeElement.outerHTML")
    raise AssertionError(f"not reached by {MOST_TABS} tabs: {target}")


async def press(who: DashboardUser, role: str, name: str) -> None:
    target = who.seen(role, name)
    await target.wait_for()
    await tab_to(who, target)
    await who.page.keyboard.press("Enter")


async def test_the_first_hour_without_a_mouse(browser: Browser, server: RunningServer) -> None:
    async with open_dashboard_user(browser, server, "desktop") as who:
        page, keyboard = who.page, who.page.keyboard
        await press(who, "link", "Create an agent")
        await expect(page.get_by_label("Name")).to_be_focused()
        await keyboard.insert_text("Ada")
        await keyboard.press("Enter")
        await expect(page.get_by_text("Running", exact=True)).to_be_visible()

        await press(who, "link", "Chat")
        await tab_to(who, page.get_by_label("Message"))
        await keyboard.insert_text("/say good morning")
        await keyboard.press("Enter")
        await expect(page.locator("article").last.get_by_text("good morning")).to_be_visible()

        await press(who, "link", "Channels")
        set_up = page.get_by_role("listitem").filter(has_text="Telegram").get_by_role("button", name="Set up")
        await set_up.wait_for()
        await tab_to(who, set_up)
        await keyboard.press("Enter")
        await keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(set_up).to_be_focused()
        await keyboard.press("Enter")
        await tab_to(who, page.get_by_label("Bot token"))
        await keyboard.insert_text(TOKEN)
        await press(who, "button", "Connect")
        await expect(page.get_by_role("dialog").get_by_text("Connected", exact=True)).to_be_visible()
        await press(who, "button", "Done")

        await _change_a_file(server)
        await press(who, "link", "Snapshots")
        restore = (
            page.get_by_role("list", name="Snapshots")
            .get_by_role("listitem")
            .last.get_by_role("button", name="Restore")
        )
        await restore.wait_for()
        await tab_to(who, restore)
        await keyboard.press("Enter")
        await tab_to(who, page.get_by_role("alertdialog").get_by_role("button", name="Restore"))
        await keyboard.press("Enter")
        await expect(page.get_by_text("The workspace was restored.")).to_be_visible()
        await expect(page.get_by_role("alertdialog")).to_have_count(0)
        await expect(page.locator("body")).not_to_be_focused()
        assert (await who.spent())["clicks"] == 0
        assert await _read_note(server) == "first"
