"""The page of an agent's tasks: the first task, a refused one, its runs, pausing and deleting."""

from typing import Any

from playwright.async_api import Browser, expect

from tests.dashboard.browser import visiting
from tests.support.server import RunningServer


async def test_a_task_from_its_form_to_its_end(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/tasks")
        await page.get_by_role("button", name="New task").click()
        await page.get_by_label("Name").fill("Report")
        await page.get_by_label("Instruction").fill("Summarise the new issues")
        await page.get_by_role("button", name="When").click()
        await page.get_by_role("option", name="At other times").click()
        times = page.get_by_role("textbox", name="Times")
        await times.fill("every 1s")
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("button", name="New task").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("Request")
        assert "400" in visit.problems.pop()
        await times.fill("every 90m")
        await visit.check()
        await dialog.get_by_role("button", name="New task").click()
        item = page.get_by_role("list", name="Tasks").get_by_role("listitem")
        await expect(item).to_contain_text("Every 90 minutes")
        await expect(item).to_contain_text("Never ran")
        await item.get_by_role("button", name="Run now").click()
        await expect(item).to_contain_text("Last:")
        await item.get_by_role("button", name="Runs").click()
        await expect(page.get_by_role("dialog").get_by_role("listitem")).to_contain_text("Done")
        await page.keyboard.press("Escape")
        await item.get_by_role("button", name="Pause").click()
        await expect(item.get_by_role("button", name="Resume")).to_be_visible()
        await visit.check()
        await visit.picture("tasks")
        await item.get_by_role("button", name="Delete").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_text("No tasks yet")).to_be_visible()
        await page.get_by_role("button", name="Undo").click()
        await expect(item).to_contain_text("Every 90 minutes")
        await expect(item.get_by_role("button", name="Resume")).to_be_visible()  # still paused
        await visit.check()
