"""Every page of a tenant whose every text is hostile: no script runs, no other host is asked, links are safe."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.conformance.git_backend import run_backend
from tests.conformance.git_objects import git
from tests.contract.test_templates import Repository
from tests.dashboard.browser import Visit, visiting
from tests.dashboard.hostile_texts import EVERYTHING, TEXTS, HostileTenant, file_name, hostile_paths
from tests.dashboard.test_agent_pages import PAGES as AGENT_PAGES
from tests.dashboard.test_pages import PAGES
from tests.dashboard.test_tenant_pages import PAGES as TENANT_PAGES
from tests.support.server import RunningServer, running

pytestmark = pytest.mark.timeout(180)
UNSAFE = """() => [...document.querySelectorAll('body *')].flatMap((element) => {
  const found = [];
  for (const { name, value } of element.attributes) {
    if (name.startsWith('on') || name === 'srcdoc') found.push(name);
    const isAddress = /^(src|href|xlink:href|action|formaction|poster|data)$/.test(name);
    if (isAddress && URL.canParse(value, location.href)) {
      const { protocol, origin } = new URL(value, location.href);
      const isApart = element.matches('a[target=_blank]:is([rel~=noopener], [rel~=noreferrer])');
      const isLink = isApart && /^(https?|mailto):$/.test(protocol);
      if (origin !== location.origin && protocol !== 'blob:' && !isLink) found.push(`${name}=${value}`);
    }
  }
  if (/^(script|iframe|object|embed|base|meta|link|style|form)$/i.test(element.tagName)) {
    if (element.matches('form[action], :not(form, .xterm style)')) found.push(element.tagName);
  }
  return found.map((what) => `${element.tagName.toLowerCase()} ${what}`.slice(0, 200));
})"""


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("d") / "data", ROOST_EGRESS_ALLOW="127.0.0.1/32") as server:
        yield server


@pytest.fixture
def repository(tmp_path: Path) -> Iterator[Repository]:
    with run_backend(tmp_path / "served") as url:
        git(tmp_path, "init", "-q", "--bare", "-b", "main", tmp_path / "served/reader.git")
        yield Repository(f"{url}/reader.git", tmp_path / "served/reader.git")


class PageMonitor:
    """What a page did that hostile texts may have made it do."""

    def __init__(self, visit: Visit) -> None:
        self.visit, self.done = visit, list[str]()
        page = visit.page
        page.on("dialog", lambda dialog: self.done.append(f"dialog: {dialog.message}"))
        page.on("download", lambda download: self.done.append(f"download: {download.url}"))
        page.on("popup", lambda popup: self.done.append(f"window: {popup.url}"))
        page.on("pageerror", lambda error: self.done.append(f"exception: {error}"))
        page.on("request", lambda request: self._note(request.url))

    def _note(self, url: str) -> None:
        if not url.startswith((f"{self.visit.origin}/", "data:image/", "blob:")):
            self.done.append(f"request: {url}")

    async def check(self, place: str) -> None:
        """Expect nothing; also no attempt that only the policy stopped, and no text that widens the page."""
        page = self.visit.page
        assert self.done == [], place
        assert await page.evaluate("window.hacked") is None, place
        assert await page.evaluate("window.violations") == [], place
        assert await page.evaluate(UNSAFE) == [], place
        width, visible = await page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= visible, place


@asynccontextmanager
async def watching(browser: Browser, server: RunningServer) -> AsyncIterator[tuple[Visit, PageMonitor]]:
    async with visiting(browser, server, "phone", role="owner") as visit:
        yield visit, PageMonitor(visit)


async def test_hostile_texts_everywhere(browser: Browser, server: RunningServer, repository: Repository) -> None:
    tenant = HostileTenant(server)
    agent = await tenant.fill(repository)
    assert {kind for kind, count in tenant.written.items() if count == 0} == set()
    pages = [*PAGES, *TENANT_PAGES, *(f"/agents/{{id}}/{name}" for name in AGENT_PAGES)]
    async with watching(browser, server) as (visit, watch):
        for path in [*(page.format(id=agent["agentId"]) for page in pages), *hostile_paths()]:
            await visit.open(path)
            await watch.check(path)
            await visit.picture(path.replace(agent["agentId"], "agent")[:60])
        await _preview_files(visit.page, watch, visit, agent)
        await _open_dialogs(visit, watch)
        await _chat(visit, watch, agent)


async def _preview_files(page: Page, watch: PageMonitor, visit: Visit, agent: dict[str, Any]) -> None:
    await visit.open(f"/agents/{agent['agentId']}/files")
    for name in ("page.html", "page.svg", "page.md", "page.json", file_name(TEXTS[2])):
        await page.get_by_role("row", name=name, exact=True).click()
        await expect(page.get_by_role("region", name=name)).to_be_visible()
        await expect(page.get_by_role("textbox", name=name)).to_contain_text("window.hacked")
        await watch.check(name)


async def _open_dialogs(visit: Visit, watch: PageMonitor) -> None:
    """Open the details of a skill, of one in the hub, of a template and of a stored file."""
    for path, name in (
        ("/skills", "mine"),
        ("/hub", "skill-1"),
        ("/templates", "Reader"),
        ("/storage/files", "window.hacked"),
    ):
        await visit.open(path)
        await visit.page.get_by_role("button", name=name).first.click()
        await expect(visit.page.get_by_role("dialog").locator("dl, ul, pre").first).to_be_visible()
        await watch.check(f"dialog of {path}")


async def _chat(visit: Visit, watch: PageMonitor, agent: dict[str, Any]) -> None:
    page = visit.page
    await visit.open(f"/agents/{agent['agentId']}/chat")
    for number, text in enumerate((*TEXTS, EVERYTHING)):
        await page.get_by_label("Message").fill(f"/say {text}\n\nend of {number}")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text(f"end of {number}").last).to_be_visible()
        await expect(page.get_by_role("button", name="Send")).to_be_visible()
        await watch.check(f"answer {text[:80]}")
