"""Conversations that an agent's engine stores: history, answers that outlive their readers, stop, and who may chat."""

import asyncio
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import httpx2 as httpx
import pytest

from roost.agents.chat import conversations, live_answer, store
from roost.drivers.engine.abilities.chat import MessageRole, StoredMessage
from roost.drivers.engine.fake.abilities import FakeChat
from tests.support.server import RunningServer

Event = tuple[str, dict[str, Any]]


class ChatClient:
    """A person who opens the chat of one agent."""

    def __init__(self, server: RunningServer, agent_id: str) -> None:
        self.client = server.client(server.key())
        self.path = f"/v0/agents/{agent_id}/chat"

    async def history(self, **query: Any) -> dict[str, Any]:
        answer = await self.client.get(f"{self.path}/messages", params=query)
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def send(self, text: str, conversation_id: str | None = None) -> httpx.Response:
        return await self.client.post(f"{self.path}/messages", json={"text": text, "conversationId": conversation_id})

    async def begin(self, text: str) -> str:
        sent = await self.send(text)
        assert sent.status_code == 202, sent.text
        return sent.json()["conversationId"]

    async def follow(self, conversation_id: str | None = None) -> AsyncGenerator[Event]:
        query = {"conversationId": conversation_id} if conversation_id else {}
        async with self.client.stream("GET", f"{self.path}/answer", params=query) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            name = ""
            async for line in answer.aiter_lines():
                if line.startswith("event: "):
                    name = line.removeprefix("event: ")
                if line.startswith("data: "):
                    yield name, json.loads(line.removeprefix("data: "))

    async def ask(self, text: str) -> tuple[str, list[Event]]:
        conversation_id = await self.begin(text)
        return conversation_id, [event async for event in self.follow(conversation_id)]

    async def stop(self, conversation_id: str) -> bool:
        answer = await self.client.post(f"{self.path}/stop", json={"conversationId": conversation_id})
        return answer.json()["stopped"]


def text_of(events: list[Event]) -> str:
    return "".join(data["text"] for name, data in events if name == "text")


@pytest.fixture(scope="module")
async def agent(server: RunningServer) -> dict[str, Any]:
    return (await server.client(server.key()).post("/v0/agents", json={"name": "a"})).json()["agent"]


@pytest.fixture
def chat(server: RunningServer, agent: dict[str, Any]) -> ChatClient:
    return ChatClient(server, agent["agentId"])


async def test_a_new_agent_has_no_conversation(server: RunningServer) -> None:
    new = (await server.client(server.key()).post("/v0/agents", json={"name": "b"})).json()["agent"]
    assert await ChatClient(server, new["agentId"]).history() == {
        "conversationId": None,
        "messages": [],
        "isAnswering": False,
    }


async def test_an_answer_is_streamed_and_then_in_the_history(chat: ChatClient) -> None:
    conversation_id, events = await chat.ask("/say hello there")
    assert text_of(events) == "hello there"
    assert events[-1] == ("end", {"state": "complete", "error": None})
    history = await chat.history()
    assert history["conversationId"] == conversation_id
    assert history["isAnswering"] is False
    assert [(message["role"], message["text"]) for message in history["messages"]] == [
        ("user", "/say hello there"),
        ("assistant", "hello there"),
    ]
    assert [event async for event in chat.follow(conversation_id)][-1][0] == "end"


async def test_tools_are_told_live_and_in_the_history(chat: ChatClient) -> None:
    _, events = await chat.ask('/tool echo {"text": "a result"}')
    states = [data["state"] for name, data in events if name == "tool"]
    assert states[-1] == "done"
    (stored,) = (await chat.history())["messages"][-1]["tools"]
    assert (stored["name"], stored["state"], stored["result"]) == ("echo", "done", "a result")


async def test_conversations_are_apart_and_listed(chat: ChatClient) -> None:
    first, _ = await chat.ask("about orchids")
    second, _ = await chat.ask("about tides")
    listed = (await chat.client.get(f"{chat.path}/conversations")).json()["conversations"]
    assert [one["id"] for one in listed][:2] == [second, first]
    assert listed[1]["title"] == "about orchids"
    assert (await chat.history())["conversationId"] == second
    assert (await chat.history(conversationId=first))["messages"][0]["text"] == "about orchids"
    assert len((await chat.history(conversationId=first, limit=1))["messages"]) == 1


async def test_the_title_is_the_first_question(chat: ChatClient) -> None:
    conversation_id, _ = await chat.ask("Which\norchids " + "bloom " * 60)
    assert (await chat.send("/say something else", conversation_id)).status_code == 202
    _ = [event async for event in chat.follow(conversation_id)]
    listed = (await chat.client.get(f"{chat.path}/conversations")).json()["conversations"]
    (title,) = [one["title"] for one in listed if one["id"] == conversation_id]
    assert title.startswith("Which orchids bloom bloom")
    assert len(title) <= 200


