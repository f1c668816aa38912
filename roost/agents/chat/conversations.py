"""Conversations with agents, which their engines store. The server keeps only the answers that are being written.

An answer belongs to the server, not to a client: all who open the conversation follow it, and a lost connection does
not end it. At most one answer of a conversation is written at a time. Decision 0041 says why.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime

from roost.agents.chat import store
from roost.agents.chat.errors import (
    AgentUnreachable,
    ConversationBusy,
    ConversationNotFound,
    ConversationsUnsupported,
    TooManyChats,
)
from roost.agents.chat.live_answer import AnswerEnd, AnswerPart, AnswerState, LiveAnswer
from roost.agents.registry.agent_runtimes import GATEWAY_PROCESS, AgentRuntimes
from roost.core import clock, log
from roost.core.db import Database, DataChange, write_change
from roost.core.log import redact_credentials
from roost.core.periodic import Backoff
from roost.core.problem import Problem, ServiceUnavailable
from roost.core.sanitize import sanitize_line
from roost.drivers.engine.abilities.agent_context import AgentContext
from roost.drivers.engine.abilities.chat import (
    AnswerText,
    ChatAbility,
    MessageRole,
    StoredConversation,
    StoredMessage,
    ToolState,
    create_conversation_id,
    is_conversation_id,
)

_log = log.get_logger("chat")
MAX_ANSWERS = 16
"""Maximum number of answers that one agent writes at once."""
_MAX_ENDED = 256
_SILENCE_SECONDS = 600.0
_ERROR_CHARACTERS = 1000
_TITLE_CHARACTERS = 200
_CUT_OFF = "The answer was cut off: the server or the agent was restarted while the agent answered"


@dataclass(frozen=True)
class Conversation:
    """A conversation with its latest messages; without the answer that is being written."""

    conversation_id: str | None
    messages: Sequence[StoredMessage]
    is_answering: bool


class ConversationService:
    def __init__(self, db: Database, runtimes: AgentRuntimes) -> None:
        self._db = db
        self._runtimes = runtimes
        self._answers: dict[tuple[str, str], LiveAnswer] = {}
        self._tasks: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def list(self, agent_id: str) -> Sequence[StoredConversation]:
        """List conversations, newest first. Raises AgentNotFound, AgentOnOtherHost, EngineFailed."""
        chat, context = await self._ability(agent_id)
        questions = await self._db.read(lambda connection: store.list_questions(connection, agent_id))
        stored = [
            replace(one, title=one.title or questions.get(one.id) or one.preview)
            for one in await chat.conversations(context)
        ]
        begun = [
            StoredConversation(conversation_id, _shorten_question(self._answers[agent, conversation_id].question))
            for agent, conversation_id in self._tasks
            if agent == agent_id and all(one.id != conversation_id for one in stored)
        ]
        return sorted([*begun, *stored], key=lambda conversation: conversation.id, reverse=True)

    async def get(self, agent_id: str, conversation_id: str | None, limit: int) -> Conversation:
        """Return a conversation, by default the newest one. Raises ConversationNotFound and the errors of `list`."""
        if conversation_id is None:
            newest = next(iter(await self.list(agent_id)), None)
            if newest is None:
                return Conversation(None, [], is_answering=False)
            conversation_id = newest.id
        _check_id(conversation_id)
        chat, context = await self._ability(agent_id)
        key = agent_id, conversation_id
        answer = self._answers.get(key) if key in self._tasks else None
        messages = await chat.history(context, conversation_id, limit)
        if answer is None:
            since = await self._answering_since(agent_id, conversation_id)
            return Conversation(conversation_id, messages, since is not None and not _is_answered(messages, since))
        if answer.end is not None:  # it ended while the history was read, which can lack it
            messages = await chat.history(context, conversation_id, limit)
            return Conversation(conversation_id, messages, is_answering=False)
        before = [one for one in messages if one.sent_at is None or one.sent_at < answer.started_at]
        question = StoredMessage("question", MessageRole.USER, answer.question, sent_at=answer.started_at)
        return Conversation(conversation_id, [*before, question], is_answering=True)

    async def send(self, agent_id: str, conversation_id: str | None, text: str) -> str:
        """Send a message, by default into a new conversation; return the conversation's id. Its answer is then written.

        Raises ConversationNotFound, ConversationBusy, TooManyChats, ContainerNotRunning and the errors of `list`.
        """
        is_first = not conversation_id
        conversation_id = _check_id(conversation_id) if conversation_id else create_conversation_id()
        chat, context = await self._ability(agent_id)
        _, writer = await self._runtimes.dial(agent_id)  # a problem now is better than one in the stream
        writer.close()
        key = agent_id, conversation_id
        if key in self._tasks:
            raise ConversationBusy
        if sum(agent == agent_id for agent, _ in self._tasks) >= MAX_ANSWERS:
            raise TooManyChats(retry_after=10)
        self._forget_ended()
        self._answers.pop(key, None)
        answer = self._answers[key] = LiveAnswer(text)
        self._tasks[key] = asyncio.create_task(self._write(key, chat, context, answer, is_first=is_first))
        return conversation_id

    async def stop(self, agent_id: str, conversation_id: str) -> bool:
        """Stop the answer of a conversation in the engine; return whether one was being written."""
        key = agent_id, _check_id(conversation_id)
        task = self._tasks.get(key)
        if task is None:
            return False
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        if self._tasks.get(key) is task:  # cancelled before its first step, so nothing of `_write` has run
            self._answers[key].finish(stopped=True)
            del self._tasks[key]
        return True

    @asynccontextmanager
    async def follow(
        self, agent_id: str, conversation_id: str | None
    ) -> AsyncGenerator[AsyncGenerator[AnswerPart, None], None]:
        """Yield the latest answer of a conversation, by default of the agent, as a stream.

        One that ended long ago is only in the history; one that began before a restart of the server comes when the
        engine has stored it. Raises ConversationNotFound.
        """
        if conversation_id is None:
            answer = next((one for key, one in reversed(self._answers.items()) if key[0] == agent_id), None)
        else:
            answer = self._answers.get((agent_id, _check_id(conversation_id)))
        if answer is not None:
            parts = answer.follow()
        elif conversation_id and (since := await self._answering_since(agent_id, conversation_id)):
            parts = self._resume(agent_id, conversation_id, since)
        else:
            parts = _no_answer()
        async with aclosing(parts) as events:
            yield events

    async def _answering_since(self, agent_id: str, conversation_id: str) -> datetime | None:
        return await self._db.read(lambda connection: store.get_answering_since(connection, agent_id, conversation_id))

    async def _resume(self, agent_id: str, conversation_id: str, since: datetime) -> AsyncGenerator[AnswerPart, None]:
        """Yield an answer that the engine goes on writing after a restart of the server, once it is stored."""
        end = AnswerEnd(AnswerState.FAILED, _CUT_OFF)
        deadline, backoff = clock.monotonic_seconds() + _SILENCE_SECONDS, Backoff(0.5, 5.0)
        chat, context = await self._ability(agent_id)
        while clock.monotonic_seconds() < deadline:
            with suppress(Problem):  # the gateway may be starting
                messages = await chat.history(context, conversation_id, 1)
                if _is_answered(messages, since):
                    for use in messages[-1].tools:
                        yield use
                    yield AnswerText(messages[-1].text, replaces=True)
                    end = AnswerEnd(AnswerState.COMPLETE)
                    break
                gateway = (await context.warden.processes()).get(GATEWAY_PROCESS)
                if gateway is None or gateway.started_at > since:
                    break
            await backoff.pause()
        await self._db.write(lambda connection: store.end_answer(connection, agent_id, conversation_id))
        yield end

    async def _ability(self, agent_id: str) -> tuple[ChatAbility, AgentContext]:
        engine, context = await self._runtimes.get_context(agent_id)
        if engine.chat is None:
            raise ConversationsUnsupported
        return engine.chat, context

    async def _write(
        self, key: tuple[str, str], chat: ChatAbility, context: AgentContext, answer: LiveAnswer, *, is_first: bool
    ) -> None:
        question = _shorten_question(answer.question) if is_first else ""
        try:
            await self._record_change(key, "answering")
            await self._db.write(lambda connection: store.begin_answer(connection, *key, question))
            async with aclosing(chat.send(context, key[1], answer.question)) as events:
                while (event := await asyncio.wait_for(anext(events, None), _SILENCE_SECONDS)) is not None:
                    answer.add(event)
            answer.finish()
        except TimeoutError:
            answer.finish(AgentUnreachable.message)
        except Problem as problem:
            answer.finish(redact_credentials(sanitize_line(problem.message[:_ERROR_CHARACTERS])))
            _log.warning("answer.failed", agent_id=key[0], error=problem.message)
        finally:
            end = answer.finish(stopped=True)  # unless it has ended, it was cancelled
            del self._tasks[key]
            await self._record_change(key, end.state.value)
            with suppress(ServiceUnavailable):  # then its end is not known after a restart, which is said
                await self._db.write(lambda connection: store.end_answer(connection, *key))

    async def _record_change(self, key: tuple[str, str], state: str) -> None:
        agent_id, conversation_id = key
        change = DataChange("conversation", "changed", conversation_id, agent_id=agent_id, data={"state": state})
        await write_change(self._db, change)

    def _forget_ended(self) -> None:
        """Forget the oldest answers that have ended; they are in the engines' histories."""
        ended = [key for key in self._answers if key not in self._tasks]
        for key in ended[: max(0, len(ended) - _MAX_ENDED)]:
            del self._answers[key]


async def _no_answer() -> AsyncGenerator[AnswerPart, None]:
    yield AnswerEnd(AnswerState.COMPLETE)


def _is_answered(messages: Sequence[StoredMessage], since: datetime) -> bool:
    """Return whether the last message is an answer from after a time."""
    last = messages[-1] if messages else None
    if last is None or last.role is not MessageRole.ASSISTANT:
        return False
    is_at_work = any(use.state is ToolState.RUNNING for use in last.tools)
    return not is_at_work and last.sent_at is not None and last.sent_at > since


def _shorten_question(text: str) -> str:
    """Return a question as the title of its conversation: one line, without credentials."""
    line = " ".join(text[: 2 * _TITLE_CHARACTERS].split())
    return redact_credentials(sanitize_line(line))[:_TITLE_CHARACTERS]


def _check_id(conversation_id: str) -> str:
    if not is_conversation_id(conversation_id):
        raise ConversationNotFound
    return conversation_id
