"""Conversations with a running agent, which its engine stores, with the tools that the agent used for its answers.

A conversation begins with its first message; ids sort by the time of their creation. Everything that an engine returns
is untrusted: drivers limit its size.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from roost.core import clock, ids
from roost.drivers.engine.abilities.agent_context import AgentContext

_CONVERSATION_ID = re.compile(r"chat-[0-9]{17}-[0-9a-f]{6}")
MAX_TEXT = 200_000
"""Maximum number of characters of one message in the history."""
MAX_DETAIL = 2_000
"""Maximum number of characters of a tool's arguments, and of its result."""


class ToolState(StrEnum):
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


class MessageRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True)
class ToolUse:
    """A tool that the agent used; arguments and result are the beginnings of texts, empty if they are unknown."""

    id: str
    name: str
    arguments: str = ""
    state: ToolState = ToolState.RUNNING
    result: str = ""


@dataclass(frozen=True)
class AnswerText:
    """The next part of an answer; with `replaces`, the whole text so far."""

    text: str
    replaces: bool = False


@dataclass(frozen=True)
class AnswerStopped:
    """The answer was stopped, in the engine or by someone else."""


AnswerEvent = AnswerText | ToolUse | AnswerStopped


@dataclass(frozen=True)
class StoredMessage:
    """A message of a conversation. An answer has all texts and tools up to the next message of the user."""

    id: str
    role: MessageRole
    text: str
    tools: Sequence[ToolUse] = ()
    sent_at: datetime | None = None
    is_stopped: bool = False


@dataclass(frozen=True)
class StoredConversation:
    """A conversation in the list; title: the engine's own, or empty; preview: the beginning of one of its messages."""

    id: str
    title: str
    updated_at: datetime | None = None
    preview: str = ""


class ChatAbility(ABC):
    """Ability to store conversations and to tell of tools.

    Methods raise EngineFailed, and the errors of dialling (DialRefused, ContainerNotRunning).
    """

    @abstractmethod
    async def conversations(self, agent: AgentContext) -> Sequence[StoredConversation]:
        """Return at most 100 conversations, the newest first. Other sessions of the engine are not among them."""

    @abstractmethod
    async def history(self, agent: AgentContext, conversation_id: str, limit: int) -> Sequence[StoredMessage]:
        """Return at most `limit` of the latest messages, oldest first; none for an unknown conversation."""

    @abstractmethod
    def send(self, agent: AgentContext, conversation_id: str, text: str) -> AsyncGenerator[AnswerEvent, None]:
        """Send a message and stream the answer; closing the generator stops the answer in the engine.

        A tool is yielded when it starts and when it ends. What was answered before a stop is in the history.
        """


def create_conversation_id() -> str:
    # Cut to milliseconds, so that the pattern above has one length.
    return f"chat-{clock.utc_now():%Y%m%d%H%M%S%f}"[:22] + f"-{ids.new_key_handle(6)}"


def is_conversation_id(text: str) -> bool:
    return _CONVERSATION_ID.fullmatch(text) is not None