async def test_readers_are_told_that_a_model_is_silent(chat: ChatClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_answer, "SILENCE_SECONDS", 0.05)
    conversation_id = await chat.begin("/slow 2000")
    async with aclosing(chat.follow(conversation_id)) as events:
        while (event := await anext(events))[0] != "silence":
            pass
    assert event[1] == {"seconds": 0}
    await chat.stop(conversation_id)


async def test_an_answer_goes_on_after_a_restart_of_the_server(
    server: RunningServer, chat: ChatClient, agent: dict[str, Any]
) -> None:
    """Readers get it once the engine has stored it, and never an answer before it as this one."""
    conversation_id, _ = await chat.ask("/say before")
    service, db, key = (
        server.roost.agents.workspace.conversations,
        server.roost.core.db,
        (agent["agentId"], conversation_id),
    )
    await _forget(server, *key)
    assert [event async for event in chat.follow(conversation_id)] == [("end", {"state": "complete", "error": None})]
    await db.write(lambda connection: store.begin_answer(connection, *key, ""))
    assert (await chat.history(conversationId=conversation_id))["isAnswering"]
    async with aclosing(chat.follow(conversation_id)) as events:
        following = asyncio.create_task(anext(events))
        assert not (await asyncio.wait({following}, timeout=1.5))[0], "the answer before it"
        ability, context = await service._ability(agent["agentId"])
        async for _ in ability.send(context, conversation_id, "/say goes on"):
            pass
        assert await following == ("text", {"text": "goes on", "replaces": True})
        assert await anext(events) == ("end", {"state": "complete", "error": None})
    assert not (await chat.history(conversationId=conversation_id))["isAnswering"]


async def test_an_answer_ends_if_the_agent_was_restarted(
    server: RunningServer, chat: ChatClient, agent: dict[str, Any]
) -> None:
    conversation_id, _ = await chat.ask("/say before")
    key = agent["agentId"], conversation_id
    await _forget(server, *key)
    await server.roost.core.db.write(lambda connection: store.begin_answer(connection, *key, ""))
    assert (await chat.client.post(f"/v0/agents/{agent['agentId']}/restart")).status_code == 200
    ((name, end),) = [event async for event in chat.follow(conversation_id)]
    assert (name, end["state"], "was restarted" in end["error"]) == ("end", "failed", True)
    assert not (await chat.history(conversationId=conversation_id))["isAnswering"]


async def _forget(server: RunningServer, agent_id: str, conversation_id: str) -> None:
    """Forget the answer, as a new process of the server has."""
    key = agent_id, conversation_id
    while await server.roost.core.db.read(lambda connection: store.get_answering_since(connection, *key)):
        await asyncio.sleep(0.01)
    del server.roost.agents.workspace.conversations._answers[key]


async def test_an_answer_outlives_its_reader_and_others_can_join(chat: ChatClient, server: RunningServer) -> None:
    conversation_id = await chat.begin("/slow 40")
    async with aclosing(chat.follow(conversation_id)) as events:
        await anext(events)
    history = await chat.history()
    assert (history["conversationId"], history["isAnswering"]) == (conversation_id, True)
    assert [message["text"] for message in history["messages"]] == ["/slow 40"]
    other = ChatClient(server, chat.path.split("/")[3])
    joined = [event async for event in other.follow(conversation_id)]
    assert text_of(joined).split() == [str(number) for number in range(1, 41)]
    assert text_of([event async for event in other.follow()]) == text_of(joined)
    assert (await chat.history())["messages"][-1]["text"].endswith("40")


