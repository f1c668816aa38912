"""Every page of the dashboard with agents of the real engines, in both sizes.

The other tests of pages use a fake engine, which is fast and can be told to fail; this one finds what the fake hides.
"""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

import pytest
from playwright.async_api import Browser, Locator, Page, expect

from roost import config
from roost.app.drivers import create_engines
from tests.dashboard.browser import SIZES, Visit, visiting
from tests.journeys.openclaw_device import Device, greet, open_websocket
from tests.platforms.standin import serve_platforms
from tests.platforms.telegram import Telegram
from tests.support.server import RunningServer, running

pytestmark = [pytest.mark.engine, pytest.mark.timeout(900)]

TENANT = "default"  # the operator's, who sees the page of the system
NAMES = {"openclaw": "Owl", "hermes": "Hare"}
SHELLS = {"openclaw": "exec", "hermes": "terminal"}
"""The tool of each engine that runs a command."""
TOKEN = "123456789:AAExampleTokenOfATelegramBot0123456"
ENGINE_PATIENCE_MS = 120_000  # an engine's first answer takes long on a busy machine
TENANT_PAGES = [
    *("/", "/agents", "/agents/new", "/secrets", "/keys", "/skills", "/hub", "/templates", "/usage", "/activity"),
    *("/storage/files", "/storage/groups", "/storage/gateways", "/storage/vectors", "/storage/payments", "/system"),
]


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    """Run a server with the real engines, whose Telegram refuses every token."""
    folder = tmp_path_factory.mktemp("d")
    with serve_platforms(Telegram()) as platforms:
        (folder / "ca.pem").write_bytes(platforms.authority.certificate)
        settings: dict[str, Any] = {
            **platforms.settings,
            "ROOST_CA_FILE": str(folder / "ca.pem"),
            "ROOST_TELEGRAM_API": "http://127.0.0.1:9",
            "ROOST_CATALOGUE": "true",
        }
        engines = create_engines(config.load_settings())
        async with running(folder / "data", engines=engines, **settings) as server:
            yield server


@pytest.fixture(scope="module")
async def agents(server: RunningServer) -> dict[str, dict[str, Any]]:
    client = server.client(server.key(TENANT))
    bodies = [{"name": name, "engine": engine} for engine, name in NAMES.items()]
    answers = await asyncio.gather(*(client.post("/v0/agents", json=body, timeout=300) for body in bodies))
    made = [answer.json()["agent"] for answer in answers]
    skill = ("tidy/SKILL.md", "---\nname: tidy\ndescription: Tidies the workspace up\n---\nUse it.\n")
    assert (await client.post("/v0/skills", files={"file": skill})).is_success
    return {agent["engine"]: agent for agent in made}


@dataclass(frozen=True)
class AgentVisit:
    visit: Visit
    server: RunningServer
    agent: dict[str, Any]
    size: str

    @property
    def page(self) -> Page:
        return self.visit.page

    @property
    def engine(self) -> str:
        return self.agent["engine"]

    @property
    def main(self) -> Locator:
        return self.page.get_by_role("main")

    def item(self, listed: str, text: str = "") -> Locator:
        return self.page.get_by_role("list", name=listed, exact=True).get_by_role("listitem").filter(has_text=text)

    async def click(self, name: str) -> None:
        await self.main.get_by_role("button", name=name, exact=True).click()

    async def confirm(self, name: str, role: Literal["dialog", "alertdialog"] = "dialog") -> None:
        await self.page.get_by_role(role).get_by_role("button", name=name, exact=True).click()


async def use_overview(at: AgentVisit) -> None:
    await expect(at.main.get_by_text("Running", exact=True)).to_be_visible()
    await expect(at.main.get_by_text(f"{at.engine} {at.agent['agentVersion']}")).to_be_visible()
    await expect(at.item("Activity").first).to_be_visible()


async def use_chat(at: AgentVisit) -> None:
    await at.page.get_by_label("Message", exact=True).fill(
        f'/tool {SHELLS[at.engine]} {{"command": "echo made by $USER | tee made-{at.size}.txt"}}'
    )
    await at.click("Send")
    answer = at.page.get_by_role("article").last
    await expect(answer).to_contain_text("made by agent", timeout=ENGINE_PATIENCE_MS)
    if at.engine == "hermes":
        await expect(answer.get_by_text("done", exact=True)).to_be_visible()
        await answer.get_by_text("terminal", exact=True).click()
    await expect(at.page.get_by_role("button", name="Send")).to_be_visible()


async def use_logs(at: AgentVisit) -> None:
    await expect(at.main.get_by_text("Live", exact=True)).to_be_visible()
    await at.page.get_by_label("Search", exact=True).fill("tool")
    await expect(at.page.get_by_role("log")).to_contain_text("tool")  # both engines tell of the chat's


