"""What opens or closes something to others asks first, with numbers, and changes nothing until the answer."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect

from tests.dashboard.browser import visiting
from tests.support.server import RunningServer, running

TOKEN = "123456789:AAExampleTokenOfATelegramBot0123456"
TENANT = "reach"
SELLER = "0x209693Bc6afc0C5328bA36FaF03C514EF312287C"
USDC = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with running(tmp_path_factory.mktemp("reach") / "data") as server:
        yield server


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> dict[str, Any]:
    return (await server.client(server.key(TENANT)).post("/v0/agents", json={"name": "Ada"})).json()["agent"]


async def upload(client: Any, name: str, network: str, **fields: str) -> dict[str, Any]:
    form = {"network": network, **fields}
    return (await client.post("/v3/files", files={"file": (name, name.encode())}, data=form)).json()["data"]


State = Callable[[], Awaitable[object]]


async def ask(page: Page, action: str, question: str, state: State) -> None:
    """Expect a question after a click, that Cancel changes nothing, and ask again; then answer with yes."""
    dialog = page.get_by_role("alertdialog")
    await expect(dialog).to_contain_text(question)
    before = await state()
    await dialog.get_by_role("button", name=action, exact=True).click()
    await expect(dialog.get_by_text(question)).to_have_count(0)
    assert await state() != before


async def cancel(page: Page, state: State, before: object) -> None:
    await page.get_by_role("alertdialog").get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("alertdialog")).to_have_count(0)
    assert await state() == before


async def test_gateway_changes_ask_with_numbers(browser: Browser, server: RunningServer) -> None:
    client = server.client(server.key(TENANT), "localhost")
    for name in ("one", "two", "three"):
        await upload(client, name, "public")
    gateway = (await client.post("/v3/gateways", json={"domain": "reach-files"})).json()["data"]["id"]
    shown = f"/v3/gateways/{gateway}"

    async def controls() -> object:
        found = (await client.get("/v3/gateways", params={"pageSize": 100})).json()["data"]["rows"]
        return next(row["settings"] for row in found if row["id"] == gateway)

    async def domains() -> object:
        return (await client.get(f"{shown}/custom_domain")).json()["data"]

    async with visiting(browser, server, role="editor", tenant=TENANT) as visit:
        page = visit.page
        await visit.open("/storage/gateways")
        section = page.locator("section", has=page.get_by_role("heading", name="reach-files"))
        add = section.get_by_role("button", name="Create a token")
        before = await controls()
        await add.click()
        await visit.picture("gateway")
        await visit.check()
        await cancel(page, controls, before)
        await add.click()
        await ask(page, "Create a token", "3 files that anybody can read here now need an allowed token", controls)
        await page.get_by_role("button", name="Done").click()
        await add.click()  # the second token opens nothing and closes nothing
        await page.get_by_role("button", name="Done").click()
        remove = section.get_by_role("button", name="Remove rgw_")
        await expect(remove).to_have_count(2)
        await remove.first.click()
        await ask(page, "Remove", "1 other entry stays", controls)
        await expect(remove).to_have_count(1)
        await remove.click()
        await ask(page, "Remove", "3 public files of yours can then be read here by anybody", controls)
        await section.get_by_role("button", name="Allow an address").click()
        await page.get_by_role("textbox", name="Address").fill("203.0.113.9")
        await page.get_by_role("button", name="Allow", exact=True).click()
        await ask(page, "Allow", "3 files that anybody can read here now need", controls)
        assert (await client.post(f"{shown}/custom_domain", json={"domain": "files.example.com"})).is_success
        await visit.open("/storage/gateways")
        await section.get_by_role("button", name="Remove files.example.com").click()
        await ask(page, "Remove", "3 public files stay at", domains)
        await visit.check()


async def test_route_changes_ask_with_numbers(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    client = server.client(server.key(TENANT))
    path = f"/v0/agents/{agent['agentId']}/port-forwarding"

    async def routes() -> Any:
        return (await client.get(path)).json()["mappings"]

    mappings = [{"pathPrefix": "/a", "port": 3000, "protected": True}, {"pathPrefix": "/b", "port": 3001}]
    await client.put(path, json={"mappings": mappings})
    async with visiting(browser, server, role="editor", tenant=TENANT) as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/routes")
        rows = page.get_by_role("list", name="Routes").get_by_role("listitem")
        for row, access in ((0, "Everyone"), (1, "Everyone")):
            await rows.nth(row).get_by_role("button", name="Who gets in").click()
            await page.get_by_role("option", name=access).click()
        save = page.get_by_role("button", name="Save", exact=True)
        before = await routes()
        await save.click()
        await visit.picture("routes")
        await cancel(page, routes, before)
        await save.click()
        await ask(page, "Save", "Anybody can then reach 2 paths without a token: /a, /b", routes)
        await rows.first.get_by_role("button", name="Who gets in").click()
        await page.get_by_role("option", name="With the gateway token").click()
        await rows.last.get_by_role("button", name="Remove the route").click()
        await save.click()
        await expect(page.get_by_role("alertdialog")).to_contain_text("1 path no longer leads to a program: /b")
        await ask(page, "Save", "need the gateway token for 1 path that anybody can reach now: /a", routes)
        await rows.first.get_by_label("Port").fill("3005")  # it stays closed: nothing is asked
        await save.click()
        await expect(page.get_by_text("Not saved")).to_have_count(0)
        assert [route["port"] for route in await routes()] == [3005]
        await visit.check()


async def test_domain_changes_ask_with_numbers(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    client = server.client(server.key(TENANT))

    async def domains() -> object:
        return (await client.get(f"/v0/agents/{agent['agentId']}/domains")).json()["domains"]

    async with visiting(browser, server, role="editor", tenant=TENANT) as visit:
        page, dialog = visit.page, visit.page.get_by_role("dialog")
        await visit.open(f"/agents/{agent['agentId']}/routes")
        await page.get_by_role("button", name="Add a domain").click()
        await dialog.get_by_role("textbox", name="Name").fill("reach-ada")
        await dialog.get_by_label("Port").fill("3000")
        await dialog.get_by_role("button", name="Who gets in").click()
        await page.get_by_role("option", name="Everyone").click()
        await dialog.get_by_role("button", name="Add", exact=True).click()
        await ask(page, "Add", "Anybody can then use the program on port 3000", domains)
        await page.get_by_role("button", name="Change reach-ada").click()
        await dialog.get_by_role("button", name="Who gets in").click()
        await page.get_by_role("option", name="With the gateway token").click()
        await dialog.get_by_role("button", name="Change", exact=True).click()
        await ask(page, "Change", "Visitors then need the gateway token", domains)
        await visit.check()


async def test_group_changes_ask_with_numbers(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    client = server.client(server.key(TENANT), "localhost")
    group = (await client.post("/v3/groups/private", json={"name": "Manuals"})).json()["data"]["id"]
    for name in ("boiler", "pump"):
        await upload(client, name, "private", group_id=group)

    async def granted() -> object:
        answer = await client.get(f"/v3/vectorize/groups/{group}/agents")
        return answer.json().get("data", {}).get("agents")

    async with visiting(browser, server, role="editor", tenant=TENANT) as visit:
        page = visit.page
        await visit.open(f"/storage/vectors?group={group}")
        checkbox = page.get_by_label("Ada", exact=True)
        before = await granted()
        await checkbox.click()
        await cancel(page, granted, before)
        await expect(checkbox).not_to_be_checked()
        await checkbox.click()
        await ask(page, "Allow to search", "can then search and quote the 2 files", granted)
        await expect(checkbox).to_be_checked()
        await visit.open("/storage/groups")
        await page.get_by_role("button", name="Delete Manuals").click()
        await ask(page, "Delete", "1 agent can no longer search them", granted)


async def test_payment_changes_ask_with_numbers(browser: Browser, server: RunningServer) -> None:
    client = server.client(server.key(TENANT), "localhost")
    cids = [(await upload(client, name, "private"))["cid"] for name in ("first", "second")]
    requirement = {"network": "base", "asset": USDC, "pay_to": SELLER, "amount": "10000"}
    path = "/v3/x402/payment_instructions"
    body = {"name": "Sold", "payment_requirements": [requirement]}
    instruction = (await client.post(path, json=body)).json()["data"]["id"]

    async def sold() -> object:
        return (await client.get(f"{path}/{instruction}/cids")).json()["data"]["cids"]

    async def version() -> object:
        return (await client.get(f"{path}/{instruction}")).json()["data"]["version"]

    async with visiting(browser, server, role="editor", tenant=TENANT) as visit:
        page = visit.page
        await visit.open("/storage/payments")
        await page.get_by_role("button", name="Attach to files").click()
        await page.get_by_role("textbox", name="CIDs").fill("\n".join(cids))
        await page.get_by_role("button", name="Attach", exact=True).click()
        await cancel_inner(page)
        assert await sold() == []
        await page.get_by_role("button", name="Attach", exact=True).click()
        await ask(page, "Attach", "Anybody who pays can then read 2 private files.", sold)
        await page.get_by_role("button", name="Change Sold").click()
        await page.get_by_role("textbox", name="Amount in USDC").fill("0.5")
        await page.get_by_role("button", name="Save", exact=True).click()
        await ask(page, "Save", "Who reads the 2 files for sale", version)
        await page.get_by_role("button", name=f"Remove {cids[0]}").click()
        await ask(page, "Remove", "No one can buy this 1 file", sold)


async def cancel_inner(page: Page) -> None:
    """Answer a form's question with no; the form stays."""
    await page.get_by_role("alertdialog").get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("alertdialog")).to_have_count(0)
    await expect(page.get_by_role("dialog")).to_have_count(1)


