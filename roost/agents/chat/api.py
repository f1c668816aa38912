"""Chats with an agent at the management address: conversations that its engine stores, and stateless ones."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field
from starlette.types import Send

from roost.agents.chat.conversations import ConversationService
from roost.agents.chat.live_answer import AnswerEnd, AnswerPart, AnswerSilence, AnswerState
from roost.agents.chat.service import ChatService
from roost.drivers.engine.abilities.chat import AnswerText, MessageRole, ToolState, ToolUse
from roost.identity.authenticator import AgentCaller, AgentId, AgentVisit
from roost.web.responses import describe_events, event_response, format_event
from roost.web.schemas import ApiSchema, Moment, Text
from roost.web.service_registry import provide_service

Service = Annotated[ChatService, Depends(provide_service(ChatService))]
Conversations = Annotated[ConversationService, Depends(provide_service(ConversationService))]
ConversationId = Annotated[str | None, Query(alias="conversationId")]
_ANSWER = {"text/event-stream": {"schema": {"description": "Server-sent events, each with a chunk; then `[DONE]`."}}}
_EVENTS = describe_events(
    "Server-sent events: `text` {text, replaces}, `tool` {id, name, arguments, state, result}, `silence` {seconds}, "
    "`end` {state, error}."
)
router = APIRouter(prefix="/v0/agents/{agentId}", tags=["chat"])
MESSAGES_LIMIT = 1000
TEXT_LIMIT = 1_000_000
"""Maximum number of characters of one message."""
_MessageText = Annotated[Text, Field(min_length=1, max_length=TEXT_LIMIT, examples=["Good morning"])]
_CONVERSATION = "chat-20260102030405678-0a1b2c"


class ChatRole(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"


class ConversationMessageSchema(ApiSchema):
    role: ChatRole
    content: _MessageText


class ConversationRequest(ApiSchema):
    """The whole conversation, oldest message first; the agent answers the last one."""

    messages: Annotated[Sequence[ConversationMessageSchema], Field(min_length=1, max_length=MESSAGES_LIMIT)]


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


_ANSWER_RECORDS: Mapping[type[AnswerPart], tuple[str, type[ApiSchema]]] = {
    AnswerText: ("text", AnswerTextRecord),
    ToolUse: ("tool", ToolUseRecord),
    AnswerSilence: ("silence", AnswerSilenceRecord),
    AnswerEnd: ("end", AnswerEndRecord),
}
"""Names and data of the server-sent events."""


class AnswerStream(StreamingResponse):
    """An answer as server-sent events; ends it at the agent, too, when the client disconnects."""

    media_type = "text/event-stream"

    def __init__(self, answer: AsyncGenerator[bytes, None]) -> None:
        super().__init__(answer, headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"})
        self._answer = answer

    async def stream_response(self, send: Send) -> None:
        try:
            await super().stream_response(send)
        finally:
            await self._answer.aclose()


@router.post("/chat", response_class=StreamingResponse, responses={200: {"content": _ANSWER}})
async def send_message(_: AgentCaller, agent_id: AgentId, body: ConversationRequest, chats: Service) -> AnswerStream:
    """Send a conversation to the agent and stream its answer: chunks of a chat completion in OpenAI's form."""
    return AnswerStream(await chats.start_answer(agent_id, [one.model_dump(mode="json") for one in body.messages]))


@router.get("/chat/conversations")
async def list_conversations(_: AgentCaller, agent_id: AgentId, conversations: Conversations) -> ConversationListRecord:
    """List at most 100 conversations that the agent's engine stores, newest first."""
    found = [ConversationRecord(**vars(one)) for one in await conversations.list(agent_id)]
    return ConversationListRecord(conversations=found)


@router.get("/chat/messages")
async def list_messages(
    _: AgentCaller,
    agent_id: AgentId,
    conversations: Conversations,
    conversation_id: ConversationId = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> ChatHistoryRecord:
    """Return the latest messages of a conversation, by default of the newest one, with the tools that were used."""
    found = await conversations.get(agent_id, conversation_id, limit)
    return ChatHistoryRecord.model_validate(found, from_attributes=True)


@router.post("/chat/messages", status_code=202, responses={409: {}, 429: {}})
async def send_chat_message(
    _: AgentCaller, agent_id: AgentId, body: SendMessageRequest, conversations: Conversations
) -> SentMessageRecord:
    """Send a message, which the agent begins to answer; the answer goes on if the client leaves."""
    sent = await conversations.send(agent_id, body.conversation_id, body.text)
    return SentMessageRecord(conversation_id=sent)


@router.get("/chat/answer", response_class=Response, responses={200: {"content": _EVENTS}})
async def follow_answer(
    visit: AgentVisit, agent_id: AgentId, conversations: Conversations, conversation_id: ConversationId = None
) -> Response:
    """Stream the answer to the last message, from its beginning; any number of clients can follow it."""
    return event_response(visit, conversations.follow(agent_id, conversation_id), _format_answer)


@router.post("/chat/stop")
async def stop_answer(
    _: AgentCaller, agent_id: AgentId, body: StopAnswerRequest, conversations: Conversations
) -> StoppedAnswerRecord:
    """Stop the answer that the agent is writing; what it has written stays in the history."""
    return StoppedAnswerRecord(stopped=await conversations.stop(agent_id, body.conversation_id))


def _format_answer(event: AnswerPart) -> bytes:
    name, record = _ANSWER_RECORDS[type(event)]
    return format_event(record.model_validate(event, from_attributes=True), name)