async def use_files(at: AgentVisit) -> None:
    name, tree = f"made-{at.size}.txt", at.page.get_by_role("treegrid", name="Files")
    await at.page.locator("input[type=file]").set_input_files(
        [{"name": f"{at.size}.bin", "mimeType": "application/octet-stream", "buffer": b"\x00\xff"}]
    )
    await tree.get_by_role("row", name=f"{at.size}.bin").click()
    await expect(at.page.get_by_text("The file is not text.")).to_be_visible()
    await tree.get_by_role("row", name=name).click()
    editor = at.page.get_by_role("textbox", name=name)
    await expect(editor).to_have_text("made by agent")
    await editor.press("Control+a")
    await at.page.keyboard.type("changed here")
    await at.click("Save")
    await expect(at.page.get_by_text(f"{name} was saved.")).to_be_visible()


async def use_terminal(at: AgentVisit) -> None:
    await expect(at.page.get_by_text("Connected", exact=True)).to_be_visible()
    await at.page.keyboard.type(f"cat made-{at.size}.txt; echo $((6*7)) in $PWD\n")
    await expect(at.page.locator(".xterm-rows")).to_contain_text("changed here42 in /workspace")


async def use_snapshots(at: AgentVisit) -> None:
    path, params = f"/v0/agents/{at.agent['agentId']}/files/content", {"path": f"made-{at.size}.txt"}
    client = at.server.client(at.server.key(TENANT))
    taken = at.page.get_by_text("A snapshot was taken")
    await at.click("Take a snapshot")
    await expect(taken).to_be_visible()
    assert (await client.put(path, params=params, content="changed later")).is_success
    await at.click("Take a snapshot")
    await expect(at.item("Snapshots").first).to_contain_text("1 file changed")
    earlier = at.item("Snapshots").nth(1)
    await earlier.get_by_role("button", name="Changes since").click()
    await at.page.get_by_role("button", name=params["path"]).click()
    await expect(at.page.get_by_role("region", name=params["path"])).to_contain_text("+changed later")
    await at.visit.check()
    await at.visit.picture(f"{at.engine}-snapshots-changes")
    await at.page.keyboard.press("Escape")
    await earlier.get_by_role("button", name="Restore").click()
    await at.confirm("Restore", "alertdialog")
    await expect(at.page.get_by_text("The workspace was restored.")).to_be_visible()
    assert (await client.get(path, params=params)).text == "changed here"


async def use_tasks(at: AgentVisit) -> None:
    await at.page.get_by_role("button", name="New task").click()
    await at.page.get_by_label("Name").fill(f"Report {at.size}")
    await at.page.get_by_label("Instruction").fill("/say All is well")
    await at.confirm("New task")
    item = at.item("Tasks", f"Report {at.size}")
    await item.get_by_role("button", name="Run now").click()
    await expect(item).to_contain_text("Last:", timeout=ENGINE_PATIENCE_MS)
    await item.get_by_role("button", name="Runs").click()
    run = at.page.get_by_role("dialog").get_by_role("listitem")
    await expect(run).to_contain_text("Done")
    await expect(run).to_contain_text("All is well")
    await at.visit.check()
    await at.visit.picture(f"{at.engine}-tasks-runs")
    await at.page.keyboard.press("Escape")


async def use_skills(at: AgentVisit) -> None:
    await at.click("Attach a skill")
    await at.confirm("Attach")
    item = at.item("Skills", "tidy")
    await expect(item).to_contain_text("Version")
    await expect(item.get_by_text("The engine does not list it yet")).to_have_count(0, timeout=ENGINE_PATIENCE_MS)
    await at.visit.picture(f"{at.engine}-skills-attached")
    await item.get_by_role("button", name="Remove").click()
    await at.confirm("Remove", "alertdialog")
    await expect(item).to_have_count(0)


async def use_secrets(at: AgentVisit) -> None:
    name = f"KEY_{at.engine}_{at.size}".upper()
    await at.click("New secret")
    await at.page.get_by_label("Name").fill(name)
    await at.page.get_by_label("Value").fill("not-to-be-shown")
    await at.confirm("New secret")
    await expect(at.item("Secrets", name)).to_be_visible()


async def use_channels(at: AgentVisit) -> None:
    telegram = at.item("Channels", "Telegram")
    await telegram.get_by_role("button", name="Set up").click()
    dialog = at.page.get_by_role("dialog")
    await dialog.get_by_label("Bot token").fill(TOKEN)
    await dialog.get_by_role("textbox", name="People who need no code").fill("4711")
    await dialog.get_by_role("button", name="Connect").click()
    await expect(dialog.get_by_text("The token was not checked.")).to_be_visible(timeout=ENGINE_PATIENCE_MS)
    await expect(dialog.get_by_role("alert")).to_be_visible(timeout=ENGINE_PATIENCE_MS)
    await at.visit.check()
    await at.visit.picture(f"{at.engine}-channels-steps")
    await dialog.get_by_role("button", name="Done").click()
    await expect(telegram).to_contain_text("Failed")
    await expect(telegram).to_contain_text("1 person on the list")
    await expect(telegram.get_by_role("alert")).to_be_visible()
    assert TOKEN not in await at.page.content()
    await at.visit.check()
    await at.visit.picture(f"{at.engine}-channels-failed")
    await telegram.get_by_role("button", name="Remove").click()
    await at.confirm("Remove", "alertdialog")
    await expect(at.page.get_by_role("alertdialog")).to_have_count(0, timeout=ENGINE_PATIENCE_MS)
    await expect(telegram).to_contain_text("Not set up")


