"""The pages of an agent's files and snapshots: write, upload, preview, compare and restore."""

import base64
from typing import Any

from playwright.async_api import Browser, FilePayload, expect

from tests.dashboard.browser import visiting
from tests.support.server import RunningServer

NOTE: FilePayload = {"name": "note.md", "mimeType": "text/markdown", "buffer": b"# First\n"}
PICTURE: FilePayload = {"name": "picture.bin", "mimeType": "application/octet-stream", "buffer": b"\x00\xff"}
# One red pixel.
PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC")
SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="40" height="30" onload="top.document.title = 'attacked'">
<script>top.document.title = 'attacked'</script><image href="/v0/agents" width="9" height="9"/>
<rect width="40" height="30" fill="teal"/></svg>"""


async def test_previews_run_no_script_and_load_nothing(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    """Images, drawings and Markdown are shown; what is in them runs no script and loads nothing."""
    client = server.client(server.key())
    written = {
        "red.png": PNG,
        "broken.png": b"\x89PNG and no more",
        "drawing.svg": SVG.encode(),
        "page.md": b"# Plan\n\n- one\n\n![logo](/v0/agents) <img src=x onerror=\"top.document.title='attacked'\">\n",
    }
    for name, content in written.items():
        params = {"path": f"shown/{name}"}
        answer = await client.put(f"/v0/agents/{agent['agentId']}/files/content", params=params, content=content)
        assert answer.is_success
    async with visiting(browser, server, role="owner") as visit:
        page, asked = visit.page, list[str]()
        await visit.open(f"/agents/{agent['agentId']}/files")
        tree = page.get_by_role("treegrid", name="Files")
        await tree.get_by_role("row", name="shown").click()
        page.on("request", lambda request: asked.append(request.url))
        await tree.get_by_role("row", name="red.png").click()
        await expect(page.get_by_role("img", name="shown/red.png")).to_have_js_property("naturalWidth", 1)
        await visit.check()
        await tree.get_by_role("row", name="broken.png").click()
        await expect(page.get_by_text("The browser cannot show this image.")).to_be_visible()
        await tree.get_by_role("row", name="drawing.svg").click()
        await page.get_by_role("button", name="Preview").click()
        await expect(page.get_by_role("img", name="shown/drawing.svg")).to_have_js_property("naturalWidth", 40)
        await visit.check()
        await visit.picture("files-preview")
        await tree.get_by_role("row", name="page.md").click()
        editor = page.get_by_role("textbox", name="shown/page.md")
        await editor.press("Control+Home")
        await page.keyboard.insert_text("# Changed\n\n")
        await page.get_by_role("button", name="Preview").click()
        preview = page.get_by_role("region", name="Preview of shown/page.md")
        await expect(preview.get_by_role("heading")).to_have_text(["Changed", "Plan"])
        await expect(preview.get_by_role("listitem")).to_have_text("one")
        await expect(preview.get_by_role("img")).to_have_count(0)
        await page.get_by_role("button", name="Text", exact=True).click()
        await page.get_by_role("button", name="Discard changes").click()
        await expect(editor).to_contain_text("# Plan")
        assert "attacked" not in await page.title()
        assert not [url for url in asked if url.endswith("/v0/agents")]
        await visit.check()


async def test_files_and_their_snapshots(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/files")
        await page.get_by_role("button", name="New folder").click()
        await page.get_by_label("Name of the folder").fill("notes")
        await page.get_by_role("dialog").get_by_role("button", name="New folder").click()
        tree = page.get_by_role("treegrid", name="Files")
        await tree.get_by_role("row", name="notes").click()
        await page.locator("input[type=file]").set_input_files([NOTE, PICTURE])
        await expect(page.get_by_text("2 files were uploaded.")).to_be_visible()
        await tree.get_by_role("row", name="picture.bin").click()
        await expect(page.get_by_text("The file is not text.")).to_be_visible()
        await tree.get_by_role("row", name="note.md").click()
        editor = page.get_by_role("textbox", name="notes/note.md")
        await expect(editor).to_have_text("# First")
        await visit.check()
        await visit.open(f"/agents/{agent['agentId']}/snapshots")
        await page.get_by_role("button", name="Take a snapshot").click()
        await expect(page.get_by_text("A snapshot was taken")).to_be_visible()
        await visit.open(f"/agents/{agent['agentId']}/files")
        await tree.get_by_role("row", name="notes").click()
        await tree.get_by_role("row", name="note.md").click()
        await editor.press("Control+a")
        await page.keyboard.press("Backspace")
        await page.keyboard.type("# Second")
        await expect(page.get_by_text("Not saved")).to_be_visible()
        await editor.press("Control+s")
        await expect(page.get_by_text("note.md was saved.")).to_be_visible()
        await expect(page.get_by_text("Not saved")).to_have_count(0)
        await visit.picture("files")
        await visit.open(f"/agents/{agent['agentId']}/snapshots")
        await page.get_by_role("button", name="Take a snapshot").click()
        await expect(page.get_by_text("A snapshot was taken")).to_be_visible()
        earlier = page.get_by_role("list", name="Snapshots").get_by_role("listitem").nth(1)
        await earlier.get_by_role("button", name="Changes since").click()
        await page.get_by_role("button", name="notes/note.md").click()
        await expect(page.get_by_role("region", name="notes/note.md")).to_contain_text("-# First")
        await visit.check()
        await visit.picture("snapshots")
        await page.keyboard.press("Escape")
        await earlier.get_by_role("button", name="Label").click()
        await page.get_by_role("textbox", name="Label").fill("before the move")
        await page.keyboard.press("Enter")
        await expect(earlier).to_contain_text("before the move")
        await earlier.get_by_role("button", name="Restore").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Restore").click()
        await expect(page.get_by_text("The workspace was restored.")).to_be_visible()
        await visit.check()
        await visit.open(f"/agents/{agent['agentId']}/files")
        await tree.get_by_role("row", name="notes").click()
        await tree.get_by_role("row", name="note.md").click()
        await expect(editor).to_have_text("# First")
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
        await expect(tree.get_by_role("row", name="note.md")).to_have_count(0)
        await page.get_by_role("button", name="Undo").click()
        await tree.get_by_role("row", name="note.md").click()
        await expect(editor).to_have_text("# First")
        await tree.get_by_role("row", name="notes").click()
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Delete").click()
        await expect(tree.get_by_role("row", name="notes")).to_have_count(0)
        await visit.check()


async def test_changes_are_not_lost(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    client = server.client(server.key())
    content = f"/v0/agents/{agent['agentId']}/files/content"
    for name in ("a.txt", "texts/b.txt"):
        assert (await client.put(content, params={"path": name}, content="first")).is_success
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/files")
        tree = page.get_by_role("treegrid", name="Files")
        folder, inner = (tree.get_by_role("row", name=name) for name in ("texts", "b.txt"))
        await folder.focus()
        await page.keyboard.press("ArrowRight")
        await expect(inner).to_be_visible()
        await page.keyboard.press("ArrowLeft")
        await expect(inner).to_have_count(0)
        await page.keyboard.press("ArrowRight")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        editor = page.get_by_role("textbox", name="texts/b.txt")
        await expect(editor).to_have_text("first")
        await editor.press("Control+End")
        await page.keyboard.type(" mine")
        assert (await client.put(content, params={"path": "texts/b.txt"}, content="theirs\n")).is_success
        await editor.press("Control+s")
        await expect(page.get_by_role("region", name="What changed meanwhile")).to_contain_text("theirs")
        assert (await client.get(content, params={"path": "texts/b.txt"})).text == "theirs\n"
        await visit.picture("files-conflict")
        visit.problems[:] = [problem for problem in visit.problems if not problem.startswith("412 PUT")]
        await visit.check()
        await page.get_by_role("button", name="Keep mine").click()
        await tree.get_by_role("row", name="a.txt").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Stay").click()
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("b.txt was saved.")).to_be_visible()
        assert (await client.get(content, params={"path": "texts/b.txt"})).text == "first mine"
        await editor.press("Control+End")
        await page.keyboard.type(" again")
        await page.get_by_role("link", name="Logs").click()
        await visit.check()
        await page.get_by_role("alertdialog").get_by_role("button", name="Leave without saving").click()
        await expect(page.get_by_role("heading", name="Logs")).to_be_visible()
        await visit.check()
