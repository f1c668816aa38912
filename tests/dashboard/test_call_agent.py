"""The lines for programs on an agent's overview: what is in them, and the token beside them."""

import ast
import json
import subprocess
from typing import Any

import pytest
from playwright.async_api import Browser, Page, Route, expect

from tests.dashboard.browser import SIZES, visiting
from tests.support.server import RunningServer

HOSTILE = """http://a'$(id)`id`"+exit(1)+"{b}.agents.localhost:8642"""
BREAK_CLIPBOARD = "navigator.clipboard.writeText = () => Promise.reject(new Error('refused'))"
REMOVE_CLIPBOARD = "Object.defineProperty(navigator, 'clipboard', { value: undefined })"


async def read_lines(page: Page, title: str) -> str:
    await page.get_by_role("tab", name=title, exact=True).click()
    return await page.get_by_role("tabpanel").locator("code").inner_text()


async def answer_with_address(page: Page, agent: dict[str, Any], address: str) -> None:
    async def answer(route: Route) -> None:
        detail = await (await route.fetch()).json()
        await route.fulfill(json={**detail, "agent": {**detail["agent"], "url": address, "name": HOSTILE}})

    await page.route(f"**/v0/agents/{agent['agentId']}", answer)


@pytest.mark.parametrize("size", SIZES)
async def test_the_token_is_copied(browser: Browser, server: RunningServer, agent: dict[str, Any], size: str) -> None:
    async with visiting(browser, server, size, role="editor") as visit:
        page = visit.page
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await visit.open(f"/agents/{agent['agentId']}/overview")
        for title in ("Python", "TypeScript", "curl"):
            assert "GATEWAY_TOKEN" in await read_lines(page, title)
            await visit.check()
        await page.get_by_role("tabpanel").scroll_into_view_if_needed()
        await visit.picture("lines")
        await page.get_by_role("button", name="Copy the token").click()
        await expect(page.get_by_text("The gateway token is in the clipboard.")).to_be_visible()
        assert await page.evaluate("navigator.clipboard.readText()") == agent["gatewayToken"]
        assert agent["gatewayToken"] not in await page.content()
        await visit.check()


@pytest.mark.parametrize("script", [BREAK_CLIPBOARD, REMOVE_CLIPBOARD], ids=["refused", "absent"])
async def test_the_token_is_shown_without_a_clipboard(
    browser: Browser, server: RunningServer, agent: dict[str, Any], script: str
) -> None:
    async with visiting(browser, server, "phone", role="editor") as visit:
        await visit.page.add_init_script(script)
        await visit.open(f"/agents/{agent['agentId']}/overview")
        assert agent["gatewayToken"] not in await visit.page.content()
        await visit.page.get_by_role("button", name="Copy the token").click()
        await expect(visit.page.get_by_role("region", name="Gateway token")).to_have_text(agent["gatewayToken"])
        await visit.check()


async def test_a_viewer_sees_lines_and_no_token(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, role="viewer") as visit:
        await visit.open(f"/agents/{agent['agentId']}/overview")
        assert agent["agentId"] in await read_lines(visit.page, "curl")
        await expect(visit.page.get_by_role("button", name="Copy the token")).to_have_count(0)
        assert agent["gatewayToken"] not in await visit.page.content()


async def test_a_hostile_address_stays_a_text(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, role="editor") as visit:
        await answer_with_address(visit.page, agent, HOSTILE)
        await visit.open(f"/agents/{agent['agentId']}/overview")
        shell, python = await read_lines(visit.page, "curl"), await read_lines(visit.page, "Python")
        typescript = await read_lines(visit.page, "TypeScript")
    printed = subprocess.run(
        ["/bin/sh", "-c", f"curl() {{ printf '%s\\n' \"$1\"; }}\n{shell}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (printed.stdout, printed.stderr) == (f"{HOSTILE}/v1/chat/completions\n", "")
    texts = [node.value for node in ast.walk(ast.parse(python)) if isinstance(node, ast.Constant)]
    assert HOSTILE.removeprefix("http://") in texts
    assert f"baseURL: {json.dumps(f'{HOSTILE}/v1')}," in typescript


@pytest.mark.parametrize(
    "address", ["https://abc.agents.example.com", "http://[2001:db8::7]:9000", "http://localhost:9000"]
)
async def test_a_name_that_resolvers_know_needs_no_help(
    browser: Browser, server: RunningServer, agent: dict[str, Any], address: str
) -> None:
    async with visiting(browser, server, role="editor") as visit:
        await answer_with_address(visit.page, agent, address)
        await visit.open(f"/agents/{agent['agentId']}/overview")
        for title in ("curl", "Python", "TypeScript"):
            text = await read_lines(visit.page, title)
            assert f"{address}/v1" in text
            assert "Host" not in text
            assert "lookup" not in text
