"""Files, groups and gateways in the dashboard: uploads with resume, folders, links, and access controls."""

import asyncio
from pathlib import Path
from typing import Any

import httpx2 as httpx
from playwright.async_api import Browser, Route, expect

from roost.identity.tenants import ensure_tenant
from tests.dashboard.browser import visiting
from tests.dashboard.stored_files import insert_files
from tests.support.server import RunningServer


async def test_files_are_uploaded_filtered_and_deleted(browser: Browser, server: RunningServer, tmp_path: Path) -> None:
    folder = tmp_path / "trip"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(name)
    async with visiting(browser, server, role="editor") as visit:
        page = visit.page
        await visit.open("/storage/files")
        await page.get_by_test_id("files").set_input_files(
            [
                {"name": "one.txt", "mimeType": "text/plain", "buffer": b"first"},
                {"name": "<b>two.bin", "mimeType": "", "buffer": bytes(3_000_000)},
            ]
        )
        await expect(page.get_by_text("Done", exact=True)).to_have_count(2)
        await page.get_by_test_id("folder").set_input_files(folder)
        await expect(page.get_by_text("Done", exact=True)).to_have_count(3)
        await expect(page.get_by_role("button", name="trip", exact=True)).to_be_visible()
        await visit.check()
        await page.get_by_label("Search by name").fill("one")
        await expect(page.get_by_role("button", name="trip", exact=True)).to_have_count(0)
        await page.get_by_role("button", name="one.txt", exact=True).click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("button", name="Make a link for an hour").click()
        link = await dialog.get_by_role("region", name="Address").inner_text()
        await visit.check()
        assert await _fetch(server, link) == "first"
        await dialog.get_by_role("textbox", name="Name").fill("one renamed")
        await dialog.get_by_role("button", name="Save name").click()
        await expect(page.get_by_role("heading", name="one renamed")).to_be_visible()
        await dialog.get_by_role("button", name="Delete").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_text("No file matches.")).to_be_visible()
        assert visit.problems == []


async def test_long_lists_load_as_they_are_scrolled(browser: Browser, server: RunningServer) -> None:
    server.key("archive")
    server.roost.core.db.run(lambda connection: insert_files(connection, ensure_tenant(connection, "archive").id, 500))
    async with visiting(browser, server, role="viewer", tenant="archive") as visit:
        page = visit.page
        await visit.open("/storage/files")
        await expect(page.get_by_role("cell", name="report 0.txt")).to_be_visible()
        last = page.get_by_role("button", name="report 499.txt", exact=True)
        async with asyncio.timeout(20):
            while not await last.is_visible():
                await page.evaluate("document.querySelector('#content').scrollBy(0, 4000)")
                await page.evaluate("new Promise(requestAnimationFrame)")
        assert await page.locator("tbody tr").count() < 100
        await visit.check()
        await last.click()
        await expect(page.get_by_role("dialog", name="report 499.txt")).to_be_visible()


async def test_an_upload_goes_on_after_an_error(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server, role="editor") as visit:
        page, refusals = visit.page, ["first", "second"]

        async def refuse_once(route: Route) -> None:
            if route.request.method == "PATCH" and refusals:
                refusals.pop()
                await route.abort("connectionreset")
            else:
                await route.continue_()

        await page.route("**/v3/files/**", refuse_once)
        await visit.open("/storage/files")
        await page.get_by_test_id("files").set_input_files(
            {"name": "late.txt", "mimeType": "text/plain", "buffer": b"late"}
        )
        await expect(page.get_by_text("Done", exact=True)).to_be_visible()
        await expect(page.get_by_role("button", name="late.txt", exact=True)).to_be_visible()
        assert not refusals