def connect_device(server: RunningServer, agent: dict[str, Any]) -> None:
    """Send a device's greeting, which the gateway answers with a request for approval."""
    host = f"{agent['agentId']}.agents.localhost"
    token = agent["gatewayToken"]
    with open_websocket(host, ("127.0.0.1", server.port), Authorization=f"Bearer {token}") as opened:
        assert greet(opened, Device(), token)["error"]["code"] == "NOT_PAIRED"


async def use_devices(at: AgentVisit) -> None:
    if at.engine == "hermes":
        await expect(at.page.get_by_role("heading", name="This engine knows no devices.")).to_be_visible()
        return
    await asyncio.to_thread(connect_device, at.server, at.agent)
    approved = await at.item("Approved").count()
    await at.item("Waiting for approval").get_by_role("button", name="Approve").click()
    await at.confirm("Approve", "alertdialog")
    await expect(at.item("Approved")).to_have_count(approved + 1)
    await expect(at.page.get_by_text("No device waits.")).to_be_visible()


async def use_routes(at: AgentVisit) -> None:
    if await at.page.get_by_label("Port").count() == 0:
        await at.click("Add a route")
        await at.page.get_by_label("Path").fill("/site")
        await at.page.get_by_label("Port").fill("3000")
        await at.click("Save")
    await expect(at.page.get_by_role("link", name="Open /site")).to_be_visible()


async def use_config(at: AgentVisit) -> None:
    editor = at.page.get_by_role("textbox", name="Configuration")
    await editor.press("Control+a")
    wrong = {"openclaw": '{\n"messages": {},\n"gateway": {"bind": 7}\n}', "hermes": "display:\n\tskin: owl"}
    await at.page.keyboard.insert_text(wrong[at.engine])
    await at.click("Check")
    await expect(at.page.get_by_role("alert")).to_contain_text("does not accept", timeout=ENGINE_PATIENCE_MS)
    marked = {"openclaw": '"gateway"', "hermes": "skin"}
    await expect(at.page.locator(".cm-problem")).to_contain_text(marked[at.engine])
    assert "400" in at.visit.problems.pop()
    await at.visit.check()
    await at.visit.picture(f"{at.engine}-config-refused")
    await at.click("Discard changes")
    await expect(at.page.get_by_role("alert")).to_have_count(0)


async def use_usage(at: AgentVisit) -> None:
    await expect(at.page.get_by_role("img", name="Tokens by day")).to_be_visible()


async def use_settings(at: AgentVisit) -> None:
    await at.page.get_by_label("Description").fill(f"Seen on a {at.size}")
    await at.click("Save")
    await expect(at.page.get_by_text("The settings were saved.")).to_be_visible()


STEPS = [
    *(use_overview, use_chat, use_logs, use_files, use_terminal, use_snapshots, use_tasks, use_skills, use_secrets),
    *(use_devices, use_routes, use_config, use_usage, use_settings, use_channels),
]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("engine", SHELLS)
async def test_pages_of_an_agent(
    browser: Browser, server: RunningServer, agents: dict[str, dict[str, Any]], engine: str, size: str
) -> None:
    async with visiting(browser, server, size, role="owner", tenant=TENANT) as visit:
        visit.page.set_default_timeout(ENGINE_PATIENCE_MS)
        at = AgentVisit(visit, server, agents[engine], size)
        for step in STEPS:
            name = step.__name__.removeprefix("use_")
            await visit.open(f"/agents/{agents[engine]['agentId']}/{name}")
            await step(at)
            await visit.check()
            await visit.picture(f"{engine}-{name}")


@pytest.mark.parametrize("size", SIZES)
async def test_pages_of_the_tenant(
    browser: Browser, server: RunningServer, agents: dict[str, dict[str, Any]], size: str
) -> None:
    async with visiting(browser, server, size, role="owner", tenant=TENANT) as visit:
        for path in TENANT_PAGES:
            await visit.open(path)
            if path == "/agents":
                rows = visit.page.get_by_role("row").filter(has_text=re.compile("|".join(NAMES.values())))
                await expect(rows).to_have_count(len(agents))
                if size == "desktop":
                    await expect(rows.get_by_text(re.compile(r"^[\d.]+ [MG]B$"))).to_have_count(len(agents))
            await visit.check()
            await visit.picture(path)
