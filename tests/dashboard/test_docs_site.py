"""The site of the docs in a browser: pages, search, themes and the reader of the API, under the server's policy."""

import pytest
from playwright.async_api import Browser

from tests.dashboard.browser import SIZES, Visit, visiting
from tests.server import RunningServer

PAGES = ["/docs/", "/docs/guides/agents/", "/docs/cli/agents/"]


def watch_requests(visit: Visit) -> list[str]:
    """Return the list to which each request to another host is added."""
    foreign: list[str] = []

    def note(url: str) -> None:
        if not url.startswith((visit.origin, "data:", "blob:")):
            foreign.append(url)

    visit.page.on("request", lambda request: note(request.url))
    return foreign


@pytest.mark.parametrize("size", SIZES)
async def test_pages(browser: Browser, server: RunningServer, size: str) -> None:
    async with visiting(browser, server, size) as visit:
        foreign = watch_requests(visit)
        for path in PAGES:
            await visit.open(path)
            await visit.picture(f"{size}{path.rstrip('/').replace('/', '-')}")
            await visit.check()
        assert foreign == []


async def test_search_finds_words_of_pages(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server) as visit:
        await visit.open("/docs/guides/agents/")
        await visit.page.keyboard.press("Control+k")
        await visit.page.get_by_placeholder("Search").fill("facilitator")
        found = visit.page.get_by_role("link").filter(has_text="Facilitators")
        await found.wait_for()
        await visit.picture("desktop-docs-search")
        await found.click()
        await visit.page.wait_for_url("**/docs/guides/payments/**")
        assert visit.problems == []
        assert await visit.page.evaluate("window.violations") == []


@pytest.mark.parametrize("size", SIZES)
async def test_the_reader_of_the_api(browser: Browser, server: RunningServer, size: str) -> None:
    """It reads this server's description, and reaches no other host and nothing else of this one."""
    async with visiting(browser, server, size) as visit:
        foreign = watch_requests(visit)
        await visit.page.goto(f"{visit.origin}/docs/api/#tag/agents/POST/v0/agents")
        await visit.page.get_by_role("heading", name="Create Agent").first.wait_for()
        await visit.picture(f"{size}-docs-api")
        assert await visit.page.evaluate("window.violations") == []
        assert visit.problems == []
        assert foreign == []
        attempt = "fetch('/v0/session').then(() => 'allowed', () => 'refused')"
        assert await visit.page.evaluate(attempt) == "refused"
