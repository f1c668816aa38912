"""Every page in both sizes: no error, no violation of the policy, no barrier, no sideways scrolling."""

from typing import Any

import pytest
from playwright.async_api import Browser

from tests.dashboard.browser import SIZES, visiting
from tests.support.server import RunningServer

PAGES = [
    *("/", "/agents", "/agents/new", "/agents/{id}/overview", "/agents/{id}/chat", "/no/such/page"),
    *("/agents/{id}/terminal", "/agents/{id}/usage", "/usage", "/activity"),
    *("/agents/{id}/skills", "/agents/{id}/routes"),
]


@pytest.mark.parametrize("size", SIZES)
async def test_pages_work_in_each_size(
    browser: Browser, server: RunningServer, agent: dict[str, Any], size: str
) -> None:
    async with visiting(browser, server, size, role="owner") as visit:
        for path in PAGES:
            await visit.open(path.format(id=agent["agentId"]))
            await visit.picture(path.format(id="agent"))
            await visit.check()


@pytest.mark.parametrize("size", SIZES)
async def test_sign_in_page(browser: Browser, server: RunningServer, size: str) -> None:
    async with visiting(browser, server, size) as visit:
        await visit.open("/agents")
        assert visit.page.url.startswith(f"{visit.origin}/login?next=")
        await visit.picture("login")
        await visit.check()


async def test_other_themes_and_languages(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, role="owner") as visit:
        await visit.page.evaluate("localStorage['roost.theme'] = 'dark'; localStorage['roost.language'] = 'de'")
        for path in PAGES:
            await visit.open(path.format(id=agent["agentId"]))
            await visit.check()
        assert await visit.page.locator("html").get_attribute("lang") == "de"
        await visit.page.get_by_role("link", name="Agenten").first.wait_for()
