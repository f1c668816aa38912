"""The settings of an agent: what is changed is saved, nothing else is sent."""

from typing import Any

from playwright.async_api import Browser, expect

from tests.dashboard.browser import visiting
from tests.support.server import RunningServer


async def test_settings_of_an_agent_are_changed(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, role="editor") as visit:
        page, path = visit.page, f"/v0/agents/{agent['agentId']}"
        await visit.open(f"/agents/{agent['agentId']}/settings")
        save = page.get_by_role("button", name="Save")
        await expect(save).to_be_disabled()
        await page.get_by_label("Name").fill(" ")
        await expect(page.get_by_text("Enter a name.")).to_be_visible()
        await page.get_by_label("Name").fill("Grace")
        await page.get_by_label("Description").fill("Keeps the build green")
        async with page.expect_request(lambda request: request.method == "PATCH") as sent:
            await save.click()
        assert (await sent.value).post_data_json == {"name": "Grace", "description": "Keeps the build green"}
        await expect(page.get_by_text("The settings were saved.")).to_be_visible()
        await expect(save).to_be_disabled()
        await visit.picture("agent-settings")
        await visit.check()
        await page.get_by_label("Manner").fill("dry")
        await server.client(server.key()).patch(f"{path}/platform/metadata", json={"emoji": "\N{BIRD}"})
        await expect(page.get_by_label("Emoji")).to_have_value("\N{BIRD}")  # what another person changed meanwhile
        await page.get_by_role("link", name="Overview").first.click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Stay").click()
        async with page.expect_request(lambda request: request.method == "PATCH") as sent:
            await save.click()
        assert (await sent.value).post_data_json == {"vibe": "dry"}
        await expect(save).to_be_disabled()
        kept = (await server.client(server.key()).get(path)).json()["agent"]
        assert (kept["name"], kept["description"], kept["vibe"]) == ("Grace", "Keeps the build green", "dry")
        await page.get_by_label("Description").fill("")
        await save.click()
        await expect(save).to_be_disabled()
        assert (await server.client(server.key()).get(path)).json()["agent"]["description"] is None