async def test_an_answer_that_ends_while_the_history_is_read_is_in_it(
    server: RunningServer, chat: ChatClient, agent: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation_id = await chat.begin("/slow 40")
    writing = server.roost.agents.workspace.conversations._tasks[agent["agentId"], conversation_id]
    read = FakeChat.history

    async def end_meanwhile(*arguments: Any) -> Sequence[StoredMessage]:
        before = [one for one in await read(*arguments) if one.role is MessageRole.USER]
        monkeypatch.undo()
        await writing
        return before

    monkeypatch.setattr(FakeChat, "history", end_meanwhile)
    history = await chat.history(conversationId=conversation_id)
    assert ([one["role"] for one in history["messages"]], history["isAnswering"]) == (["user", "assistant"], False)


async def test_stop_ends_the_answer_in_the_engine(chat: ChatClient) -> None:
    conversation_id = await chat.begin("/slow 2000")
    async with aclosing(chat.follow(conversation_id)) as events:
        await anext(events)
        assert await chat.stop(conversation_id) is True
        rest = [event async for event in events]
    assert rest[-1] == ("end", {"state": "stopped", "error": None})
    assert await chat.stop(conversation_id) is False
    sent = await chat.send("/say next", conversation_id)
    assert sent.status_code == 202
    assert text_of([event async for event in chat.follow(conversation_id)]) == "next"


async def test_an_answer_that_is_stopped_before_it_begins(
    server: RunningServer, chat: ChatClient, agent: dict[str, Any]
) -> None:
    service, agent_id = server.roost.agents.workspace.conversations, agent["agentId"]
    conversation_id = await service.send(agent_id, None, "/say never")
    assert await service.stop(agent_id, conversation_id)  # nothing ran in between
    assert await service.stop(agent_id, conversation_id) is False
    stopped = [event async for event in chat.follow(conversation_id)]
    assert stopped == [("end", {"state": "stopped", "error": None})]
    assert (await chat.send("/say next", conversation_id)).status_code == 202


async def test_messages_and_ends_of_answers_are_events(chat: ChatClient, agent: dict[str, Any]) -> None:
    first, _ = await chat.ask("/say a secret word")
    second = await chat.begin("/slow 2000")
    async with aclosing(chat.follow(second)) as answer:
        await anext(answer)
    await chat.stop(second)
    seen = list[dict[str, Any]]()
    query = {"types": "conversation", "after": "oldest"}
    path = chat.path.replace("chat", "events")
    async with asyncio.timeout(10), chat.client.stream("GET", path, params=query) as stream:
        async for line in stream.aiter_lines():
            if line.startswith("data: "):
                seen.append(json.loads(line.removeprefix("data: ")))
            if seen and (seen[-1]["subject"]["id"], seen[-1]["data"]["state"]) == (second, "stopped"):
                break
    ours = [(one["subject"]["id"], one["data"]) for one in seen if one["subject"]["id"] in {first, second}]
    states = [(first, "answering"), (first, "complete"), (second, "answering"), (second, "stopped")]
    assert ours == [(conversation_id, {"state": state}) for conversation_id, state in states]
    assert {one["agentId"] for one in seen} == {agent["agentId"]}
    assert {one["actor"]["kind"] for one in seen} == {"key"}


async def test_one_answer_at_a_time(chat: ChatClient, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation_id = await chat.begin("/slow 2000")
    refused = await chat.send("me too", conversation_id)
    assert (refused.status_code, refused.json()["error"]) == (
        409,
        "The agent still answers the last message of this conversation",
    )
    monkeypatch.setattr(conversations, "MAX_ANSWERS", 1)
    assert (await chat.send("another")).status_code == 429
    await chat.stop(conversation_id)


async def test_a_lost_agent_fails_the_answer(server: RunningServer, chat: ChatClient, agent: dict[str, Any]) -> None:
    conversation_id = await chat.begin("/slow 2000")
    async with aclosing(chat.follow(conversation_id)) as events:
        await anext(events)
        warden = server.roost.agents.registry.runtimes.get_warden(agent["agentId"])
        await warden.stop("gateway", grace=0)
        async with asyncio.timeout(10):
            rest = [event async for event in events]
    assert rest[-1][1]["state"] == "failed"
    assert rest[-1][1]["error"]


@pytest.mark.parametrize("conversation_id", ["", "x", "../../x", "chat-1-2", "main"])
async def test_malformed_conversation_ids(chat: ChatClient, conversation_id: str) -> None:
    assert (
        await chat.client.get(f"{chat.path}/messages", params={"conversationId": conversation_id})
    ).status_code == 404
    assert (await chat.client.get(f"{chat.path}/answer", params={"conversationId": conversation_id})).status_code == 404
    stop = await chat.client.post(f"{chat.path}/stop", json={"conversationId": conversation_id})
    assert stop.status_code == 404


@pytest.mark.parametrize("body", [{}, {"text": ""}, {"text": 1}, {"text": "x", "conversationId": 1}])
async def test_malformed_messages_are_refused(chat: ChatClient, body: Any) -> None:
    refused = await chat.client.post(f"{chat.path}/messages", json=body)
    assert refused.status_code == 400
    assert refused.json()["error"]


@pytest.mark.parametrize("path", ["messages", "conversations", "answer?conversationId=chat-00000000000000000-000000"])
async def test_strangers_read_nothing(server: RunningServer, chat: ChatClient, path: str) -> None:
    assert (await server.client().get(f"{chat.path}/{path}")).status_code == 401
    assert (await server.client(server.key("other")).get(f"{chat.path}/{path}")).status_code in {401, 403, 404}


async def test_an_agent_that_does_not_run(server: RunningServer) -> None:
    client = server.client(server.key())
    failed = (await client.post("/v0/agents", json={"name": "fail-start"})).json()["agent"]
    chat = ChatClient(server, failed["agentId"])
    async with asyncio.timeout(30):
        assert (await chat.send("hello")).status_code == 503
        assert (await chat.client.get(f"{chat.path}/messages")).status_code == 503
