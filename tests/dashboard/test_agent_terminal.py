"""The terminal of an agent: keys and output, a lost connection, hostile output, a flood, a stopped agent."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from playwright.async_api import Browser, Locator, Route, expect

from tests.dashboard.browser import Visit, visiting
from tests.support.server import RunningServer

WATCH = """
window.sockets = [];
window.WebSocket = class extends WebSocket {
  constructor(...given) { super(...given); window.sockets.push(this); }
};
window.written = [];
navigator.clipboard.writeText = async (text) => { window.written.push(text); };
navigator.clipboard.readText = async () => 'echo pasted-$((2+2))';
window.opened = [];
window.open = (...given) => { window.opened.push(given); return null; };
window.longest = 0;
let last = performance.now();
setInterval(() => {
  window.longest = Math.max(window.longest, performance.now() - last - 20);
  last = performance.now();
}, 20);
"""

MIDDLE = """(element) => {
  const { x, y, width, height } = element.getBoundingClientRect();
  return [x + width / 2, y + height / 2];
}"""


@asynccontextmanager
async def terminal_of(
    browser: Browser, server: RunningServer, agent: dict[str, Any], size: str = "desktop", role: str = "editor"
) -> AsyncIterator[tuple[Visit, Locator]]:
    """Open an agent's terminal; yields its visible rows, too."""
    async with visiting(browser, server, size, role=role) as visit:
        await visit.page.add_init_script(WATCH)
        await visit.open(f"/agents/{agent['agentId']}/terminal")
        await expect(visit.page.get_by_text("Connected", exact=True)).to_be_visible()
        yield visit, visit.page.locator(".xterm-rows")


async def click_output(visit: Visit, text: Locator) -> None:
    """Click where a text is, as its links lie above it."""
    x, y = await text.evaluate(MIDDLE)
    await visit.page.mouse.move(x - 3, y)
    await visit.page.mouse.click(x, y, delay=50)


