"""The dashboard in a browser: its first view, and long lists that are scrolled, compared with an empty page.

A list is scrolled for some seconds by a step per frame. A frame of more than 50 ms is one that people notice; a task is
the longest time during which the page could not react. The empty page has no content but its height.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from playwright.async_api import Page

from bench.records import fill_agents, have_all_failed
from bench.row import Row
from roost import app, config
from roost.identity.tenants import DEFAULT_TENANT, ensure_tenant
from tests.dashboard.browser import chromium
from tests.dashboard.stored_files import insert_files
from tests.dashboard.test_agent_logs import KEEP_SOCKETS, SEND_LINES
from tests.journeys.server_process import ServerProcess, until, up

_FILES, _LINES = 100_000, 10_000
_SCROLL_MS = 4_000
_STEP_PIXELS = 90
_KIB = 1024
_WATCH_START = """
window.longest = 0;
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) window.longest = Math.max(window.longest, duration);
}).observe({ type: 'longtask', buffered: true });
const look = () => {
  if (document.querySelector('main h1') && !document.querySelector('[aria-busy]')) window.ready = performance.now();
  else requestAnimationFrame(look);
};
requestAnimationFrame(look);
"""
_SCROLL = """async ([selector, milliseconds, step]) => {
  const element = selector ? document.querySelector(selector) : document.scrollingElement;
  const frames = [];
  window.longest = 0;
  const began = performance.now();
  for (let last = began; last - began < milliseconds;) {
    const now = await new Promise(requestAnimationFrame);
    frames.push(now - last);
    last = now;
    element.scrollTop += step;
    if (element.scrollTop + element.clientHeight >= element.scrollHeight - 1) element.scrollTop = 0;
  }
  frames.shift();
  const late = frames.filter((one) => one > 50).length;
  return { late: (100 * late) / frames.length, longest: window.longest };
}"""

_LOAD_ALL = """async (count) => {
  const page = document.querySelector('#content');
  while (document.querySelector('main table').ariaRowCount < count + 1) {
    page.scrollTop = page.scrollHeight;
    await new Promise(requestAnimationFrame);
  }
  page.scrollTop = page.scrollHeight / 2;
}"""


async def run(folder: Path) -> AsyncGenerator[Row]:
    fill_agents(folder / "data")
    _fill_files(folder / "data")
    with up(folder / "data", "--no-first-agent") as server:
        until(lambda: have_all_failed(server.agents()), every=0.5)
        async for row in _measure(server):
            yield row


def _fill_files(data: Path) -> None:
    db = app.open_database(config.load_settings({"ROOST_DATA": str(data)}))
    db.run(lambda connection: insert_files(connection, ensure_tenant(connection, DEFAULT_TENANT).id, _FILES))
    db.close()


async def _measure(server: ServerProcess) -> AsyncGenerator[Row]:
    async with chromium() as browser:
        page = await browser.new_page(viewport={"width": 1280, "height": 800})
        await page.add_init_script(_WATCH_START)
        await page.add_init_script(KEEP_SOCKETS)
        empty = await _measure_empty(page)
        origin = await _sign_in(page, server)
        size, ready = await _measure_start(page, f"{origin}/agents")
        yield Row("dashboard: first view, compressed", size, "KiB", goal="<= 250 KiB")
        yield Row("dashboard: until the list of 1,000 agents shows", ready, "ms", goal="< 1000 ms")
        for row in _rows("1,000 agents", await _scroll(page, "main [role=region]"), empty):
            yield row
        await page.goto(f"{origin}/storage/files")
        await page.get_by_role("cell", name="report 0.txt").wait_for()
        await page.evaluate(_LOAD_ALL, _FILES)
        for row in _rows(f"{_FILES:,} files", await _scroll(page, "#content"), empty):
            yield row
        await page.goto(f"{origin}/agents/{server.agents()[0]['agentId']}/logs")
        await page.get_by_role("main").get_by_text("Live", exact=True).wait_for()
        await page.evaluate(SEND_LINES, _LINES)
        await page.get_by_text(f"{_LINES} lines").wait_for()
        for row in _rows(f"a log of {_LINES:,} lines", await _scroll(page, "[role=log]"), empty):
            yield row


async def _measure_empty(page: Page) -> dict[str, float]:
    await page.goto("data:text/html,<main style='height:1000000px'><h1>Empty</h1>")
    return await _scroll(page, "")


async def _sign_in(page: Page, server: ServerProcess) -> str:
    link = server.roost("dashboard", "--print").stdout.strip()
    await page.goto(link)
    await page.get_by_role("heading", name="Home").wait_for()
    return link.partition("/login")[0]


async def _measure_start(page: Page, url: str) -> tuple[float, float]:
    """Return the size of all files and the time of a first visit, without a cache."""
    session = await page.context.new_cdp_session(page)
    await session.send("Network.enable")
    await session.send("Network.setCacheDisabled", {"cacheDisabled": True})
    sizes: dict[str, float] = {}
    own: set[str] = set()

    def note(event: dict[str, Any]) -> None:
        sizes[event["requestId"]] = event["encodedDataLength"]

    def begin(event: dict[str, Any]) -> None:
        if event["type"] in {"Document", "Script", "Stylesheet"}:
            own.add(event["requestId"])

    session.on("Network.loadingFinished", note)
    session.on("Network.responseReceived", begin)
    await page.goto(url)
    await page.wait_for_function("() => window.ready")
    ready = await page.evaluate("window.ready")
    await session.detach()
    return sum(size for request, size in sizes.items() if request in own) / _KIB, ready


async def _scroll(page: Page, selector: str) -> dict[str, float]:
    return await page.evaluate(_SCROLL, [selector, _SCROLL_MS, _STEP_PIXELS])


def _rows(what: str, found: Mapping[str, float], empty: Mapping[str, float]) -> Sequence[Row]:
    """Return rows with absolute goals, because both figures of the empty page are zero on a quiet machine."""
    name = f"dashboard: scroll {what}"
    late, longest = ({"empty page": empty[key]} for key in ("late", "longest"))
    return [
        Row(f"{name}, frames over 50 ms", found["late"], "%", goal="<= 1 %", others=late),
        Row(f"{name}, longest task", found["longest"], "ms", goal="<= 100 ms", others=longest),
    ]
