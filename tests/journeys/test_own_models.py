"""Real engines use the owner's model key, which never enters their containers."""

import asyncio
from collections.abc import AsyncIterator

import httpx2 as httpx
import pytest

from roost import app, config
from tests.drivers.model.local import KEY, MODEL, AnthropicProvider, OpenAIProvider, serving
from tests.support.server import RunningServer, running

pytestmark = [pytest.mark.engine, pytest.mark.timeout(300)]

TRACE = KEY.reveal()[:-1] + "[" + KEY.reveal()[-1] + "]"
"""A pattern that finds the key and not itself."""


@pytest.fixture(scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RunningServer]:
    folder = tmp_path_factory.mktemp("own") / "data"
    engines = app.create_engines(config.load_settings({"ROOST_DATA": str(folder)}))
    if len([engine for engine in engines if engine.installed()]) < len(engines):
        pytest.skip("the engines are not installed")
    async with running(folder, engines=engines, ROOST_EGRESS_ALLOW="127.0.0.0/8") as made:
        yield made


async def secret(owner: httpx.AsyncClient, name: str, value: str) -> str:
    answer = await owner.post("/v0/secrets", json={"name": name, "value": value})
    assert answer.is_success, answer.text
    return answer.json()["secret"]["id"]


async def ask_agent(agent: httpx.AsyncClient, text: str) -> str:
    body = {"model": "openclaw", "messages": [{"role": "user", "content": text}]}  # Hermes takes any name
    answer = await agent.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"][0]["message"]["content"]


async def found_in(agent: httpx.AsyncClient) -> str:
    """Search the key in the container: files, environment and arguments of its programs."""
    command = f"grep -rlsE '{TRACE}' /home/agent /workspace /tmp /run /proc/[0-9]*/environ /proc/[0-9]*/cmdline; true"
    answer = await agent.post("/v0/console/exec", json={"command": command})
    assert answer.json()["exitCode"] == 0, answer.text
    return answer.json()["stdout"]


async def test_both_engines_answer_by_their_owners_keys_and_never_have_them(server: RunningServer) -> None:
    owner = server.client(server.key())
    claude, gpt = AnthropicProvider(), OpenAIProvider()
    async with serving(claude) as near, serving(gpt) as far:
        anthropic = [
            await secret(owner, "ANTHROPIC_API_KEY", KEY.reveal()),
            await secret(owner, "ANTHROPIC_BASE_URL", near),
        ]
        openai = [
            await secret(owner, "OPENAI_API_KEY", KEY.reveal()),
            await secret(owner, "OPENAI_BASE_URL", f"{far}/v1"),
        ]
        made = await asyncio.gather(
            owner.post("/v0/agents", json={"name": "a", "engine": "hermes", "secretIds": anthropic}),
            owner.post("/v0/agents", json={"name": "b", "engine": "openclaw", "secretIds": openai}),
        )
        agents = [server.agent_client(answer.json()["agent"]) for answer in made]
        for agent, provider in zip(agents, (claude, gpt), strict=True):
            assert "parrot says" in await ask_agent(agent, "Do you know the grebe?")
            assert "the grebe" in str(provider.bodies[-1]["messages"])
            assert provider.bodies[-1]["model"] == MODEL
            assert KEY.reveal() in str(provider.headers)
            assert await found_in(agent) == ""
