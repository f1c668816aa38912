"""The pictures of the docs are taken from the dashboard: `make screenshots` writes them, and CI tries to take each.

`ROOST_DOCS_IMAGES` names the folder to write to. Without it, the test compares sizes only:
fonts differ between machines.
"""

import os
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.async_api import Browser

from tests.dashboard.browser import ROOT, Visit, visiting
from tests.support.server import RunningServer

FOLDER = ROOT / "docs" / "images"
LIMIT = 150 * 1024
QUESTION = "What is in my workspace?"
SHOWN: Mapping[str, Mapping[str, Any]] = {
    "Ada": {"description": "Reads my mail and plans the week", "emoji": "\N{BIRD}"},
    "Grace": {"description": "Keeps the build green", "emoji": "\N{HAMMER}"},
    "Linus": {"description": "Answers questions about our notes", "emoji": "\N{OPEN BOOK}"},
}


async def test_the_pictures_of_the_docs(browser: Browser, server: RunningServer) -> None:
    client = server.client(server.key())
    made = [
        (await client.post("/v0/agents", json={"name": name, **about})).json()["agent"] for name, about in SHOWN.items()
    ]
    chat = f"/agents/{made[0]['agentId']}/chat"
    async with visiting(browser, server, role="owner") as visit:
        await visit.open("/")
        await take(visit, "dashboard-home")
        await ask_question(visit, chat)
        await take(visit, "dashboard-chat")
    async with visiting(browser, server, "phone", role="owner") as visit:
        await ask_question(visit, chat)
        await take(visit, "dashboard-chat-phone")


async def ask_question(visit: Visit, path: str) -> None:
    await visit.open(path)
    await visit.page.get_by_role("textbox").last.fill(QUESTION)
    await visit.page.get_by_role("button", name="Send").click()
    await visit.page.get_by_role("button", name="Send").wait_for()


async def take(visit: Visit, name: str) -> None:
    picture = Image.open(BytesIO(await visit.page.screenshot(animations="disabled", caret="hide")))
    packed = BytesIO()
    picture.convert("RGB").save(packed, "WEBP", quality=88, method=6)
    assert len(packed.getvalue()) <= LIMIT
    if folder := os.environ.get("ROOST_DOCS_IMAGES"):
        (Path(folder) / f"{name}.webp").write_bytes(packed.getvalue())
    with Image.open(FOLDER / f"{name}.webp") as kept:
        assert kept.size == picture.size
