"""Requests of chats."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from roost.agents.chat.model import MESSAGES_LIMIT, TEXT_LIMIT, ChatRole, ConversationMessage
from roost.web.schemas import ApiSchema, Text


class ConversationMessageSchema(ApiSchema):
    role: ChatRole
    content: Annotated[Text, Field(min_length=1, max_length=TEXT_LIMIT, examples=["Good morning"])]


class ConversationRequest(ApiSchema):
    """The whole conversation, oldest message first; the agent answers the last one."""

    messages: Annotated[Sequence[ConversationMessageSchema], Field(min_length=1, max_length=MESSAGES_LIMIT)]

    def to_messages(self) -> Sequence[ConversationMessage]:
        return [ConversationMessage(message.role, message.content) for message in self.messages]
