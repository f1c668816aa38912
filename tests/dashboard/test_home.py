"""The first visit: one agent, the stand-in as its model, a model server on this machine, and no channel."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.agents.models.servers.ollama import MODEL, Ollama, port_of
from tests.dashboard.browser import SIZES, visiting
from tests.drivers.model.local import serving
from tests.support.server import RunningServer, running

TENANT = "default"


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    async with serving(Ollama().app) as url:
        folder = tmp_path_factory.mktemp("d") / "data"
        ports = f"ollama={port_of(url)}"
        async with running(folder, ROOST_MODEL_SERVERS=ports, ROOST_EGRESS_ALLOW="127.0.0.0/8") as made:
            yield made


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> dict[str, Any]:
    made = await server.client(server.key(TENANT)).post("/v0/agents", json={"name": "First agent"})
    return made.json()["agent"]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.usefixtures("agent")
async def test_the_first_steps_are_offered_until_they_are_hidden(
    browser: Browser, server: RunningServer, size: str
) -> None:
    async with visiting(browser, server, size, role="owner", tenant=TENANT) as visit:
        page = visit.page
        await expect(page.get_by_text("Model of Ollama")).to_be_visible()
        await visit.picture("start")
        await visit.check()
        await page.get_by_label("API key").fill("sk-ant-abc")
        await expect(page.get_by_role("button", name="Anthropic")).to_be_visible()
        await page.get_by_role("button", name="Connect Telegram").click()
        await expect(page.get_by_role("link", name="BotFather")).to_be_visible()
        await visit.picture("start-telegram")
        await page.get_by_role("button", name="Close").click()
        await page.get_by_role("button", name="Skip").last.click()
        await expect(page.get_by_role("button", name="Connect Telegram")).to_have_count(0)
        await page.get_by_role("button", name="To the normal home page").click()
        await visit.open("/")
        await expect(page.get_by_role("link", name="All agents")).to_be_visible()
        await visit.picture("home")
        await page.get_by_role("button", name="Get started").click()
        await expect(page.get_by_role("button", name="Connect Telegram")).to_be_visible()
        assert visit.problems == []


@pytest.mark.usefixtures("agent")
async def test_in_german_and_the_other_theme(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server, role="owner", tenant=TENANT) as visit:
        await visit.page.evaluate("localStorage['roost.theme'] = 'dark'; localStorage['roost.language'] = 'de'")
        await visit.open("/")
        await expect(visit.page.get_by_text("Modell von Ollama")).to_be_visible()
        await visit.picture("start-dark-german")
        await visit.check()


@pytest.mark.usefixtures("agent")
async def test_a_viewer_is_offered_nothing_to_change(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server, role="viewer", tenant=TENANT) as visit:
        await expect(visit.page.get_by_role("heading", name="Talk to First agent")).to_be_visible()
        assert await visit.page.get_by_label("API key").count() == 0
        assert await visit.page.get_by_label("Message").count() == 0
        await visit.check()


async def test_the_key_of_a_provider(browser: Browser, server: RunningServer, agent: dict[str, Any]) -> None:
    client, path = server.client(server.key(TENANT)), f"/v0/agents/{agent['agentId']}/secrets"
    made = await client.post("/v0/secrets", json={"name": "OPENAI_BASE_URL", "value": "http://127.0.0.1:9/v1"})
    address = made.json()["secret"]["id"]
    await client.post(path, json={"secretIds": [address]})
    ollama = (await client.get("/v0/model-servers")).json()["servers"][0]["baseUrl"]
    async with visiting(browser, server, role="owner", tenant=TENANT) as visit:
        page = visit.page
        await page.get_by_label("API key").fill("sk-abc")
        await page.get_by_role("button", name="Connect", exact=True).click()
        await expect(page.get_by_role("alert")).to_contain_text("Nothing was changed")
        assert "503 PUT" in visit.problems.pop()
        await visit.check()
        await client.put(f"/v0/secrets/{address}", json={"value": ollama})
        await page.get_by_role("button", name="Connect", exact=True).click()
        await expect(page.get_by_text(f"The agent answers with {MODEL}")).to_be_visible()
        assert "sk-abc" not in await page.content()
        await visit.check()
    for secret in (await client.get(path)).json()["secrets"]:
        await client.delete(f"{path}/{secret['id']}")
    await client.post(f"/v0/agents/{agent['agentId']}/restart")


@pytest.mark.usefixtures("agent")
async def test_from_the_stand_in_to_a_local_model(browser: Browser, server: RunningServer) -> None:
    async with visiting(browser, server, role="owner", tenant=TENANT) as visit:
        page = visit.page
        await page.get_by_label("Message").fill("Good morning")
        await page.get_by_role("button", name="Send").click()
        await expect(page.get_by_text("scripted stand-in")).to_be_visible()
        await page.get_by_role("button", name="Use this model").click()
        await expect(page.get_by_text(f"ollama/{MODEL}").first).to_be_visible()
        await page.get_by_label("Message").fill("And now?")
        await expect(page.get_by_role("button", name="Send")).to_be_enabled()
        await page.get_by_role("button", name="Send").click()
        await expect(page.get_by_text("Ollama heard: And now?")).to_be_visible()
        await visit.picture("start-model")
        await visit.check()
