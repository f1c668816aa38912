"""What a browser keeps of a session that has ended: nothing in windows, in storage, or behind the back button."""

from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.dashboard.browser import Visit, visiting
from tests.support.server import RunningServer

PRIVATE = "a private text"
OTHER_ADDRESSES = (
    "//127.0.0.1:9/",
    "/\\127.0.0.1:9/",
    "/\t/127.0.0.1:9/",
    "https://elsewhere.example/",
    "javascript:1",
)
OPEN_HERE = "(path) => { history.pushState(null, '', path); dispatchEvent(new PopStateEvent('popstate')); }"
STORED = "JSON.stringify([{...localStorage}, {...sessionStorage}])"


async def see_sign_in(page: Page) -> None:
    await expect(page.get_by_role("heading", name="Sign in to Roost")).to_be_visible()
    assert PRIVATE not in await page.content()


async def sign_out(page: Page, action: str = "Sign out") -> None:
    await page.get_by_role("button", name="Account and settings").click()
    async with page.expect_navigation():
        await page.get_by_role("menuitem", name=action, exact=True).click()
    await see_sign_in(page)


async def leave_traces(visit: Visit, agent: dict[str, Any]) -> None:
    """Talk to the agent and upload a file."""
    page = visit.page
    await visit.open(f"/agents/{agent['agentId']}/chat")
    await page.get_by_label("Message").fill(f"/say {PRIVATE}")
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator("article", has_text=PRIVATE).last).to_be_visible()
    await page.evaluate("sessionStorage.setItem('roost.terminal.x', 'y'); localStorage.setItem('tus::x', 'y')")
    await page.get_by_role("link", name="Storage").first.click()
    file: Any = {"name": f"{PRIVATE}.txt", "mimeType": "text/plain", "buffer": b"x"}
    await page.get_by_test_id("files").set_input_files([file])
    await expect(page.get_by_text("Done", exact=True)).to_be_visible()


async def test_the_next_person_finds_nothing(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    """Neither behind the back button, nor in storage, nor after a sign-in to another tenant in the same window."""
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await leave_traces(visit, agent)
        assert "tus::" in await page.evaluate(STORED)
        await sign_out(page)
        stored = await page.evaluate(STORED)
        assert "tus::" not in stored
        assert "terminal" not in stored
        await page.go_back()
        await see_sign_in(page)


async def test_another_tenant_in_the_same_window(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    """The session ended by itself, so the window still has what it loaded."""
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await leave_traces(visit, agent)
        await page.context.clear_cookies()
        await page.get_by_role("link", name="Agents").first.click()
        await see_sign_in(page)
        await page.get_by_label("API key").fill(server.key("mallory"))
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("button", name="Account and settings")).to_be_visible()
        for path in ("/storage/files", f"/agents/{agent['agentId']}/chat"):
            await page.evaluate(OPEN_HERE, path)
            await page.locator("h1").first.wait_for()
            await page.locator("[aria-busy]").first.wait_for(state="detached")
            assert PRIVATE not in await page.content(), path


async def test_signing_out_in_another_window(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, role="owner") as visit:
        await leave_traces(visit, agent)
        other = await visit.page.context.new_page()
        await other.goto(f"{visit.origin}/agents")
        await sign_out(other)
        await see_sign_in(visit.page)


async def test_signing_out_in_every_browser(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    key = server.key()
    async with (
        visiting(browser, server, role="owner", key=key) as lost,
        visiting(browser, server, role="owner", key=key) as visit,
    ):
        await leave_traces(lost, agent)
        await visit.open("/agents")
        await sign_out(visit.page, "Sign out everywhere")
        await see_sign_in(lost.page)


async def test_a_page_that_the_browser_kept_whole(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    """Browsers show such a page again as it was, and tell it by an event."""
    async with visiting(browser, server, role="owner") as visit:
        await visit.open("/agents")
        async with visit.page.expect_request(lambda request: request.is_navigation_request()):
            await visit.page.evaluate("dispatchEvent(new PageTransitionEvent('pageshow', { persisted: true }))")
        await visit.page.locator("h1").first.wait_for()


@pytest.mark.parametrize("address", OTHER_ADDRESSES)
async def test_signing_in_leads_to_no_other_server(browser: Browser, server: RunningServer, address: str) -> None:
    async with visiting(browser, server) as visit:
        page, left = visit.page, list[str]()
        page.on("request", lambda request: left.append(request.url))
        await page.goto(f"{visit.origin}/login")
        await page.evaluate("(next) => location.replace(`/login?${new URLSearchParams({ next })}`)", address)
        await page.get_by_label("API key").fill(server.key())
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("heading", name="Home")).to_be_visible()
        assert [url for url in left if not url.startswith(f"{visit.origin}/")] == []
        assert visit.problems == []
