"""The page of an agent's logs: many lines, filters, pause, and a lost connection."""

from typing import Any

from playwright.async_api import Browser, expect

from tests.dashboard.browser import visiting
from tests.support.server import RunningServer

KEEP_SOCKETS = """
window.sockets = [];
window.WebSocket = class extends WebSocket {
  constructor(...given) { super(...given); window.sockets.push(this); }
};
"""
SEND_LONG_LINE = """() => {
  const message = `${'word '.repeat(200)}its end`;
  const line = { timestamp: new Date().toISOString(), level: 'INFO', source: 'long', message };
  window.sockets.at(-1).dispatchEvent(new MessageEvent('message', { data: JSON.stringify(line) }));
}"""
SEND_LINES = """(count) => {
  for (let number = 0; number < count; number += 1) {
    const line = { timestamp: new Date().toISOString(), level: 'INFO', source: 'flood', message: `line ${number}` };
    window.sockets.at(-1).dispatchEvent(new MessageEvent('message', { data: JSON.stringify(line) }));
  }
}"""


async def test_ten_thousand_lines(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await page.add_init_script(KEEP_SOCKETS)
        await visit.open(f"/agents/{agent['agentId']}/logs")
        log = page.get_by_role("log")
        await expect(page.get_by_role("main").get_by_text("Live", exact=True)).to_be_visible()
        await expect(log).to_contain_text("INFO")
        await visit.check()
        await page.evaluate(SEND_LINES, 12_000)
        await expect(page.get_by_text("10000 lines")).to_be_visible()
        await expect(log.get_by_text("line 11999")).to_be_visible()
        assert await log.locator("div > div").count() < 200  # only the lines in view exist
        await page.get_by_label("Search", exact=True).fill("line 11990")
        await expect(page.get_by_text("1 of 10000 lines")).to_be_visible()
        await page.get_by_label("Search", exact=True).fill("no such line")
        await expect(page.get_by_text("No line matches.")).to_be_visible()
        await page.get_by_label("Search", exact=True).fill("")
        await page.get_by_role("button", name="Pause").click()
        await page.evaluate(SEND_LINES, 3)
        await expect(page.get_by_text("Paused. 3 new lines.")).to_be_visible()
        await page.get_by_role("button", name="Continue").click()
        await page.evaluate(SEND_LONG_LINE)
        await expect(log.get_by_text("its end")).to_be_visible()
        assert await log.evaluate("(frame) => frame.scrollWidth <= frame.clientWidth")
        await page.evaluate("window.sockets.at(-1).close()")
        await expect(page.get_by_text("Reconnecting")).to_be_visible()
        await expect(page.get_by_role("main").get_by_text("Live", exact=True)).to_be_visible()
        assert await page.evaluate("window.sockets.length") == 2
        await visit.check()
        await visit.picture("logs")