async def test_channel_changes_ask_with_numbers(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    client = server.client(server.key(TENANT))

    async def telegram() -> object:
        found = (await client.get(f"/v0/agents/{agent['agentId']}/channels")).json()["telegram"]
        return found and {name: found[name] for name in ("enabled", "dmPolicy", "allowFrom")}

    async def choose(access: str) -> None:
        await dialog.get_by_role("button", name="Who may write").click()
        await page.get_by_role("option", name=access).click()

    async with visiting(browser, server, role="editor", tenant=TENANT) as visit:
        page, dialog = visit.page, visit.page.get_by_role("dialog")
        await visit.open(f"/agents/{agent['agentId']}/channels")
        item = page.get_by_role("list", name="Channels").get_by_role("listitem").filter(has_text="Telegram")
        await item.get_by_role("button", name="Set up").click()
        await dialog.get_by_label("Bot token").fill(TOKEN)
        await choose("Everyone")
        await dialog.get_by_role("button", name="Connect").click()
        await cancel_inner(page)
        assert await telegram() is None
        await dialog.get_by_role("button", name="Connect").click()
        await ask(page, "Connect", "Anybody who finds Telegram can then use the agent", telegram)
        await dialog.get_by_role("button", name="Done").click()
        await item.get_by_role("button", name="Change").click()
        await choose("Only people on a list")
        await dialog.get_by_role("textbox", name="People who may write").fill("4711, 815")
        await page.keyboard.press("Enter")
        await dialog.get_by_role("button", name="Change").click()
        await ask(page, "Change", "Now these may write: Everyone. Then these: 2 people on the list", telegram)
        await item.get_by_role("button", name="Change").click()
        await dialog.get_by_role("button", name="Remove 815").click()
        await dialog.get_by_role("button", name="Change").click()
        await ask(page, "Change", "1 person can then no longer write", telegram)
        await item.get_by_role("button", name="Switch off").click()
        await ask(page, "Switch off", "Now these may write: 1 person on the list", telegram)
        await item.get_by_role("button", name="Switch on").click()
        await ask(page, "Switch on", "These may write: 1 person on the list", telegram)
        await visit.check()


async def test_devices_and_secrets(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    client, path = server.client(server.key(TENANT)), f"/v0/agents/{agent['agentId']}"
    await client.post("/v0/secrets", json={"name": "SHOP_KEY", "value": "x"})
    for name in ("laptop", "phone"):
        await server.agent_client(agent).post("/devices/connect", json={"deviceId": name, "displayName": name})

    async def devices() -> object:
        return (await client.get(f"{path}/devices")).json()["paired"]

    async def secrets() -> object:
        return (await client.get(f"{path}/secrets")).json()["secrets"]

    async with visiting(browser, server, role="editor", tenant=TENANT) as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/devices")
        await page.get_by_role("button", name="Approve all").click()
        await ask(page, "Approve all", "2 devices can then control the agent", devices)
        await visit.open(f"/agents/{agent['agentId']}/secrets")
        await page.get_by_role("button", name="Attach a stored secret").click()
        await page.get_by_role("dialog").get_by_role("button", name="Attach", exact=True).click()
        await ask(page, "Attach", "can then use SHOP_KEY. 0 other agents have it", secrets)
        await visit.check()
