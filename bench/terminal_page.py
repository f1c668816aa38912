"""Time from a key to its echo on the terminal page of the dashboard, in the system's Chromium."""

import asyncio
import shutil
import sys
from collections.abc import Sequence
from typing import Any

from tests.journeys.server_process import ServerProcess

_INTERVAL = 0.02
_PATIENCE_MS = 20_000
_MEASURE = """
window.echoes = [];
window.isEchoed = () => undefined;
let pressed = null;
addEventListener('keydown', (event) => { pressed = event.timeStamp; }, { capture: true });
new MutationObserver(() => {
  if (pressed === null || !document.querySelector('.xterm-rows').innerText.trimEnd().endsWith('k')) return;
  window.echoes.push(performance.now() - pressed);
  pressed = null;
  window.isEchoed();
}).observe(document.querySelector('.xterm-rows'), { childList: true, subtree: true, characterData: true });
"""
_WAIT = (
    "(count) => new Promise((done) => { window.isEchoed = () => window.echoes.length >= count && done(); isEchoed(); })"
)


def missing_part(server: ServerProcess) -> str | None:
    """Return what is missing to measure the page."""
    if _find_chromium() is None:
        return "Chromium is not installed"
    with server.client() as client:
        is_built = 'id="root"' in client.get(f"{_origin(server)}/login", headers={"Accept": "text/html"}).text
    return None if is_built else "the dashboard is not built (make dashboard)"


async def measure_page_echo(server: ServerProcess, agent: dict[str, Any], keys: int, warm: int) -> Sequence[float]:
    """Type keys into `cat` in the terminal; return the milliseconds from each key's event to its echo in the page."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=_find_chromium(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        page = await browser.new_page()
        page.set_default_timeout(_PATIENCE_MS)
        with server.client() as client:
            link = client.post("/v0/session/links", json={"role": "editor"}).json()["url"]
        await page.goto(link)
        await page.get_by_role("heading", name="Home").wait_for()
        await page.goto(f"{_origin(server)}/agents/{agent['agentId']}/terminal")
        await page.get_by_text("Connected", exact=True).wait_for()
        await page.keyboard.type("echo re''ady; cat\n")
        await page.locator(".xterm-rows").get_by_text("ready", exact=True).wait_for()
        await page.evaluate(_MEASURE)
        for number in range(warm + keys):
            await asyncio.sleep(_INTERVAL)
            await page.keyboard.press("k")
            await page.evaluate(_WAIT, number + 1)
        echoes = await page.evaluate("window.echoes")
        await browser.close()
    return echoes[warm:]


def report_missing(part: str) -> None:
    print(f"The terminal page is not measured: {part}.", file=sys.stderr, flush=True)


def _origin(server: ServerProcess) -> str:
    return f"http://localhost:{server.url.rpartition(':')[2]}"


def _find_chromium() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
