"""The page of an agent's channels: the steps of a set-up with a refused token, a list of people, and the end."""

from typing import Any

from playwright.async_api import Browser, Route, expect

from tests.dashboard.browser import visiting
from tests.support.server import RunningServer

TOKEN = "123456789:AAExampleTokenOfATelegramBot0123456"
UNWELL = "987654321:AAExampleTokenThatIsunwell0123456789"


async def test_channels_are_set_up_and_removed(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/channels")
        telegram = page.get_by_role("list", name="Channels").get_by_role("listitem").filter(has_text="Telegram")
        await expect(telegram).to_contain_text("Not set up")
        await telegram.get_by_role("button", name="Set up").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("@BotFather")
        await expect(dialog.get_by_role("button", name="Connect")).to_be_disabled()
        await dialog.get_by_label("Bot token").fill("nonsense")
        await dialog.get_by_role("button", name="Connect").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("Request")
        assert "400" in visit.problems.pop()
        await visit.check()
        await visit.picture("channels-steps")
        await dialog.get_by_label("Bot token").fill(TOKEN)
        await dialog.get_by_role("textbox", name="People who need no code").fill("4711, 815")
        await page.keyboard.press("Enter")
        await expect(dialog.get_by_role("button", name="Remove 815")).to_be_visible()
        await dialog.get_by_role("button", name="Connect").click()
        await expect(dialog.get_by_text("Connected", exact=True)).to_be_visible()
        await visit.picture("channels-connected")
        await visit.check()
        await dialog.get_by_role("button", name="Done").click()
        await expect(telegram).to_contain_text("2 people on the list")
        assert TOKEN not in await page.content()
        await telegram.get_by_role("button", name="Change").click()
        await dialog.get_by_role("button", name="Remove 815").click()
        await dialog.get_by_role("button", name="Who may write").click()
        await page.get_by_role("option", name="Only people on a list").click()
        await dialog.get_by_label("Bot token").fill(UNWELL)
        await visit.check()
        await dialog.get_by_role("button", name="Change").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Change").click()
        await expect(telegram).to_contain_text("1 person on the list")
        await expect(telegram.get_by_role("alert")).to_contain_text("[redacted]")
        await visit.picture("channels")
        await telegram.get_by_role("button", name="Switch off").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Switch off").click()
        await expect(telegram).to_contain_text("Switched off")
        await telegram.get_by_role("button", name="Remove").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Remove").click()
        await expect(telegram).to_contain_text("Not set up")
        await visit.check()


async def test_the_first_message_is_shown_as_it_comes(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    """A stranger's message makes a request, the page approves it, and the next message shows without a reload."""
    client = server.agent_client(agent)
    asked: list[str] = []

    async def write(name: str) -> None:
        message = {"channel": "telegram", "sender": "4711", "name": name}
        assert (await client.post("/channels/message", json=message)).is_success

    async with visiting(browser, server, role="editor") as visit:
        page = visit.page
        page.on("request", lambda request: asked.append(request.url.partition("/v0/")[2]))
        await visit.open(f"/agents/{agent['agentId']}/channels")
        telegram = page.get_by_role("list", name="Channels").get_by_role("listitem").filter(has_text="Telegram")
        await telegram.get_by_role("button", name="Set up").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Bot token").fill(TOKEN)
        await dialog.get_by_role("button", name="Connect").click()
        await expect(dialog.get_by_text("Waiting for the first message")).to_be_visible()
        await write("Ada <b>Lovelace</b> \N{RIGHT-TO-LEFT OVERRIDE}@ada")
        await expect(
            dialog.get_by_text("Ada <b>Lovelace</b> \N{REPLACEMENT CHARACTER}@ada has written")
        ).to_be_visible()
        await visit.picture("channels-request")
        await visit.check()
        await dialog.get_by_role("button", name="Let Ada").click()
        await page.get_by_role("alertdialog").get_by_role("button", name="Let Ada").click()
        await expect(dialog.get_by_text("Waiting for the first message")).to_be_visible()
        await write("Ada")
        await expect(dialog.get_by_text("Message received")).to_be_visible()
        await visit.picture("channels-message")
        await visit.check()
        await dialog.get_by_role("button", name="Done").click()
        await expect(telegram.get_by_text("Message received")).to_be_visible()
        assert asked.count(f"agents/{agent['agentId']}/channels/watch") == 1
        assert asked.count(f"agents/{agent['agentId']}/channels") < 8  # the events of changes ask again, no timer


async def test_a_code_is_entered_later(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    """The server's engine has no pairing codes, so the page gets a list of engines in which it has them."""
    path = f"/v0/agents/{agent['agentId']}"
    set_up = {"botToken": TOKEN, "dmPolicy": "pairing"}
    assert (await server.client(server.key()).post(f"{path}/channels/telegram", json=set_up)).status_code < 300

    async def tell_of_codes(route: Route) -> None:
        listed = await (await route.fetch()).json()
        for engine in listed["engines"]:
            engine["channels"]["telegram"]["pairingCodes"] = True
        await route.fulfill(json=listed)

    approved: list[str] = []

    async def answer(route: Route) -> None:
        approved.append(route.request.url)
        is_refused = len(approved) == 1
        body = {"error": "Pairing request not found"} if is_refused else {"success": True, "message": "Approved"}
        await route.fulfill(status=404 if is_refused else 200, json=body)

    async with visiting(browser, server, role="editor") as visit:
        page = visit.page
        await page.route("**/v0/agents/engines", tell_of_codes)
        await page.route(f"**{path}/channels/telegram/pairing/ABC123/approve", answer)
        await visit.open(f"/agents/{agent['agentId']}/channels")
        await page.get_by_role("button", name="Enter a code").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Code").fill("ABC123")
        await dialog.get_by_role("button", name="Approve").click()
        await expect(dialog.get_by_role("alert")).to_contain_text("Pairing request not found")
        assert [problem[:3] for problem in visit.problems] == ["404"]
        visit.problems.clear()
        await visit.check()
        await dialog.get_by_role("button", name="Approve").click()
        await expect(dialog.get_by_text("They may write now.")).to_be_visible()
        assert len(approved) == 2
