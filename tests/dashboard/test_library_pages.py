"""Skills, hub and templates in the dashboard: from an upload to the hub and back, and what hostile texts show."""

import io
import zipfile

from playwright.async_api import Browser, expect

from tests.dashboard.browser import visiting
from tests.server import RunningServer

HOSTILE = '<img src=x onerror="window.hacked=1">'


def zipped(name: str, description: str, script: str) -> bytes:
    """Return the archive of a skill."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(
            f"{name}/SKILL.md", f"---\nname: {name}\ndescription: {description!r}\n---\n# Use\n{HOSTILE}\n"
        )
        archive.writestr(f"{name}/run.sh", script)
    return packed.getvalue()


async def test_a_skill_from_upload_to_another_library(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server, role="editor") as visit:
        page = visit.page
        await visit.open("/skills")
        await expect(page.get_by_role("heading", name="No skills yet")).to_be_visible()
        await page.get_by_test_id("skill").set_input_files(
            {"name": "tidy.zip", "mimeType": "application/zip", "buffer": zipped("tidy", HOSTILE, "echo tidy\n")}
        )
        await page.get_by_role("button", name="tidy", exact=True).click()
        await visit.check()
        await page.get_by_role("button", name="Publish in the hub").click()
        await page.get_by_label("What is new").fill("The first one")
        await page.get_by_role("button", name="Publish", exact=True).click()
        await expect(page.get_by_text("tidy is in the hub.")).to_be_visible()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_role("heading", name="No skills yet")).to_be_visible()
        await visit.open("/hub")
        await page.get_by_label("Search").fill("nothing like it")
        await expect(page.get_by_text("Nothing matches.")).to_be_visible()
        await page.get_by_label("Search").fill("tidy")
        await page.get_by_role("button", name="tidy", exact=True).click()
        await expect(page.get_by_role("dialog").get_by_text("found nothing suspicious")).to_be_visible()
        await visit.check()
        await page.get_by_role("button", name="Install").click()
        await expect(page.get_by_text("tidy is in your library.")).to_be_visible()
        await visit.open("/skills")
        await expect(page.get_by_role("button", name="tidy", exact=True)).to_be_visible()
        assert await page.evaluate("window.hacked") is None
        assert visit.problems == []


async def test_a_file_that_is_no_skill_is_refused_in_words(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server, role="editor") as visit:
        page = visit.page
        await visit.open("/skills")
        await page.get_by_test_id("skill").set_input_files(
            {"name": "x.zip", "mimeType": "application/zip", "buffer": b"no archive"}
        )
        await expect(page.get_by_role("alert")).to_contain_text("Request")


async def test_a_template_address_is_refused_in_words(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server, role="editor") as visit:
        page = visit.page
        await visit.open("/templates")
        await page.get_by_role("button", name="Submit from Git").click()
        await expect(page.get_by_role("button", name="Submit", exact=True)).to_be_disabled()
        await page.get_by_label("Git address").fill("ftp://example.com/x")
        await visit.check()
        await page.get_by_role("button", name="Submit", exact=True).click()
        await expect(page.get_by_role("alert")).to_contain_text("Request")
