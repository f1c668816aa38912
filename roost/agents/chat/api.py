"""Chats with an agent at the management address, for clients that cannot reach the agent's own."""

from collections.abc import AsyncGenerator
from typing import Annotated

from fastapi import APIRouter, Depends
from fastapi.responses import StreamingResponse
from starlette.types import Send

from roost.agents.chat import schemas
from roost.agents.chat.service import ChatService
from roost.identity.authenticator import AgentCaller, AgentId
from roost.web.service_registry import provide_service

Service = Annotated[ChatService, Depends(provide_service(ChatService))]
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


@router.post("/chat", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}})
async def send_message(
    _: AgentCaller, agent_id: AgentId, body: schemas.ConversationRequest, chats: Service
) -> AnswerStream:
    """Send a conversation to the agent and stream its answer: chunks of a chat completion in OpenAI's form."""
    return AnswerStream(await chats.start_answer(agent_id, body.to_messages()))
