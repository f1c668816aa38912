"""Chats with an agent at the management address: conversations that its engine stores, and stateless ones."""

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Response
from fastapi.responses import StreamingResponse
from starlette.types import Send

from roost.agents.chat import schemas
from roost.agents.chat.conversations import ConversationService
from roost.agents.chat.live_answer import AnswerPart
from roost.agents.chat.service import ChatService
from roost.identity.authenticator import AgentCaller, AgentId, AgentVisit
from roost.web.responses import describe_events, event_response, format_event
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
async def send_message(
    _: AgentCaller, agent_id: AgentId, body: schemas.ConversationRequest, chats: Service
) -> AnswerStream:
    """Send a conversation to the agent and stream its answer: chunks of a chat completion in OpenAI's form."""
    return AnswerStream(await chats.start_answer(agent_id, body.to_messages()))


@router.get("/chat/conversations")
async def list_conversations(
    _: AgentCaller, agent_id: AgentId, conversations: Conversations
) -> schemas.ConversationListRecord:
    """List at most 100 conversations that the agent's engine stores, newest first."""
    return schemas.conversation_list_record(await conversations.list(agent_id))


@router.get("/chat/messages")
async def list_messages(
    _: AgentCaller,
    agent_id: AgentId,
    conversations: Conversations,
    conversation_id: ConversationId = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 100,
) -> schemas.ChatHistoryRecord:
    """Return the latest messages of a conversation, by default of the newest one, with the tools that were used."""
    return schemas.history_record(await conversations.get(agent_id, conversation_id, limit))


@router.post("/chat/messages", status_code=202, responses={409: {}, 429: {}})
async def send_chat_message(
    _: AgentCaller, agent_id: AgentId, body: schemas.SendMessageRequest, conversations: Conversations
) -> schemas.SentMessageRecord:
    """Send a message, which the agent begins to answer; the answer goes on if the client leaves."""
    sent = await conversations.send(agent_id, body.conversation_id, body.text)
    return schemas.SentMessageRecord(conversation_id=sent)


@router.get("/chat/answer", response_class=Response, responses={200: {"content": _EVENTS}})
async def follow_answer(
    visit: AgentVisit,
    agent_id: AgentId,
    conversations: Conversations,
    conversation_id: ConversationId = None,
) -> Response:
    """Stream the answer to the last message, from its beginning; any number of clients can follow it."""
    return event_response(visit, conversations.follow(agent_id, conversation_id), _format_answer)


@router.post("/chat/stop")
async def stop_answer(
    _: AgentCaller, agent_id: AgentId, body: schemas.StopAnswerRequest, conversations: Conversations
) -> schemas.StoppedAnswerRecord:
    """Stop the answer that the agent is writing; what it has written stays in the history."""
    return schemas.StoppedAnswerRecord(stopped=await conversations.stop(agent_id, body.conversation_id))


def _format_answer(event: AnswerPart) -> bytes:
    name, record = schemas.answer_record(event)
    return format_event(record, name)
