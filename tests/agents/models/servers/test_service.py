"""Model servers on this machine, with a whole Roost and a small server that answers as Ollama does."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from roost.agents.models.servers.service import ModelServerAccess, ModelServersClosed
from tests.agents.models.servers.ollama import MODEL, Ollama, port_of
from tests.drivers.model.local import raw, serving
from tests.support.server import RunningServer, running

READ = frozenset({"org:read"})
REDIRECT = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/v1/models\r\nContent-Length: 0\r\n\r\n"


@pytest.fixture(scope="module")
async def ollama() -> AsyncIterator[tuple[Ollama, str]]:
    made = Ollama()
    async with serving(made.app) as url:
        yield made, url


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory, ollama: tuple[Ollama, str]) -> AsyncIterator[RunningServer]:
    """A server beside Ollama, a program that redirects, and one that does not answer."""
    async with raw(REDIRECT) as redirecting, raw(b"", hold=True) as silent:
        ports = f"ollama={port_of(ollama[1])},lmstudio={port_of(redirecting)},llamacpp={port_of(silent)}"
        folder = tmp_path_factory.mktemp("models") / "data"
        async with running(folder, ROOST_MODEL_SERVERS=ports) as made:
            yield made


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> dict[str, Any]:
    made = await server.client(server.key("default")).post("/v0/agents", json={"name": "Ada"})
    return made.json()["agent"]


async def test_only_servers_that_answer_are_offered_and_only_to_the_operator(
    server: RunningServer, ollama: tuple[Ollama, str]
) -> None:
    async with asyncio.timeout(10):
        found = (await server.client(server.key("default")).get("/v0/model-servers")).json()
    assert found == {
        "available": True,
        "servers": [
            {
                "provider": "ollama",
                "label": "Ollama",
                "baseUrl": f"{ollama[1]}/v1",
                "models": [MODEL, "nomic-embed-text:latest"],
            }
        ],
    }
    other = await server.client(server.key("acme")).get("/v0/model-servers")
    assert other.json() == {"available": False, "servers": []}
    limited = await server.client(server.key("default", scopes=READ)).get("/v0/model-servers")
    assert limited.json() == {"available": False, "servers": []}


async def test_an_agent_uses_a_chosen_model(
    server: RunningServer, agent: dict[str, Any], ollama: tuple[Ollama, str]
) -> None:
    client, path = server.client(server.key("default")), f"/v0/agents/{agent['agentId']}"
    assert (await client.get(f"{path}/models")).json()["models"][0]["provider"] == "scripted"
    assert ollama[0].questions == []
    for _ in range(2):  # the second time, nothing changes
        used = await client.put(f"{path}/model-server", json={"provider": "ollama", "model": MODEL})
        assert used.json() == {"success": True, "model": f"ollama/{MODEL}"}
    models = (await client.get(f"{path}/models")).json()["models"]
    assert {"id": f"ollama/{MODEL}", "provider": "ollama"} in models
    question = {"messages": [{"role": "user", "content": "Good morning"}]}
    answer = await client.post(f"{path}/chat", json=question)
    assert "morning" in answer.text
    assert "heard" in answer.text
    assert ollama[0].questions == ["Good morning"]
    attached = (await client.get(f"{path}/secrets")).json()["secrets"]
    assert [(one["name"], one["type"]) for one in attached] == [
        ("OLLAMA_API_KEY", "secret"),
        ("OLLAMA_BASE_URL", "variable"),
    ]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"provider": "ollama", "model": "gpt-9"}, 404, "Ollama does not have the model gpt-9"),
        ({"provider": "lmstudio", "model": MODEL}, 404, "LM Studio does not answer at http://127.0.0.1:"),
        ({"provider": "openai", "model": MODEL}, 404, "No model server is looked for as openai"),
        ({"provider": "ollama", "model": "a\nb"}, 400, "model"),
    ],
)
async def test_a_model_that_no_server_has(
    server: RunningServer, agent: dict[str, Any], body: dict[str, str], status: int, message: str
) -> None:
    path = f"/v0/agents/{agent['agentId']}/model-server"
    refused = await server.client(server.key("default")).put(path, json=body)
    assert refused.status_code == status, refused.text
    assert message in refused.json()["error"]


async def test_other_tenants_reach_no_server_of_this_machine(server: RunningServer, ollama: tuple[Ollama, str]) -> None:
    client = server.client(server.key("acme"))
    agent = (await client.post("/v0/agents", json={"name": "Eve"})).json()["agent"]
    path = f"/v0/agents/{agent['agentId']}"
    refused = await client.put(f"{path}/model-server", json={"provider": "ollama", "model": MODEL})
    assert (refused.status_code, refused.json()["error"]) == (
        403,
        ModelServersClosed.message,
    )
    secrets = {"OLLAMA_API_KEY": "local", "OLLAMA_BASE_URL": f"{ollama[1]}/v1"}
    made = [await client.post("/v0/secrets", json={"name": name, "value": secrets[name]}) for name in secrets]
    await client.post(f"{path}/secrets", json={"secretIds": [one.json()["secret"]["id"] for one in made]})
    found = (await client.get(f"{path}/models")).json()
    assert {one["provider"] for one in found["models"]} == {"scripted"}
    assert not found["complete"]


async def test_an_address_with_another_value_stays(server: RunningServer) -> None:
    client = server.client(server.key("default"))
    agent = (await client.post("/v0/agents", json={"name": "Bea"})).json()["agent"]
    secret = next(
        one for one in (await client.get("/v0/secrets")).json()["secrets"] if one["name"] == "OLLAMA_BASE_URL"
    )
    await client.put(f"/v0/secrets/{secret['id']}", json={"value": "https://ollama.example.com/v1"})
    path = f"/v0/agents/{agent['agentId']}/model-server"
    refused = await client.put(path, json={"provider": "ollama", "model": MODEL})
    assert refused.status_code == 409
    assert "OLLAMA_BASE_URL has another value" in refused.json()["error"]
    assert (await client.get(f"/v0/agents/{agent['agentId']}/secrets")).json() == {"secrets": []}


async def test_exactly_the_addresses_are_open_and_only_on_a_machine_of_ones_own(
    server: RunningServer, agent: dict[str, Any]
) -> None:
    ports, agent_id = {"ollama": 11434}, agent["agentId"]
    access = ModelServerAccess(server.roost.core.db, ports, is_personal=True)
    assert await access.admits_agent(agent_id, "http://127.0.0.1:11434/v1")
    for url in ("http://127.0.0.1:22/v1", "http://127.0.0.1:11434/admin", "http://localhost:11434/v1", ""):
        assert not await access.admits_agent(agent_id, url)
    assert not await access.admits_agent("no-such-agent", "http://127.0.0.1:11434/v1")
    shared = ModelServerAccess(server.roost.core.db, ports, is_personal=False)
    assert not await shared.admits_agent(agent_id, "http://127.0.0.1:11434/v1")
