"""What people do: sign in, make an agent, talk to it, find it, delete it; and what hostile texts must not do."""

import json
import re
from typing import Any

from playwright.async_api import Browser, Route, expect

from tests.dashboard.browser import visiting
from tests.support.server import RunningServer

HOSTILE = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>'


async def test_signing_in_by_key(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server) as visit:
        page = visit.page
        await visit.open("/agents/new")
        await page.get_by_label("API key").fill("nonsense")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_contain_text("Request")
        await page.get_by_label("API key").fill(server.key())
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("heading", name="New agent")).to_be_visible()
        assert server.key() not in json.dumps(await page.evaluate("[{...localStorage}, {...sessionStorage}]"))
        await page.get_by_role("button", name="Account and settings").click()
        async with page.expect_navigation():
            await page.get_by_role("menuitem", name="Sign out", exact=True).click()
        await expect(page.get_by_role("heading", name="Sign in to Roost")).to_be_visible()
        await visit.open("/agents")
        assert "/login" in page.url


async def test_a_link_works_once(browser: Browser, server: RunningServer) -> None:
    made = (await server.client(server.key()).post("/v0/session/links", json={"role": "owner"})).json()["url"]
    async with visiting(browser, server) as first, visiting(browser, server) as second:
        await first.page.goto(made)
        await expect(first.page.get_by_role("heading", name="Home")).to_be_visible()
        assert "code" not in first.page.url
        await second.page.goto(made)
        await expect(second.page.get_by_role("alert")).to_be_visible()
        await expect(second.page.get_by_text("A sign-in link works once")).to_be_visible()


async def test_from_the_first_visit_to_an_answer_and_back(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await page.get_by_role("link", name="Create an agent").click()
        await page.get_by_role("button", name="Create agent").click()
        await expect(page.get_by_text("Enter a name.")).to_be_visible()
        await page.get_by_label("Name").fill("Bea & Co")
        await page.get_by_role("button", name="Create agent").click()
        await expect(page.get_by_role("heading", name="Bea & Co")).to_be_visible()
        await expect(page.get_by_text("Running", exact=True)).to_be_visible()
        await page.get_by_role("link", name="Home").first.click()
        await page.get_by_label("Message").fill("/say **strong** words")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("article strong", has_text="strong")).to_be_visible()
        await page.get_by_role("link", name="Continue in the chat").click()
        await page.get_by_role("link", name="Overview").first.click()
        await page.get_by_role("button", name="More actions").click()
        await page.get_by_role("menuitem", name="Delete agent").click()
        delete = page.get_by_role("alertdialog").get_by_role("button", name="Delete agent")
        await expect(delete).to_be_disabled()
        await page.get_by_label("Type").fill("Bea & Co")
        await visit.check()
        await delete.click()
        await expect(page.get_by_role("heading", name="No agents yet")).to_be_visible()
        assert visit.problems == []