async def test_groups_are_created_filled_and_deleted(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server, role="editor") as visit:
        page = visit.page
        await visit.open("/storage/groups?network=public")
        await page.get_by_role("button", name="New group").click()
        await page.get_by_role("textbox", name="Name").fill("Manuals")
        await page.get_by_role("button", name="Create group").click()
        await page.get_by_role("button", name="Rename Manuals").click()
        await page.get_by_role("textbox", name="Name").fill("Handbooks")
        await page.get_by_role("button", name="Rename", exact=True).click()
        await page.get_by_role("link", name="Handbooks").click()
        await page.get_by_test_id("files").set_input_files(
            {"name": "in.txt", "mimeType": "text/plain", "buffer": b"in the group"}
        )
        await page.get_by_role("button", name="in.txt", exact=True).click()
        await expect(page.get_by_role("dialog").get_by_text("Handbooks").first).to_be_visible()
        address = await page.get_by_role("dialog").get_by_role("region", name="Address").inner_text()
        assert "/ipfs/" in address
        await page.get_by_role("dialog").get_by_role("button", name="Group").click()
        await page.get_by_role("option", name="None", exact=True).click()
        await page.get_by_role("button", name="Undo").click()
        await expect(page.get_by_text("It is restored.")).to_be_visible()
        await expect(page.get_by_role("button", name="in.txt", exact=True)).to_be_visible()
        await visit.open("/storage/groups?network=public")
        await page.get_by_role("button", name="Delete Handbooks").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_role("heading", name="No groups here yet")).to_be_visible()
        assert visit.problems == []


async def test_gateways_are_created_and_deleted(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server, role="editor") as visit:
        page = visit.page
        await visit.open("/storage/gateways")
        await page.get_by_role("button", name="New gateway").click()
        await page.get_by_role("textbox", name="Name").fill("shop-files")
        await page.get_by_role("button", name="Create gateway").click()
        section = page.locator("section", has=page.get_by_role("heading", name="shop-files"))
        await section.get_by_role("button", name="Create a token").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Create a token").click()
        token = await page.get_by_role("alertdialog").locator("pre").inner_text()
        await page.get_by_role("button", name="Done").click()
        await expect(section.get_by_text("Token", exact=True)).to_be_visible()
        assert token.startswith("rgw_")
        await expect(page.get_by_role("alertdialog")).to_have_count(0)
        assert token not in await page.content()
        await section.get_by_role("button", name="Allow an address").click()
        await page.get_by_role("textbox", name="Address").fill("203.0.113.9")
        await page.get_by_role("button", name="Allow", exact=True).click()
        await section.get_by_role("button", name="Remove 203.0.113.9").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Remove").click()
        await expect(section.get_by_text("203.0.113.9")).to_have_count(0)
        await section.get_by_label("Hot Swaps").click()
        await expect(section.get_by_label("Hot Swaps")).to_be_checked()
        await section.get_by_role("button", name="Add a domain").click()
        await page.get_by_role("textbox", name="Domain").fill("files.example.com")
        await page.get_by_role("button", name="Add", exact=True).click()
        await expect(section.get_by_text("Pending")).to_be_visible()
        await visit.check()
        await section.get_by_role("button", name="Delete shop-files").click()
        await page.get_by_label("Type").fill("shop-files")
        await page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_role("heading", name="shop-files")).to_have_count(0)
        assert visit.problems == []


async def test_search_by_meaning(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    client = server.client(server.key(), "localhost")
    group = (await client.post("/v3/groups/private", json={"name": "Manuals"})).json()["data"]["id"]
    await client.post(
        "/v3/files",
        files={"file": ("boiler.txt", b"The boiler is serviced in May.")},
        data={"network": "private", "group_id": group},
    )
    async with visiting(browser, server, role="editor") as visit:
        page = visit.page
        await visit.open(f"/storage/vectors?group={group}")
        await page.get_by_role("button", name="Index boiler.txt").click()
        await expect(page.get_by_text("Indexed", exact=True)).to_be_visible()
        await page.get_by_label("What do you look for?").fill("When is the boiler serviced?")
        await page.get_by_role("button", name="Search", exact=True).click()
        await expect(page.get_by_role("list", name="Matches").get_by_text("serviced in May")).to_be_visible()
        await page.get_by_label(agent["name"], exact=True).click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Allow").click()
        await expect(page.get_by_label(agent["name"], exact=True)).to_be_checked()
        await visit.check()
        allowed = (await client.get(f"/v3/vectorize/groups/{group}/agents")).json()["data"]["agents"]
        assert [one["agent_id"] for one in allowed] == [agent["agentId"]]
        await page.get_by_role("button", name="Remove the index of boiler.txt").click()
        await expect(page.get_by_text("Not indexed")).to_be_visible()
        assert visit.problems == []


async def _fetch(server: RunningServer, link: str) -> str:
    url = httpx.URL(link)
    return (await server.client(None, url.host).get(url.raw_path.decode())).text
