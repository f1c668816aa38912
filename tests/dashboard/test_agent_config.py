"""The page of an agent's configuration: check it, be refused at a line, save it, meet the change of someone else."""

from typing import Any

from playwright.async_api import Browser, expect

from tests.dashboard.browser import visiting
from tests.support.server import RunningServer


async def test_configuration_is_edited_checked_and_saved(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/config")
        editor = page.get_by_role("textbox", name="Configuration")
        await expect(editor).to_contain_text("{")
        await page.get_by_role("button", name="Check").click()
        await expect(page.get_by_text("The engine accepts this configuration.")).to_be_visible()
        await visit.check()
        await editor.press("Control+a")
        await page.keyboard.press("Backspace")
        await page.keyboard.type("{ no json")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text("Request")
        assert "400" in visit.problems.pop()
        await editor.press("Control+a")
        await page.keyboard.type('{\n"mine": 1,\n"greeting": 5\n}')
        await page.get_by_role("button", name="Check").click()
        await expect(page.get_by_text("expected str", exact=True)).to_be_visible()
        await expect(page.locator(".cm-problem")).to_contain_text('"greeting": 5')
        await expect(page.get_by_role("alert")).to_contain_text("The place is marked below.")
        assert "400" in visit.problems.pop()
        await visit.check()
        await visit.picture("config")
        await page.get_by_role("button", name="Discard changes").click()
        await expect(page.get_by_role("alert")).to_have_count(0)
        await editor.press("Control+Home")
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("The configuration was saved.")).to_be_visible()
        await expect(page.get_by_text("Not saved")).to_have_count(0)
        await visit.check()
        stored = f"/v0/agents/{agent['agentId']}/config"
        await editor.press("Control+Home")
        await page.keyboard.press("Enter")
        assert (await server.client(server.key()).put(stored, json={"config": {"greeting": "hello"}})).is_success
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("region", name="What changed meanwhile")).to_contain_text("hello")
        await visit.picture("config-conflict")
        visit.problems[:] = [problem for problem in visit.problems if not problem.startswith("412 PUT")]
        await visit.check()
        await page.get_by_role("button", name="Take theirs").click()
        await expect(editor).to_contain_text("hello")
        await expect(page.get_by_text("Not saved")).to_have_count(0)
        await visit.check()