async def test_hostile_texts_stay_texts(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/chat")
        for text in (HOSTILE, "![beacon](http://127.0.0.1:9/x.png) [link](javascript:window.hacked=1)"):
            await page.get_by_label("Message").fill(f"/say {text}")
            await page.keyboard.press("Enter")
            await expect(page.get_by_role("button", name="Send")).to_be_visible()
        await expect(page.get_by_text("Image: beacon").last).to_be_visible()
        assert await page.locator("article img, article script").count() == 0
        assert await page.locator('article a[href^="javascript"]').count() == 0
        assert await page.evaluate("window.hacked") is None
        await visit.check()


async def test_stopping_an_answer(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, "phone", role="owner") as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/chat")
        await page.get_by_label("Message").fill("/slow 2000")
        await page.get_by_role("button", name="Send").click()
        await page.get_by_role("link", name="Overview").first.click()  # it continues meanwhile
        await page.get_by_role("link", name="Chat").first.click()
        await page.get_by_role("button", name="Stop").click()
        await expect(page.get_by_text("Stopped.")).to_be_visible()
        await visit.check()


async def test_tools_of_an_answer_and_another_try(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    order = f"/tool echo {json.dumps({'text': HOSTILE})}"
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/chat")
        await page.get_by_label("Message").fill(order)
        await page.get_by_role("button", name="Send").click()
        last = page.locator("article").last
        await last.get_by_text("echo", exact=True).click()
        await expect(last.get_by_label("Result")).to_have_text(HOSTILE)
        await expect(last.get_by_text("done", exact=True)).to_be_visible()
        await visit.picture("chat-tools")
        await visit.check()
        await page.get_by_role("button", name="Ask again").click()
        await expect(page.get_by_text("echo", exact=True)).to_have_count(2)
        await expect(page.get_by_role("button", name="Send")).to_be_visible()  # what is typed waits for the answer
        failing = json.dumps({"text": "no luck", "fail": True})
        await page.get_by_label("Message").fill(f"/tool echo {failing}")
        await page.keyboard.press("Enter")
        await expect(page.get_by_text("failed", exact=True)).to_be_visible()
        assert await page.evaluate("window.hacked") is None


async def test_the_agent_keeps_the_conversation(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    path = f"/agents/{agent['agentId']}/chat"
    async with visiting(browser, server, role="owner") as visit, visiting(browser, server, role="viewer") as other:
        await visit.open(path)
        button = visit.page.get_by_role("button", name="New conversation")
        await visit.page.get_by_label("Message").fill("/say an owl")
        await visit.page.get_by_role("button", name="Send").click()
        await button.click()
        await expect(visit.page.get_by_text("Nothing has been said yet.")).to_be_visible()
        await visit.page.get_by_label("Message").fill('/tool echo {"text": "a heron"}')
        await visit.page.get_by_role("button", name="Send").click()
        await expect(visit.page.get_by_text("The tool answered: a heron")).to_be_visible()

        await visit.page.reload()
        await expect(visit.page.get_by_text("The tool answered: a heron")).to_be_visible()
        await expect(visit.page.get_by_text("done", exact=True)).to_be_visible()
        await expect(visit.page.locator("article")).to_have_count(2)
        await visit.page.get_by_role("button", name="Conversations").click()
        await visit.page.get_by_role("menuitem").last.click()
        await expect(visit.page.get_by_text("an owl", exact=True)).to_be_visible()
        await expect(visit.page.get_by_text("The tool answered: a heron")).to_have_count(0)
        await visit.page.get_by_role("button", name="Conversations").click()
        await visit.picture("chat-conversations")
        await visit.page.get_by_role("menuitem").first.click()
        await expect(visit.page.get_by_text("The tool answered: a heron")).to_be_visible()

        await visit.page.get_by_label("Message").fill("/slow 200")
        await visit.page.get_by_role("button", name="Send").click()
        await expect(visit.page.locator("article").last).to_contain_text("5")
        await other.open(path)
        await expect(other.page.locator("article").last).to_contain_text("10")
        await visit.page.get_by_role("button", name="Stop").click()
        await expect(visit.page.get_by_text("Stopped.")).to_be_visible()
        await expect(other.page.get_by_text("Stopped.")).to_be_visible()


async def test_message_of_another_person_appears(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    path = f"/agents/{agent['agentId']}/chat"
    async with visiting(browser, server, role="owner") as visit, visiting(browser, server, role="editor") as other:
        for one in (visit, other):
            await one.open(path)
            await expect(one.page.get_by_label("Message")).to_be_enabled()
        for number, (writer, reader) in enumerate([(visit, other), (other, visit)]):
            await writer.page.get_by_label("Message").fill(f"/say word {number}")
            await writer.page.get_by_role("button", name="Send").click()
            articles = reader.page.get_by_role("article")
            await expect(articles.filter(has_text=f"word {number}")).to_have_count(2)
        await visit.check()
        await other.check()


async def test_a_lost_connection_keeps_the_answer(
    browser: Browser, server: RunningServer, agent: dict[str, Any]
) -> None:
    async with visiting(browser, server, role="owner") as visit:
        page = visit.page
        await visit.open(f"/agents/{agent['agentId']}/chat")
        await page.get_by_label("Message").fill("/slow 60")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("article").last).to_contain_text("3")
        await page.context.set_offline(True)
        await expect(page.locator("article").last).to_contain_text("3")
        await page.context.set_offline(False)
        await expect(page.locator("article").last).to_contain_text("58 59 60", timeout=30_000)
        await expect(page.get_by_role("button", name="Send")).to_be_visible()


async def test_a_viewer_sees_no_actions(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, role="viewer") as visit:
        await visit.open(f"/agents/{agent['agentId']}/overview")
        await expect(visit.page.get_by_text("Running", exact=True)).to_be_visible()
        assert await visit.page.get_by_role("button", name="Restart").count() == 0
        assert await visit.page.get_by_role("button", name="More actions").count() == 0
        assert visit.problems == []


async def test_the_last_use_of_an_agent(browser: Browser, server: RunningServer) -> None:
    client = server.client(server.key("uses"))
    (ada, _) = [(await client.post("/v0/agents", json={"name": name})).json()["agent"] for name in ("Ada", "Bob")]
    async with visiting(browser, server, tenant="uses", role="viewer") as visit:
        await visit.open("/agents")
        rows = visit.page.get_by_role("table", name="Agents").get_by_role("row")
        await expect(rows.filter(has_text="Ada").get_by_role("cell").last).to_have_text("Never")
        await server.agent_client(ada).get("/")
        await visit.open("/agents")
        used = rows.filter(has_text="Ada").get_by_role("cell").last
        await expect(used).to_have_text(re.compile("^(now|[0-9]+ seconds? ago)$"))
        await expect(rows.filter(has_text="Bob").get_by_role("cell").last).to_have_text("Never")
        await visit.check()
        await visit.picture("agents-last-used")


async def test_a_thousand_agents(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async def answer(route: Route) -> None:
        many = [{**agent, "agentId": f"{number:016}", "name": f"Agent {number} {HOSTILE}"} for number in range(1000)]
        await route.fulfill(json={"agents": many, "agentLimit": 1000})

    async with visiting(browser, server, role="owner") as visit:
        await visit.page.route("**/v0/agents", answer)
        await visit.open("/agents")
        await expect(visit.page.get_by_text("1000 of at most 1000")).to_be_visible()
        assert await visit.page.get_by_role("row").count() < 60
        await visit.page.get_by_label("Filter by name").fill("agent 999")
        await expect(visit.page.get_by_role("link", name="Agent 999")).to_be_visible()
        assert await visit.page.evaluate("window.hacked") is None
        await visit.check()


async def test_the_command_palette(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    async with visiting(browser, server, role="owner") as visit:
        await visit.page.keyboard.press("Control+k")
        await visit.page.get_by_role("searchbox").fill(agent["name"].lower())
        await expect(visit.page.get_by_role("menuitem", name=agent["name"])).to_be_visible()
        await visit.check()
        await visit.page.keyboard.press("ArrowDown")
        await visit.page.keyboard.press("Enter")
        await expect(visit.page.get_by_role("heading", name=agent["name"])).to_be_visible()


async def test_a_server_that_is_gone(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server, role="owner") as visit:
        await visit.page.route("**/v0/agents", lambda route: route.fulfill(status=503, json={"error": "Out of order"}))
        await visit.page.goto(f"{visit.origin}/agents")
        await expect(visit.page.get_by_role("alert")).to_contain_text("Out of order")
        await visit.page.unroute("**/v0/agents")
        await visit.page.get_by_role("button", name="Try again").click()
        await expect(visit.page.get_by_role("alert")).to_have_count(0)
