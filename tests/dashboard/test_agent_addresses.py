"""The page of an agent's routes and domains: refusals where they belong, and changes from elsewhere by themselves."""

from typing import Any

from playwright.async_api import Browser, expect

from tests.dashboard.browser import visiting
from tests.support.server import RunningServer


async def test_routes_are_added_changed_and_removed(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    address = f"/v0/agents/{agent['agentId']}/port-forwarding"
    client = server.client(server.key())
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/routes")
        routes = page.get_by_role("list", name="Routes")
        for path, port in (("/site", "3000"), ("/v0/x", "80")):
            await page.get_by_role("button", name="Add a route").click()
            row = routes.get_by_role("listitem").last
            await row.get_by_label("Path").fill(path)
            await row.get_by_label("Port").fill(port)
        await routes.get_by_role("button", name="Who gets in").first.click()
        await page.get_by_role("option", name="Everyone").click()
        await page.get_by_role("button", name="Save").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Save").click()
        await expect(row).to_contain_text("pathPrefix /v0 belongs to the platform")
        assert "400" in visit.problems.pop()
        await visit.picture("routes-refused")
        await visit.check()
        await row.get_by_label("Path").fill("/x")
        await page.get_by_role("button", name="Save").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Save").click()
        await expect(row).to_contain_text("port must be from 1025 to 65535, got 80")
        assert "400" in visit.problems.pop()
        await row.get_by_role("button", name="Remove the route /x").click()
        await page.get_by_role("button", name="Save").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Save").click()
        await expect(page.get_by_role("link", name="Open /site")).to_be_visible()
        stored = (await client.get(address)).json()["mappings"]
        assert stored == [{"port": 3000, "pathPrefix": "/site", "protected": False}]
        await routes.get_by_role("button", name="Remove the route /site").click()
        await page.get_by_role("button", name="Save").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Not saved")).to_have_count(0)
        assert (await client.get(address)).json()["mappings"] == []
        await page.get_by_role("button", name="Undo").last.click()
        await expect(page.get_by_role("link", name="Open /site")).to_be_visible()
        assert (await client.get(address)).json()["mappings"] == stored
        await routes.get_by_label("Port").fill("3001")
        await client.put(address, json={"mappings": []})
        await page.reload()
        await expect(page.get_by_text("No routes.")).to_be_visible()
        await visit.check()


async def test_domains_are_added_verified_and_removed(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    client = server.client(server.key())
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        dialog = page.get_by_role("dialog")
        await visit.open(f"/agents/{agent['agentId']}/routes")
        await page.get_by_role("button", name="Add a domain").click()
        await dialog.get_by_role("textbox", name="Name").fill("ada")
        await dialog.get_by_label("Port").fill("3000")
        await visit.check()
        await dialog.get_by_role("button", name="Add", exact=True).click()
        domains = page.get_by_role("list", name="Domains").get_by_role("listitem")
        ada = domains.filter(has_text="ada.agents.localhost")
        await expect(ada).to_contain_text("Active")
        await page.get_by_role("button", name="Add a domain").click()
        await dialog.get_by_role("button", name="Kind").click()
        await page.get_by_role("option", name="A domain of your own").click()
        await dialog.get_by_role("textbox", name="Domain").fill("app.example.com")
        await dialog.get_by_role("button", name="Leads to").click()
        await page.get_by_role("option", name="The gateway").click()
        await dialog.get_by_role("button", name="Add", exact=True).click()
        app = domains.filter(has_text="app.example.com")
        await expect(app).to_contain_text("Not proven yet")
        record = page.get_by_role("region", name="DNS record")
        await expect(record).to_contain_text("_roost-verify.app.example.com")
        await expect(record).to_contain_text("roost-verify=")
        await visit.check()
        await visit.picture("domains")
        await ada.get_by_role("button", name="Change ada").click()
        await dialog.get_by_role("button", name="Who gets in").click()
        await page.get_by_role("option", name="Everyone").click()
        await dialog.get_by_role("button", name="Change", exact=True).click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Change").click()
        await expect(ada).to_contain_text("Everyone")
        found = (await client.get(f"/v0/agents/{agent['agentId']}/domains")).json()["domains"]
        assert (await client.delete(f"/v0/agents/{agent['agentId']}/domains/{found[0]['id']}")).is_success
        await expect(ada).to_have_count(0)
        await app.get_by_role("button", name="Remove app.example.com").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Remove").click()
        await expect(page.get_by_text("No domains.")).to_be_visible()
        await visit.check()
