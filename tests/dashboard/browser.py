"""Visits of the dashboard in the system's Chromium, which watch for everything that must not happen in a page."""

import json
import os
import re
import shutil
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, ConsoleMessage, Page, Response, async_playwright, expect

from tests.support.server import RunningServer

ROOT = Path(__file__).parents[2]
SOURCE, BUILT = ROOT / "dashboard", ROOT / "roost" / "http" / "dashboard" / "static"
SCREENSHOTS = ROOT / "build" / "screenshots"
AXE = SOURCE / "node_modules" / "axe-core" / "axe.min.js"
SIZES: dict[str, dict[str, Any]] = {
    "desktop": {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
    "phone": {
        "viewport": {"width": 390, "height": 844},
        "is_mobile": True,
        "has_touch": True,
        "device_scale_factor": 2,
        "color_scheme": "dark",
    },
}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
_PATIENCE_MS = 20_000
expect.set_options(timeout=_PATIENCE_MS)
_SIGNATURE = "/signature/"
_WATCH = """
window.violations = [];
addEventListener('securitypolicyviolation', (event) => {
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`);
});
"""


@asynccontextmanager
async def chromium(*flags: str) -> AsyncIterator[Browser]:
    """Run the browser. Fails with advice if it is not installed."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.fail("These tests need Chromium: sudo apt-get install -y chromium")
    if not (BUILT / "index.html").exists():
        pytest.fail("The dashboard is not built: make dashboard")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", "--disable-dev-shm-usage", *flags]
        )
        try:
            yield browser
        finally:
            await browser.close()


@dataclass
class Visit:
    """A browser window of its own; `problems` has console errors, failed requests and exceptions."""

    page: Page
    origin: str
    size: str = "desktop"
    problems: list[str] = field(default_factory=list)

    def watch(self) -> None:
        self.page.on("console", self._note_console)
        self.page.on("pageerror", lambda error: self.problems.append(f"exception: {error}"))
        self.page.on("response", self._note_response)

    async def open(self, path: str) -> None:
        """Open a page and wait for its content."""
        await self.page.goto(self.origin + path)
        await self.page.locator("h1").first.wait_for()
        await self.page.locator("[aria-busy]").first.wait_for(state="detached")

    async def check(self, but: Collection[str] = ()) -> None:
        """Expect no problem, no violation of the policy, no sideways scrolling and no barrier.

        but: ids of rules that do not count.
        """
        assert self.problems == []
        assert await self.page.evaluate("window.violations") == []
        width, visible = await self.page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
        assert width <= visible
        await self.page.evaluate(AXE.read_text())
        found = await self.page.evaluate(f"axe.run({{runOnly: {json.dumps(RULES)}}})")
        barriers = [
            f"{rule['id']}: {rule['nodes'][0]['html'][:200]}" for rule in found["violations"] if rule["id"] not in but
        ]
        assert not barriers, "\n".join(barriers)

    async def picture(self, name: str) -> None:
        """Keep a picture of a page, named by the test's file and the size; `name` may be the page's path."""
        words = [_test_file(), *re.findall(r"[\w.]+", name), self.size]
        await self.page.screenshot(path=SCREENSHOTS / f"{'-'.join(words)}.png", animations="disabled")

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"} and not message.text.startswith("Failed to load resource"):
            self.problems.append(f"console: {message.text}")

    def _note_response(self, response: Response) -> None:
        path = response.url.removeprefix(self.origin)
        is_expected = _SIGNATURE in path and response.status == 404  # of a file without a signature
        if response.status >= 400 and not is_expected:
            self.problems.append(f"{response.status} {response.request.method} {path}")


@asynccontextmanager
async def visiting(
    browser: Browser,
    server: RunningServer,
    size: str = "desktop",
    role: str = "",
    tenant: str = "acme",
    key: str | None = None,
) -> AsyncIterator[Visit]:
    """Open a window, with a role in a tenant signed in by a one-time link of `key`, else of a new one."""
    context = await browser.new_context(locale="en-US", **SIZES[size])
    context.set_default_timeout(_PATIENCE_MS)
    await context.add_init_script(_WATCH)
    visit = Visit(await context.new_page(), f"http://localhost:{server.port}", size)
    visit.watch()
    try:
        if role:
            made = await server.client(key or server.key(tenant)).post("/v0/session/links", json={"role": role})
            await visit.page.goto(f"{visit.origin}/login#{made.json()['url'].partition('#')[2]}")
            await visit.page.get_by_role("heading", name="Home").wait_for()
        yield visit
    finally:
        await context.close()


def _test_file() -> str:
    """Return the name of the running test's file without its ends: of `tests/a/test_pages.py::test_b`, `pages`."""
    path, _, _ = os.environ["PYTEST_CURRENT_TEST"].partition("::")
    return Path(path).stem.removeprefix("test_")