async def test_shell_runs_and_reconnects(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with terminal_of(browser, server, agent) as (visit, rows):
        page, keyboard = visit.page, visit.page.keyboard
        await keyboard.type("echo $((6*7))-$COLUMNS\n")
        await expect(rows).to_contain_text(re.compile(r"42-\d+"))
        columns = int(re.search(r"42-(\d+)", await rows.inner_text())[1])  # type: ignore[index] - it was found
        await visit.picture("terminal")
        await page.set_viewport_size({"width": 900, "height": 700})
        await keyboard.type("clear; stty size\n")
        await expect(rows).to_contain_text(re.compile(r"\d+ \d+\s*\S+\$"))  # and a prompt
        size = re.search(r"\d+ (\d+)", await rows.inner_text())
        assert size
        assert 20 < int(size[1]) < columns

        await keyboard.type("echo start''ed; sleep 100\n")
        await expect(rows).to_contain_text("started")  # an interrupt of a shell that still reads drops what was typed
        await keyboard.press("Control+c")
        await expect(rows).to_contain_text(re.compile(r"\^C\s*\S+\$"))  # a prompt
        await keyboard.type("forgotten")
        await keyboard.press("Control+a")
        await keyboard.press("Control+k")  # the shell's key, not the palette's
        await keyboard.type("echo interrupted-$?\n")
        await expect(rows).to_contain_text("interrupted-130")
        await expect(page.get_by_role("dialog")).to_have_count(0)

        await expect(rows).to_contain_text(re.compile(r"interrupted-130\s*\S+\$"))
        await keyboard.type("clear; word=kept; (sleep 0.5; echo mean''while) &\n")
        await page.evaluate("window.sockets.at(-1).close()")
        await expect(page.get_by_text("Reconnecting")).to_be_visible()
        await keyboard.type("echo $word-on\n")  # sent when the connection is back
        await expect(rows).to_contain_text("kept-on")
        await expect(rows).to_contain_text("meanwhile")
        await page.reload()
        await expect(rows).to_contain_text("kept-on")
        await keyboard.type("echo $word-again\n")
        await expect(rows).to_contain_text("kept-again")

        await page.get_by_role("button", name="More actions").click()
        await page.get_by_role("menuitem", name="Paste").click()
        await keyboard.press("Enter")
        await expect(rows).to_contain_text("pasted-4")
        await page.get_by_role("button", name="Search", exact=True).click()
        await page.get_by_label("Search in the output").fill("kept-again")
        await expect(page.get_by_text("Nothing found.")).to_have_count(0)
        await keyboard.press("Escape")
        await keyboard.press("Control+Shift+C")
        await expect(page.get_by_text("The selection was copied.")).to_be_visible()
        assert await page.evaluate("window.written") == ["kept-again"]
        await page.get_by_role("button", name="More actions").click()
        await page.get_by_role("menuitem", name="Screen reader mode: off").click()
        await expect(page.get_by_role("list")).to_be_attached()
        await visit.check()

        await page.locator(".xterm-screen").click()
        await keyboard.type("exit 3\n")
        await expect(page.get_by_text("The shell has ended with exit code 3.")).to_be_visible()
        await visit.check()
        await page.get_by_role("button", name="Start again").click()
        await keyboard.type("echo new-$word-\n")
        await expect(rows).to_contain_text("new--")


async def test_hostile_output_changes_nothing_outside(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    async with terminal_of(browser, server, agent) as (visit, rows):
        page, keyboard = visit.page, visit.page.keyboard
        hostile = [
            r"\033]52;c;ZXZpbA==\007",  # the clipboard
            r"\033]0;Owned\007\033]2;Owned\007",  # the title
            r"\033[8;5;5t\033[21t\033[3;9;9t",  # the window's size, title and place
            r"\033]8;;javascript:alert(1)\033\\script-link\033]8;;\033\\ ",
            r"\033]8;;http://hostile.example/x\033\\safe-looking\033]8;;\033\\ <img src=x onerror=alert(1)> ",
            r"\033P+q544e\033\\\033]1337;File=:AAAA\007\033[38;2;10;200;90mcolour\033[0m",
        ]
        await keyboard.type("clear; printf '" + "".join(hostile) + "\\n'; head -c 300000 /dev/urandom; reset; clear\n")
        await keyboard.type(f"printf '{''.join(hostile)}'; echo over-$((1+1))\n")
        await expect(rows).to_contain_text("over-2")
        await expect(rows).to_contain_text("<img src=x onerror=alert(1)>")
        await click_output(visit, rows.get_by_text("script-link").last)
        await click_output(visit, rows.get_by_text("safe-looking").last)
        dialog = page.get_by_role("dialog")  # one, of the second link
        await expect(dialog).to_contain_text("http://hostile.example/x")
        assert await page.evaluate("window.opened") == []
        await dialog.get_by_role("button", name="Open").click()
        assert await page.evaluate("window.opened") == [["http://hostile.example/x", "_blank", "noopener,noreferrer"]]
        assert (await page.title()).startswith("Terminal - ")
        assert await page.evaluate("window.written") == []
        await visit.check()


async def test_flood_leaves_the_page_responsive(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with terminal_of(browser, server, agent) as (visit, rows):
        page, keyboard = visit.page, visit.page.keyboard
        await page.evaluate("window.longest = 0")
        await keyboard.type("head -c 10000000 /dev/zero | tr '\\0' z | fold -w 70; echo the-$((1+1))-end\n")
        await expect(rows).to_contain_text("the-2-end", timeout=60_000)
        await keyboard.type("yes | cat\n")
        await expect(rows).to_contain_text(re.compile(r"y\s*y\s*y"))
        await keyboard.press("Control+c")
        await keyboard.type("echo quiet-$((1+1))\n")
        await expect(rows).to_contain_text("quiet-2")
        assert await page.evaluate("window.longest") < 1000


async def test_phone_and_viewer(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with terminal_of(browser, server, agent, "phone") as (visit, rows):
        page = visit.page
        await page.keyboard.type("echo to''p")
        await page.get_by_role("button", name="Left", exact=True).click()
        await page.keyboard.type("-")
        await page.get_by_role("button", name="Ctrl for the next key").click()
        await page.keyboard.type("e")
        await page.keyboard.type("!\n")
        await expect(rows).to_contain_text("to-p!")
        await visit.check()
        await visit.picture("terminal")
    async with visiting(browser, server, "phone", role="viewer") as visit:
        await visit.open(f"/agents/{agent['agentId']}/terminal")
        await expect(visit.page.get_by_role("heading", name="Terminals are for editors and owners")).to_be_visible()
        await visit.check()


async def test_stopped_agent_can_be_started_from_the_terminal(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    async def answer_stopped(route: Route) -> None:
        response = await route.fetch()
        detail = await response.json()
        detail["agent"]["status"] = "not_running"
        await route.fulfill(response=response, json=detail)

    address = f"**/v0/agents/{agent['agentId']}"
    async with visiting(browser, server, role="editor") as visit:
        await visit.page.route(address, answer_stopped)
        await visit.open(f"/agents/{agent['agentId']}/terminal")
        await expect(visit.page.get_by_role("heading", name="The agent is not running")).to_be_visible()
        await visit.picture("terminal-stopped")
        await visit.check()
        await visit.page.unroute(address)
        await visit.page.get_by_role("button", name="Start the agent").click()
        await expect(visit.page.get_by_text("Connected", exact=True)).to_be_visible()
