"""Requests and responses of chats."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field

from roost.agents.chat.conversations import Conversation
from roost.agents.chat.live_answer import AnswerEnd, AnswerPart, AnswerSilence, AnswerState
from roost.agents.chat.model import MESSAGES_LIMIT, TEXT_LIMIT, ChatRole, ConversationMessage
from roost.drivers.engine.abilities.chat import (
    AnswerText,
    MessageRole,
    StoredConversation,
    StoredMessage,
    ToolState,
    ToolUse,
)
from roost.web.schemas import ApiSchema, Moment, Text

_MessageText = Annotated[Text, Field(min_length=1, max_length=TEXT_LIMIT, examples=["Good morning"])]
_CONVERSATION = "chat-20260102030405678-0a1b2c"


class ConversationMessageSchema(ApiSchema):
    role: ChatRole
    content: _MessageText


class ConversationRequest(ApiSchema):
    """The whole conversation, oldest message first; the agent answers the last one."""

    messages: Annotated[Sequence[ConversationMessageSchema], Field(min_length=1, max_length=MESSAGES_LIMIT)]

    def to_messages(self) -> Sequence[ConversationMessage]:
        return [ConversationMessage(message.role, message.content) for message in self.messages]


class SendMessageRequest(ApiSchema):
    """A message to the agent. Without a conversation, a new one begins."""

    text: _MessageText
    conversation_id: str | None = Field(default=None, examples=[_CONVERSATION])


class SentMessageRecord(ApiSchema):
    conversation_id: str = Field(examples=[_CONVERSATION])


class StopAnswerRequest(ApiSchema):
    conversation_id: str = Field(examples=[_CONVERSATION])


class StoppedAnswerRecord(ApiSchema):
    stopped: bool


class ToolUseRecord(ApiSchema):
    """A tool that the agent used, with the beginnings of its arguments and of its result."""

    id: str
    name: str = Field(examples=["exec"])
    arguments: str = Field(examples=['{"command": "ls"}'])
    state: ToolState
    result: str


class ChatMessageRecord(ApiSchema):
    id: str
    role: MessageRole
    text: str
    tools: Sequence[ToolUseRecord]
    sent_at: Moment | None
    is_stopped: bool


class ChatHistoryRecord(ApiSchema):
    """The latest messages. While `isAnswering`, the answer to the last one is at `chat/answer`."""

    conversation_id: str | None
    messages: Sequence[ChatMessageRecord]
    is_answering: bool


class ConversationRecord(ApiSchema):
    id: str = Field(examples=[_CONVERSATION])
    title: str
    updated_at: Moment | None


class ConversationListRecord(ApiSchema):
    conversations: Sequence[ConversationRecord]


class AnswerTextRecord(ApiSchema):
    """The next part of an answer; with `replaces`, all of it so far."""

    text: str
    replaces: bool


class AnswerSilenceRecord(ApiSchema):
    """The model has been silent for so many seconds; the answer goes on."""

    seconds: int


class AnswerEndRecord(ApiSchema):
    state: AnswerState
    error: str | None


def history_record(conversation: Conversation) -> ChatHistoryRecord:
    return ChatHistoryRecord(
        conversation_id=conversation.id,
        messages=[_message_record(message) for message in conversation.messages],
        is_answering=conversation.is_answering,
    )


def _message_record(message: StoredMessage) -> ChatMessageRecord:
    fields: dict[str, Any] = {**vars(message), "tools": [ToolUseRecord(**vars(use)) for use in message.tools]}
    return ChatMessageRecord(**fields)


def conversation_list_record(conversations: Sequence[StoredConversation]) -> ConversationListRecord:
    records = [ConversationRecord(id=one.id, title=one.title, updated_at=one.updated_at) for one in conversations]
    return ConversationListRecord(conversations=records)


def answer_record(event: AnswerPart) -> tuple[str, ApiSchema]:
    """Return the name and the data of the server-sent event."""
    match event:
        case AnswerText():
            return "text", AnswerTextRecord(**vars(event))
        case ToolUse():
            return "tool", ToolUseRecord(**vars(event))
        case AnswerSilence():
            return "silence", AnswerSilenceRecord(**vars(event))
        case AnswerEnd():
            return "end", AnswerEndRecord(**vars(event))
