"""Chats with an agent at the management address: the stream, its end, its errors, and who may chat."""

import asyncio
import json
from typing import Any

import pytest

from roost.agents.chat import service
from tests.agents.lifecycle.workflows.lifecycle_env import until
from tests.support.server import RunningServer


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> dict[str, Any]:
    return (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]


def question(text: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": text}]}


def events(body: str) -> list[Any]:
    lines = [line.removeprefix("data: ") for line in body.splitlines() if line.startswith("data:")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def answer(body: str) -> str:
    chunks = [event for event in events(body) if event != "[DONE]"]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk["choices"])


async def test_the_agent_answers_as_a_stream(server: RunningServer, agent: dict[str, Any]) -> None:
    path = f"/v0/agents/{agent['agentId']}/chat"
    said = await server.client(server.key()).post(path, json=question("/say hello there"))
    assert (said.status_code, said.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    assert said.headers["cache-control"] == "no-store"
    assert answer(said.text) == "hello there"
    assert events(said.text)[-1] == "[DONE]"


async def test_the_answer_comes_while_it_is_made(server: RunningServer, agent: dict[str, Any]) -> None:
    client = server.client(server.key())
    parts = 0
    async with client.stream("POST", f"/v0/agents/{agent['agentId']}/chat", json=question("/slow 20")) as said:
        async for _ in said.aiter_bytes():
            parts += 1
    assert parts > 3


async def test_a_client_that_leaves_stops_the_answer(server: RunningServer, agent: dict[str, Any]) -> None:
    chats = server.roost.agents.workspace.chats
    client = server.client(server.key())
    async with client.stream("POST", f"/v0/agents/{agent['agentId']}/chat", json=question("/slow 2000")) as said:
        parts = said.aiter_bytes()
        await anext(parts)
        assert chats.count_answers(agent["agentId"]) == 1

    async def has_ended() -> bool:
        return chats.count_answers(agent["agentId"]) == 0

    await until(has_ended)


async def test_the_answers_of_an_agent_are_limited(
    server: RunningServer, agent: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_CHATS", 1)
    path, client = f"/v0/agents/{agent['agentId']}/chat", server.client(server.key())
    async with client.stream("POST", path, json=question("/slow 2000")) as said:
        parts = said.aiter_bytes()
        await anext(parts)
        refused = await client.post(path, json=question("x"))
    assert refused.status_code == 429
    assert refused.json() == {"error": "Too many answers of this agent are being streamed"}


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"messages": []},
        {"messages": [{"role": "system", "content": "x"}]},
        {"messages": [{"role": "user", "content": ""}]},
        {"messages": [{"role": "user", "content": ["x"]}]},
    ],
)
async def test_malformed_conversations_are_refused(server: RunningServer, agent: dict[str, Any], body: Any) -> None:
    refused = await server.client(server.key()).post(f"/v0/agents/{agent['agentId']}/chat", json=body)
    assert refused.status_code == 400
    assert refused.json()["error"]


async def test_strangers_cannot_chat(server: RunningServer, agent: dict[str, Any]) -> None:
    path = f"/v0/agents/{agent['agentId']}/chat"
    assert (await server.client().post(path, json=question("x"))).status_code == 401
    assert (await server.client(server.key("other")).post(path, json=question("x"))).status_code in {401, 403, 404}
    assert (await server.client(server.key()).post("/v0/agents/none/chat", json=question("x"))).status_code == 404


async def test_an_agent_that_does_not_run(server: RunningServer) -> None:
    client = server.client(server.key())
    failed = (await client.post("/v0/agents", json={"name": "fail-start"})).json()["agent"]
    async with asyncio.timeout(30):
        refused = await client.post(f"/v0/agents/{failed['agentId']}/chat", json=question("x"))
    assert refused.status_code == 503
    assert refused.json()["error"]
