"""The site of the docs: complete, without broken links, and in a browser under the server's policy."""

import re
import subprocess
import sys
from functools import cache
from html import unescape
from pathlib import Path
from posixpath import normpath
from urllib.parse import unquote

import pytest
from playwright.async_api import Browser

from roost.http.dashboard.docs_application import BUILT_DOCS
from tests.dashboard.browser import ROOT, SIZES, Visit, visiting
from tests.support.server import RunningServer

PAGES = ["/docs/", "/docs/tutorial/", "/docs/cli/agents/", "/docs/explanation/architecture/"]

BARRIERS_OF_THE_READER = {"button-name", "color-contrast", "scrollable-region-focusable", "target-size"}  # of Scalar
SCROLLED = "scrollable-region-focusable"  # the theme makes code focusable late, Chromium all that scrolls


@pytest.fixture(scope="module", autouse=True)
def built_site() -> None:
    """Build the site if a page has changed since it was built."""
    subprocess.run([sys.executable, "scripts/docs.py"], cwd=ROOT, check=True)


def test_links_lead_to_a_page_and_a_heading() -> None:
    """Of the built site, where headings have other addresses than in web views of repositories."""
    broken: list[str] = []
    for page in BUILT_DOCS.rglob("*.html"):
        for link in set(re.findall(r'<a\b[^>]*?\bhref="([^"]+)"', page.read_text())):
            path, _, fragment = unescape(link).partition("#")
            if re.match(r"[a-z]+:|/|\.$", path) or page.name == "404.html":
                continue
            target = Path(normpath(page.parent / path)) if path else page
            target = target / "index.html" if target.is_dir() else target
            if not target.is_file() or (fragment and unquote(fragment) not in _anchors(target)):
                broken.append(f"{page.relative_to(BUILT_DOCS)}: {link}")
    assert not broken, "\n".join(broken)


def test_every_command_has_a_section_with_its_options() -> None:
    sys.path.insert(0, str(ROOT / "scripts"))
    from cli_reference import list_commands

    from roost.cli.main import create_program

    program = create_program()
    program.load_commands()
    commands = dict(list_commands(program))
    assert len(commands) > 150
    for typed, command in commands.items():
        noun = typed.split()[1]
        page = BUILT_DOCS / "cli" / noun / "index.html"
        page = page if page.exists() else BUILT_DOCS / "cli" / "index.html"
        assert typed.replace(" ", "-") in _anchors(page), typed
        text = page.read_text()
        assert all(option in text for parameter in command.params for option in parameter.opts if option[:2] == "--")


def test_the_site_names_the_licences_of_its_packages() -> None:
    notices = (BUILT_DOCS / "third-party-notices.txt").read_text()
    assert "Permission is hereby granted" in notices
    assert "@scalar/api-reference" in notices
    assert "\nvue\n" in notices
    assert '"/docs/third-party-notices.txt"' in (BUILT_DOCS / "index.html").read_text()


def watch_requests(visit: Visit) -> list[str]:
    """Return the list to which each request to another host is added."""
    foreign: list[str] = []

    def note(url: str) -> None:
        if not url.startswith((visit.origin, "data:", "blob:")):
            foreign.append(url)

    visit.page.on("request", lambda request: note(request.url))
    return foreign


@pytest.mark.parametrize("size", SIZES)
async def test_pages_load_nothing_from_other_hosts(browser: Browser, server: RunningServer, size: str) -> None:
    async with visiting(browser, server, size) as visit:
        foreign = watch_requests(visit)
        for path in PAGES:
            await visit.open(path)
            await visit.picture(path)
            await visit.check(but={SCROLLED})
        assert foreign == []


async def test_search_finds_words_of_pages(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server) as visit:
        await visit.open("/docs/guides/agents/")
        await visit.page.keyboard.press("Control+k")
        await visit.page.get_by_placeholder("Search").fill("facilitator")
        found = visit.page.locator("a").filter(has_text="Facilitators").first
        await found.wait_for()
        await visit.picture("docs-search")
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
        await visit.picture("docs-api")
        await visit.check(but=BARRIERS_OF_THE_READER)
        assert foreign == []
        attempt = "fetch('/v0/session').then(() => 'allowed', () => 'refused')"
        assert await visit.page.evaluate(attempt) == "refused"


@cache
def _anchors(page: Path) -> frozenset[str]:
    return frozenset(re.findall(r'\bid="([^"]+)"', page.read_text()))
