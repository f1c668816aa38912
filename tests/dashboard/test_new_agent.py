"""The form of a new agent: from a snapshot of another one, by its agent and by its CID."""

import re
from typing import Any

import httpx2 as httpx
import pytest
from playwright.async_api import Browser, Page, expect

from tests.dashboard.browser import SIZES, visiting
from tests.support.server import RunningServer

CREATION_MS = 60_000


@pytest.fixture
async def cid(server: RunningServer, agent: dict[str, Any]) -> str:
    """The CID of a snapshot of Ada's whose note says `first`; the present one says `second`."""
    client, path = server.client(server.key()), f"/v0/agents/{agent['agentId']}"
    cids = list[str]()
    for text in ("first", "second"):
        await client.put(f"{path}/files/content", params={"path": "note.txt"}, content=text.encode())
        cids.append((await client.post(f"{path}/snapshots/sync")).json()["snapshotCid"])
    await client.put(f"{path}/files/content", params={"path": "note.txt"}, content=b"third")
    return cids[0]


async def choose(page: Page, label: str, option: str) -> None:
    await page.get_by_role("button", name=re.compile(f"{label}$")).click()  # after the chosen option
    await page.get_by_role("option", name=option).first.click()


async def read_note(client: httpx.AsyncClient, page: Page, name: str) -> str:
    """Wait for the page of the new agent, and return its note."""
    await expect(page.get_by_role("heading", name=name)).to_be_visible(timeout=CREATION_MS)
    agent_id = page.url.split("/")[-2]
    return (await client.get(f"/v0/agents/{agent_id}/files/content", params={"path": "note.txt"})).text


@pytest.mark.parametrize("size", SIZES)
async def test_an_agent_of_a_snapshot(browser: Browser, server: RunningServer, cid: str, size: str) -> None:
    client = server.client(server.key())
    async with visiting(browser, server, size, role="editor") as visit:
        page = visit.page
        await visit.open("/agents/new")
        await page.get_by_label("Name").fill(f"Now {size}")
        await choose(page, "Begin with", "A snapshot of an agent")
        await choose(page, "Agent", "Ada")
        await visit.check()
        await visit.picture(f"{size}-new-agent-of-snapshot")
        await expect(page.get_by_text(f"'Now {size}'")).to_contain_text("roost agents fork ")
        await page.get_by_role("button", name="Create agent").click()
        assert await read_note(client, page, f"Now {size}") == "third"

        await visit.open("/agents/new")
        await page.get_by_label("Name").fill(f"Then {size}")
        await choose(page, "Begin with", "A snapshot of an agent")
        await choose(page, "Agent", "Ada")
        await page.get_by_role("button", name=re.compile("Snapshot$")).click()
        options = page.get_by_role("option")
        await expect(options.first).to_contain_text("As it is now")
        await options.nth(await options.count() - 1).click()
        await page.get_by_role("button", name="Create agent").click()
        assert await read_note(client, page, f"Then {size}") in {"first", "second"}
        assert visit.problems == []


async def test_an_agent_of_a_cid(browser: Browser, server: RunningServer, cid: str) -> None:
    client = server.client(server.key())
    async with visiting(browser, server, role="editor") as visit:
        page = visit.page
        await visit.open("/agents/new")
        await page.get_by_label("Name").fill("By CID")
        await choose(page, "Begin with", "A snapshot of an agent")
        await choose(page, "Agent", "Any, by the CID")
        await page.get_by_role("button", name="Create agent").click()
        await expect(page.get_by_text("Enter the CID of a snapshot.")).to_be_visible()
        await page.get_by_label("CID of the snapshot").fill(cid)
        await expect(page.get_by_text("Enter the CID of a snapshot.")).to_have_count(0)
        await page.get_by_role("button", name="Create agent").click()
        assert await read_note(client, page, "By CID") == "first"
        assert visit.problems == []


async def test_an_unknown_cid_is_told_in_words(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server, role="editor", tenant="nobody") as visit:
        page = visit.page
        await visit.open("/agents/new")
        await page.get_by_label("Name").fill("Lost")
        await choose(page, "Begin with", "A snapshot of an agent")
        await page.get_by_label("CID of the snapshot").fill("nonsense")
        await page.get_by_role("button", name="Create agent").click()
        await expect(page.get_by_role("alert")).to_be_visible()
        assert [problem.partition(" ")[0] for problem in visit.problems] == ["400"]
