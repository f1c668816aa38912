"""The contract of conversations, over every engine, each in a container with a running gateway."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest

from roost.core.problem import Problem
from roost.core.sensitive import Sensitive
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.chat import (
    MAX_DETAIL,
    AnswerEvent,
    AnswerText,
    ChatAbility,
    MessageRole,
    StoredMessage,
    ToolState,
    ToolUse,
    create_conversation_id,
)
from roost.drivers.engine.contract import EngineFailed
from tests.conformance.engines import CASES, TOKEN, EngineEnv, open_engine_env
from tests.conformance.model_server import ANSWER, BROKEN
from tests.conformance.test_tasks import until

TOOLS = {
    # a tool of the engine: its name, arguments with a success and their result, arguments with a failure and its result
    "fake": ("echo", '{"text": "a result"}', "a result", '{"text": "no luck", "fail": true}', "no luck"),
    "hermes": (
        "terminal",
        '{"command": "echo a result"}',
        "a result",
        """{"command": "sh -c 'echo no luck; exit 3'"}""",  # the end of its own shell can be told as 0
        "no luck",
    ),
    "openclaw": ("exec", '{"command": "echo a result"}', "a result", '{"command": "echo no luck; exit 3"}', "no luck"),
}


class ChatEnv:
    """The ability with a running agent, and one new conversation."""

    def __init__(self, env: EngineEnv) -> None:
        assert env.engine.chat is not None
        self.chat: ChatAbility = env.engine.chat
        self.env = env
        self.agent = AgentContext(env.warden, TOKEN, env.engine.default_version)
        self.conversation = create_conversation_id()

    async def say(self, text: str) -> Sequence[AnswerEvent]:
        async with asyncio.timeout(90):
            return [event async for event in self.chat.send(self.agent, self.conversation, text)]

    async def history(self, limit: int = 100) -> Sequence[StoredMessage]:
        return await self.chat.history(self.agent, self.conversation, limit)

    async def tool(self, succeeds: bool) -> tuple[Sequence[ToolUse], StoredMessage, str, str]:
        """Let the agent use its tool; return the events, the stored answer, and the expected name and result."""
        name, good, result, bad, failure = TOOLS[self.env.engine.id]
        events = await self.say(f"run /tool {name} {good if succeeds else bad}")
        answer = (await self.history())[-1]
        return [one for one in events if isinstance(one, ToolUse)], answer, name, result if succeeds else failure


def written(events: Sequence[AnswerEvent]) -> str:
    """Return the text of an answer as a reader sees it in the end."""
    text = ""
    for event in events:
        if isinstance(event, AnswerText):
            text = event.text if event.replaces else text + event.text
    return text.strip()


@pytest.fixture(scope="module", params=CASES)
async def engine_env(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[EngineEnv]:
    """One gateway for all tests, because a start takes seconds."""
    async with open_engine_env(request.param, tmp_path_factory.mktemp("data")) as env:
        await env.start()
        yield env


@pytest.fixture
def chat_env(engine_env: EngineEnv) -> ChatEnv:
    return ChatEnv(engine_env)


async def test_an_unknown_conversation_is_empty(chat_env: ChatEnv) -> None:
    assert list(await chat_env.history()) == []


async def test_messages_and_answers_are_stored(chat_env: ChatEnv) -> None:
    assert written(await chat_env.say("the first owl")) == ANSWER
    assert written(await chat_env.say("say: /say **two** words")) == "**two** words"
    roles = [(message.role, message.text) for message in await chat_env.history()]
    assert roles == [
        (MessageRole.USER, "the first owl"),
        (MessageRole.ASSISTANT, ANSWER),
        (MessageRole.USER, "say: /say **two** words"),
        (MessageRole.ASSISTANT, "**two** words"),
    ]
    times = [message.sent_at for message in await chat_env.history()]
    assert None not in times
    assert times == sorted(times, key=str)
    assert len({message.id for message in await chat_env.history()}) == 4
    assert [message.text for message in await chat_env.history(limit=1)] == ["**two** words"]


async def test_the_agent_remembers_its_conversation_and_no_other(chat_env: ChatEnv) -> None:
    await chat_env.say("the password is heron")
    chat_env.env.models.chats.clear()
    await chat_env.say("and now?")
    assert "heron" in str(chat_env.env.models.chats[-1]["messages"])
    other = ChatEnv(chat_env.env)
    await other.say("who knows it?")
    assert "heron" not in str(chat_env.env.models.chats[-1]["messages"])


async def test_a_reader_sees_the_stored_answer_after_its_model_was_cut_off(chat_env: ChatEnv) -> None:
    """OpenClaw begins the answer again, Hermes lets the model continue it, and the fake fails."""
    if expected := {"openclaw": ANSWER, "hermes": BROKEN + ANSWER}.get(chat_env.env.engine.id):
        assert written(await chat_env.say("say /cut it")) == expected
    else:
        with pytest.raises(EngineFailed, match="cut off"):
            await chat_env.say("say /cut it")
    stored = [(message.role, message.text, message.is_stopped) for message in await chat_env.history()]
    assert stored == [
        (MessageRole.USER, "say /cut it", False),
        (MessageRole.ASSISTANT, expected or BROKEN, expected is None),
    ]


async def test_a_question_in_the_form_of_an_engines_own_note_is_stored(chat_env: ChatEnv) -> None:
    questions = ["[System: The previous response was cut off", "[System: Your previous response]"]
    for question in questions:
        await chat_env.say(question)
    assert [message.text for message in await chat_env.history()][::2] == questions


async def test_conversations_are_listed_newest_first(chat_env: ChatEnv) -> None:
    other = ChatEnv(chat_env.env)
    await chat_env.say("about orchids")
    await other.say("about tides")
    listed = await chat_env.chat.conversations(chat_env.agent)
    newest = sorted([chat_env.conversation, other.conversation], reverse=True)  # ids of one millisecond have any order
    assert [conversation.id for conversation in listed][:2] == newest
    (tides,) = [conversation for conversation in listed if conversation.id == other.conversation]
    assert {"tides", ANSWER} & {*(tides.title or tides.preview).split()}
    assert tides.updated_at is not None


@pytest.mark.parametrize("succeeds", [True, False])
async def test_tools_are_told_while_they_run_and_stored_with_their_results(chat_env: ChatEnv, succeeds: bool) -> None:
    uses, answer, name, result = await chat_env.tool(succeeds)
    assert [use.name for use in uses] == [name, name]
    assert (uses[0].state, uses[0].id) == (ToolState.RUNNING, uses[1].id)
    assert uses[1].state is not ToolState.RUNNING
    assert result in uses[0].arguments
    assert result in answer.text
    (stored,) = answer.tools
    assert (stored.id, stored.name) == (uses[0].id, name)
    assert stored.state is (ToolState.DONE if succeeds else ToolState.FAILED)
    assert result in stored.result
    assert result in stored.arguments


async def test_long_arguments_are_shortened(chat_env: ChatEnv) -> None:
    name, good, *_ = TOOLS[chat_env.env.engine.id]
    await chat_env.say(f"run /tool {name} " + good.replace("a result", "x" * 3 * MAX_DETAIL))
    (stored,) = (await chat_env.history())[-1].tools
    assert max(len(stored.arguments), len(stored.result)) <= MAX_DETAIL + 4


async def test_closing_the_stream_stops_the_answer(chat_env: ChatEnv) -> None:
    events = chat_env.chat.send(chat_env.agent, chat_env.conversation, "count /slow 2000")
    text = ""
    async with asyncio.timeout(60):
        while "3" not in text:
            event = await anext(events)
            text += event.text if isinstance(event, AnswerText) else ""
    await events.aclose()

    async def is_stored() -> bool:
        history = await chat_env.history()
        return len(history) == 2 and history[1].text.startswith("1 2 3")

    await until(is_stored)
    assert written(await chat_env.say("still there?")) == ANSWER  # the engine is free again
    stored = (await chat_env.history())[1].text
    assert len(stored) < 5000, "the answer went on"


async def test_another_token_is_refused(chat_env: ChatEnv) -> None:
    stranger = replace(chat_env.agent, token=Sensitive("rst_gw_" + "f" * 32))
    with pytest.raises(EngineFailed):
        await chat_env.chat.history(stranger, chat_env.conversation, 10)
    with pytest.raises(EngineFailed):
        await anext(chat_env.chat.send(stranger, chat_env.conversation, "hello"))


async def test_a_gateway_that_ends_fails_the_answer(chat_env: ChatEnv) -> None:
    """Runs last, because it stops the gateway."""
    events = chat_env.chat.send(chat_env.agent, chat_env.conversation, "count /slow 2000")
    await anext(events)
    await chat_env.env.warden.stop("gateway")
    with pytest.raises(Problem):
        written([event async for event in events])
    with pytest.raises(Problem):
        await chat_env.history()
